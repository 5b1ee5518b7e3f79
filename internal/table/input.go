package table

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// input is an opened file or stdin: its bytes, decompressed, and how many of
// them have been read.
type input struct {
	path  string // as it appears in messages
	total int64  // size of the file in bytes, 0 if not known
	done  atomic.Int64
	file  *os.File // a regular file that can be read at any offset, or nil
	pipe  bool     // a Read may wait forever
	raw   io.Reader
	r     *bufio.Reader // decompressed
	what  string        // compression, "" if there is none
	inner string        // name of the file in an archive
	most  int64         // bytes that the data may ask for at once; 0 is a share of those that were read

	closing sync.Once
	closers []func() error
}

func openInput(path string, stdin io.Reader) (*input, error) {
	in := &input{path: path}
	if path == "-" {
		in.path, in.pipe, in.raw = "stdin", true, stdin
		if stdin == nil {
			return nil, &Error{Path: in.path, What: "there is no standard input here; name a file"}
		}
		if f, ok := stdin.(*os.File); ok {
			in.regular(f)
		}
	} else if err := in.openFile(path); err != nil {
		return nil, err
	}
	if err := in.unpack(); err != nil {
		in.Close()
		return nil, in.wrap(err)
	}
	return in, nil
}

func (in *input) openFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		if pe := (*os.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err // the message already has the path
		}
		return &Error{Path: path, What: "cannot be opened", Err: err}
	}
	in.closers = append(in.closers, f.Close)
	in.raw, in.pipe = f, true
	in.regular(f)
	if info, err := f.Stat(); err == nil && info.IsDir() {
		in.Close()
		return &Error{Path: path, What: "is a directory; name a file in it"}
	}
	return nil
}

// regular records f if it is a regular file that is at its start.
func (in *input) regular(f *os.File) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
		return
	}
	in.file, in.total, in.pipe = f, info.Size(), false
}

// counted reads the raw bytes of an input and counts them.
type counted input

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.raw.Read(p)
	c.done.Add(int64(n))
	return n, err
}

// Progress returns the bytes read and their total.
func (in *input) Progress() (done, total int64) { return in.done.Load(), in.total }

// Close closes the file that Open opened, but never stdin.
func (in *input) Close() (err error) {
	in.closing.Do(func() {
		for i := len(in.closers) - 1; i >= 0; i-- {
			err = errors.Join(err, in.closers[i]())
		}
	})
	return err
}

// wrap returns an error as an *Error with the input's path; io.EOF is returned
// unchanged.
func (in *input) wrap(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	e := *asError(err)
	if e.Path == "" {
		e.Path = in.path
	}
	return &e
}

// readFailed returns an error that tells why reading stopped before the end. An
// error of a reader over a limit of its own does not mean damage.
func (in *input) readFailed(err error) error {
	var refused *Error
	switch {
	case err == io.EOF || errors.As(err, &refused):
		return err
	case in.what != "":
		return caused(err, "the %s data is damaged or cut short", in.what)
	}
	return caused(err, "cannot be read")
}

// finish reads to the end, where compressed data has its checksum. It returns
// io.EOF if all is well.
func (in *input) finish() error {
	if _, err := io.Copy(io.Discard, in.r); err != nil {
		return in.readFailed(err)
	}
	return io.EOF
}

// at returns the input as an io.ReaderAt, and its size. An input that cannot
// be read that way is first copied into a temporary file, which is removed
// when the input is closed.
func (in *input) at() (io.ReaderAt, int64, error) {
	if in.file != nil && in.what == "" {
		return in.file, in.total, nil
	}
	if in.most > 0 {
		all, err := io.ReadAll(in.r)
		if err != nil {
			return nil, 0, in.readFailed(err)
		}
		return bytes.NewReader(all), int64(len(all)), nil
	}
	tmp, err := os.CreateTemp("", "pando-*")
	if err != nil {
		return nil, 0, caused(err, "needs a temporary file because it is not a plain file")
	}
	os.Remove(tmp.Name()) // works now, or else (on Windows) after closing
	in.closers = append(in.closers, func() error {
		err := tmp.Close()
		os.Remove(tmp.Name())
		return err
	})
	n, err := io.Copy(tmp, in.r)
	if err != nil {
		return nil, 0, caused(err, "cannot be copied to a temporary file")
	}
	return tmp, n, nil
}

// mostColumns is how many columns data may have that a stranger sends. Each takes memory before it is known whether it is wanted.
const mostColumns = 16

// columns returns the most columns that the input may have, 0 for any number.
func (in *input) columns() int {
	if in.most > 0 {
		return mostColumns
	}
	return 0
}

// errColumns is the error for more columns than that.
var errColumns = wrong("there are more than %d columns; send only those that are asked for", mostColumns)

// limit refuses sizes which only a damaged input can ask for: more than its
// bytes can unpack to.
type limit struct{ in *input }

func (l limit) check(size int64) error {
	const least, ratio = 256 << 20, 250
	most := l.in.most
	if most == 0 {
		most = max(least, ratio*max(l.in.total, l.in.done.Load()))
	}
	if size < 0 || size > most {
		return wrong("the data asks for %d bytes at once, which cannot be right", size)
	}
	return nil
}
