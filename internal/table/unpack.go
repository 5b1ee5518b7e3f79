package table

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// Packed are the endings of names that tell a compression, which is behind that of
// the format.
var Packed = []string{".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz", ".zip"}

// zstdWindow is the maximum memory that a zstd frame may request, the zstd
// command's default.
const zstdWindow = 128 << 20

// unpackBuffer is the number of bytes that are unpacked at a time.
const unpackBuffer = 64 << 10

// unpack looks at the first bytes, and decompresses compressed input.
func (in *input) unpack() error {
	in.r = bufio.NewReaderSize((*counted)(in), unpackBuffer)
	magic := in.peek("\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh1", xzMagic, "PK\x03\x04")
	var z io.Reader
	var err error
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		in.what = "gzip"
		z, err = gzip.NewReader(in.r)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		in.what = "zstd"
		z, err = in.unpackZstd()
	case bytes.HasPrefix(magic, []byte("BZh")) && len(magic) > 3 && magic[3] >= '1' && magic[3] <= '9':
		in.what = "bzip2"
		z = bzip2.NewReader(in.r)
	case bytes.HasPrefix(magic, []byte(xzMagic)):
		in.what = "xz"
		z, err = xz.NewReader(in.r)
	case bytes.HasPrefix(magic, []byte("PK\x03\x04")):
		z, err = in.unpackZip()
	default:
		return nil
	}
	if _, refused := err.(*Error); refused {
		return err
	} else if err != nil {
		return caused(err, "is not a whole %s file", in.what)
	}
	in.r = bufio.NewReaderSize(z, unpackBuffer)
	return nil
}

const xzMagic = "\xfd7zXZ\x00"

// peek returns the first bytes of an input, as many as may still be the start of one
// of the given texts: more may not be there yet, where people type. Where texts
// differ only in their last byte, one of them is enough.
func (in *input) peek(starts ...string) (b []byte) {
	for n := 1; ; n++ {
		b, err := in.r.Peek(n)
		more := func(s string) bool { return len(s) > n && s[:n] == string(b) }
		if err != nil || !slices.ContainsFunc(starts, more) {
			return b
		}
	}
}

// unpackZstd returns a reader of zstd data. A frame that needs more memory than
// zstdWindow is refused: the decoder would do that, too, but by an error that damage
// has as well.
func (in *input) unpackZstd() (io.Reader, error) {
	start, _ := in.r.Peek(zstd.HeaderMaxSize)
	var h zstd.Header
	if h.Decode(start) == nil && h.WindowSize > zstdWindow {
		return nil, wrong("the zstd data needs a window of %d MiB to unpack, and %d is the most; unpack it first: zstd -d --long=31",
			h.WindowSize>>20, zstdWindow>>20)
	}
	z, err := zstd.NewReader(in.r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return nil, err
	}
	in.closers = append(in.closers, func() error { z.Close(); return nil })
	return z, nil
}

// unpackZip returns a reader of the file in an archive, which must be the only one.
func (in *input) unpackZip() (io.Reader, error) {
	at, size, err := in.at()
	if err != nil {
		return nil, err
	}
	in.what = "zip"
	z, err := zip.NewReader(at, size)
	if err != nil {
		return nil, err
	}
	var files []*zip.File
	var names []string
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") && !strings.HasPrefix(f.Name, "__MACOSX/") {
			files, names = append(files, f), append(names, f.Name)
		}
	}
	switch {
	case strings.HasSuffix(strings.ToLower(in.path), ".xlsx"), len(names) > 0 && names[0] == "[Content_Types].xml":
		return nil, wrong("is a spreadsheet; save it as CSV")
	case len(files) != 1:
		const most = 5
		return nil, wrong("is an archive of %d files (%s); unpack it, and name one", len(files), strings.Join(names[:min(most, len(names))], ", "))
	}
	r, err := files[0].Open()
	if err != nil {
		return nil, err
	}
	in.closers = append(in.closers, r.Close)
	in.inner = path.Base(files[0].Name)
	in.done.Store(0)
	in.total = int64(files[0].UncompressedSize64)
	return io.TeeReader(r, (*counter)(in)), nil
}

// counter counts the bytes that come out of an archive.
type counter input

func (c *counter) Write(p []byte) (int, error) {
	c.done.Add(int64(len(p)))
	return len(p), nil
}

// Text is an opened file or stdin, decompressed.
type Text struct{ in *input }

// OpenText opens a file for readers of their own format. The path "-" is stdin.
func OpenText(path string, stdin io.Reader) (*Text, error) {
	in, err := openInput(path, stdin)
	if err != nil {
		return nil, err
	}
	if err := skipBOM(in); err != nil {
		in.Close()
		return nil, in.wrap(err)
	}
	return &Text{in}, nil
}

// Read implements io.Reader.
func (t *Text) Read(p []byte) (int, error) {
	n, err := t.in.r.Read(p)
	if err != nil {
		err = t.in.readFailed(err)
	}
	return n, err
}

// Live reports whether a Read may wait for another process to write.
func (t *Text) Live() bool { return t.in.pipe }

// Progress returns the bytes read and their total, 0 if that is not known.
func (t *Text) Progress() (done, total int64) { return t.in.Progress() }

// Close closes the file.
func (t *Text) Close() error { return t.in.Close() }
