package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// parquetBuffer is how much of a column is read at once, and the most that the
// header of a page may take: it has the least and the greatest value of the page.
const parquetBuffer = 256 << 10

// parquetStart is the place of every parquetStream in the file that the library
// is told of: after the magic number.
const parquetStart = 4

// parquetStream is a column of a row group as it would be in a file that is
// not compressed: it reads pages, unpacks them, and gives them with headers that
// say so. It takes memory only for bytes that are there: a page's sizes are checked
// before room is made for them.
//
// The library could unpack pages too. But it makes room for any size that a
// damaged page asks for, and takes all row groups to be packed as the first one
// is.
type parquetStream struct {
	r      *bufio.Reader
	codec  format.CompressionCodec
	limit  limit
	width  int64    // bytes that a value may take at least, as a level, a code, or itself
	at     int64    // bytes given
	out    [][]byte // bytes to be given next
	packed []byte   // a page as it is in the file; used again for the next
	plain  []byte   // a page
	levels parquetLevels
	deltas *parquetDeltas
}

func newParquetStream(at io.ReaderAt, meta *format.ColumnMetaData, leaf *parquet.Column, l limit) *parquetStream {
	start := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	section := io.NewSectionReader(at, start, meta.TotalCompressedSize)
	return &parquetStream{r: bufio.NewReaderSize(section, parquetBuffer), codec: meta.Codec, limit: l, width: parquetWidth(leaf.Type(), l), levels: levelsOf(leaf), deltas: newParquetDeltas(leaf)}
}

// parquetWidth returns the bytes that each value of a page counts at least: a level takes one. A stranger's are taken for codes, or
// for what values of a fixed length have, since the library makes room for them before it looks whether they are there.
func parquetWidth(t parquet.Type, l limit) int64 {
	switch {
	case l.in.most == 0:
		return 1
	case t.Kind() == parquet.FixedLenByteArray:
		return max(4, int64(t.Length()))
	}
	return 4
}

// ReadAt is io.ReaderAt.ReadAt, for a reader that begins at parquetStart and
// goes on from there.
func (p *parquetStream) ReadAt(b []byte, off int64) (n int, err error) {
	if off != parquetStart+p.at {
		return 0, errors.New("its pages are not in order")
	}
	for n < len(b) && err == nil {
		if len(p.out) == 0 {
			err = p.page()
			continue
		}
		m := copy(b[n:], p.out[0])
		if p.out[0] = p.out[0][m:]; len(p.out[0]) == 0 {
			p.out = p.out[1:]
		}
		n += m
	}
	p.at += int64(n)
	return n, err
}

// page reads the next page.
func (p *parquetStream) page() error {
	h, err := p.header()
	if err != nil {
		return err
	}
	body, err := p.body(h)
	if err != nil {
		return err
	}
	if err := p.checkRuns(h, body); err != nil {
		return err
	}
	if p.deltas != nil {
		if body, err = p.deltas.rewrite(h, body); err != nil {
			return err
		}
	}
	h.CompressedPageSize, h.UncompressedPageSize, h.CRC = int32(len(body)), int32(len(body)), 0
	h.DataPageHeaderV2.V.IsCompressed.Set(false)
	head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	p.out = append(p.out[:0], head, body)
	return err
}

// header reads the header of a page and checks what it asks for.
func (p *parquetStream) header() (*format.PageHeader, error) {
	if _, err := p.r.Peek(1); err != nil {
		return nil, err
	}
	h := new(format.PageHeader)
	b, _ := p.r.Peek(p.r.Buffered())
	n, err := parquetDecode(b, h, p.limit.in.most)
	if err != nil && len(b) < parquetBuffer { // not all of it was there
		b, _ = p.r.Peek(parquetBuffer)
		n, err = parquetDecode(b, h, p.limit.in.most)
	}
	if err != nil {
		return nil, err
	}
	if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 {
		return nil, errors.New("a page of a negative size")
	}
	for _, size := range []int64{
		int64(h.UncompressedPageSize),
		p.width * int64(h.DataPageHeader.V.NumValues), p.width * int64(h.DataPageHeaderV2.V.NumValues),
		max(4, p.width) * int64(h.DictionaryPageHeader.V.NumValues), // their places are four bytes each
	} {
		if err := p.limit.check(size); err != nil {
			return nil, err
		}
	}
	_, err = p.r.Discard(n)
	return h, err
}

// parquetDecode reads a Thrift structure from the start of b, and returns the
// bytes that it takes. It skips through all of it first: else a list would get
// the room it asks for before it is seen whether its elements are there. They may
// take most bytes, any number if that is 0.
func parquetDecode(b []byte, into any, most int64) (n int, err error) {
	var protocol thrift.CompactProtocol
	if err := parquetSkip(protocol.NewReaderFromBytes(b), most); err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	} else if err != nil {
		return 0, err
	}
	r := protocol.NewReaderFromBytes(b)
	err = thrift.NewDecoder(r).Decode(into)
	return r.BytesRead(), err
}

// parquetSkip reads over a Thrift structure. The library could, but it calls itself for each structure within another, and a
// file of them would end the process when the stack is full.
func parquetSkip(r thrift.Reader, most int64) error {
	const (
		deepest = 64
		element = 1 << 10 // what an element may take when it is decoded, with room to spare
	)
	type level struct {
		left  int64          // values to come; below 0 in a structure, which says where it ends
		kinds [2]thrift.Type // of the values in turn: those of a map are keys as well
	}
	levels := append(make([]level, 0, deepest), level{left: -1})
	for elements := int64(0); len(levels) > 0; {
		top := &levels[len(levels)-1]
		var kind thrift.Type
		if top.left == 0 {
			levels = levels[:len(levels)-1]
			continue
		} else if top.left > 0 {
			top.left--
			kind = top.kinds[top.left%2]
		} else {
			f, err := r.ReadField()
			if err != nil {
				return err
			}
			if kind = f.Type; kind == thrift.STOP {
				top.left = 0
				continue
			} else if kind == thrift.TRUE || kind == thrift.FALSE {
				continue // which is its value, too
			}
		}
		next, err := level{}, error(nil)
		switch kind {
		case thrift.TRUE, thrift.FALSE, thrift.I8:
			_, err = r.ReadInt8()
		case thrift.I16:
			_, err = r.ReadInt16()
		case thrift.I32:
			_, err = r.ReadInt32()
		case thrift.I64:
			_, err = r.ReadInt64()
		case thrift.DOUBLE:
			_, err = r.ReadFloat64()
		case thrift.UUID:
			if _, err = r.ReadFloat64(); err == nil {
				_, err = r.ReadFloat64()
			}
		case thrift.BINARY:
			_, err = r.ReadBytes() // which points into the data
		case thrift.STRUCT:
			next.left = -1
		case thrift.LIST, thrift.SET:
			var l thrift.List
			l, err = r.ReadList()
			next = level{int64(l.Size), [2]thrift.Type{l.Type, l.Type}}
		case thrift.MAP:
			var m thrift.Map
			m, err = r.ReadMap()
			next = level{2 * int64(m.Size), [2]thrift.Type{m.Value, m.Key}}
		default:
			err = fmt.Errorf("it has a value of the unknown type %d", kind)
		}
		if err != nil {
			return err
		}
		elements += max(next.left, 0)
		if size := elements * element; most > 0 && size > most {
			return wrong("its description asks for %d bytes at once; send fewer row groups", size)
		}
		if next.left != 0 {
			if len(levels) == deepest {
				return wrong("its description has more than %d structures within each other, which cannot be right; write the file again", deepest)
			}
			levels = append(levels, next)
		}
	}
	return nil
}

// body reads and unpacks the bytes that follow a header. The bytes are good
// until the next call.
func (p *parquetStream) body(h *format.PageHeader) (body []byte, err error) {
	n, want := int(h.CompressedPageSize), int(h.UncompressedPageSize)
	if n <= cap(p.packed) {
		_, err = readFull(p.r, p.packed[:n])
	} else {
		p.packed, err = readN(p.r, int64(n))
	}
	if err != nil {
		return nil, fmt.Errorf("a page is cut short: %w", err)
	}
	// Nothing may look beyond a page's end: the bytes there are another page's.
	body = p.packed[:n:n]
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(body) {
		return nil, errors.New("the checksum of a page is wrong")
	}
	levels := 0 // bytes that are never packed
	if v2 := &h.DataPageHeaderV2; v2.Valid && h.Type == format.DataPageV2 {
		if c := &v2.V.IsCompressed; c.Valid && !c.V {
			return body, nil
		}
		levels = int(v2.V.RepetitionLevelsByteLength) + int(v2.V.DefinitionLevelsByteLength)
		if levels < 0 || levels > min(n, want) {
			return nil, errors.New("a page is shorter than its levels")
		}
	}
	if p.codec == format.Uncompressed || levels == n {
		return body, nil
	}
	if want > cap(p.plain) {
		p.plain = make([]byte, want)
	}
	plain := p.plain[:want:want]
	copy(plain, body[:levels])
	return plain, unpackPage(p.codec, plain[levels:], body[levels:])
}

// Unpackers are used again: a new one takes longer than a small page.
var (
	gzips   = sync.Pool{New: func() any { return new(gzip.Reader) }}
	brotlis = sync.Pool{New: func() any { return brotli.NewReader(nil) }}
	zstds   = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(zstdWindow))
	})
)

var errUnpacked = errors.New("a page does not unpack to the size it says")

// unpackPage unpacks src, which must fill dst.
func unpackPage(codec format.CompressionCodec, dst, src []byte) error {
	switch codec {
	case format.Snappy:
		if n, err := snappy.DecodedLen(src); err != nil || n != len(dst) {
			return errUnpacked
		}
		_, err := snappy.Decode(dst, src)
		return err
	case format.Gzip:
		z := gzips.Get().(*gzip.Reader)
		defer gzips.Put(z)
		if err := z.Reset(bytes.NewReader(src)); err != nil {
			return err
		}
		return readExactly(z, dst)
	case format.Brotli:
		z := brotlis.Get().(*brotli.Reader)
		defer brotlis.Put(z)
		if err := z.Reset(bytes.NewReader(src)); err != nil {
			return err
		}
		return readExactly(z, dst)
	case format.Zstd:
		z, err := zstds()
		if err != nil {
			return err
		}
		out, err := z.DecodeAll(src, dst[:0])
		if err == nil && len(out) != len(dst) {
			err = errUnpacked
		}
		return err
	case format.Lz4Raw:
		n, err := lz4.UncompressBlock(src, dst)
		if err == nil && n != len(dst) {
			err = errUnpacked
		}
		return err
	}
	return fmt.Errorf("pages packed with %v cannot be read", codec)
}

// readExactly fills dst and makes sure that there is no more.
func readExactly(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	if n, err := io.CopyN(io.Discard, r, 1); n > 0 {
		return errUnpacked
	} else if err != io.EOF {
		return err
	}
	return nil
}
