package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// Formats as layouts have them: of every kind one at least.
var (
	inner      = Kind{1, "inner"}
	leaves     = Kind{2, "leaves"}
	keyOffsets = Kind{5, "key offsets"}
	keyBytes   = Kind{6, "key bytes"}
	pageTable  = Kind{9, "page table"}
	packedKeys = Kind{10, "packed keys"}
	directory  = Kind{11, "directory"}
	wordPages  = Kind{12, "word pages"}

	apart      = &Format{Number: 2, Name: "apart", Version: 1, Sections: []Kind{inner, leaves}}
	compressed = &Format{Number: 6, Name: "compressed", Version: 2, Sections: []Kind{inner, leaves, pageTable, packedKeys}, MostPerPage: 16 * Page}

	formats = []*Format{
		{Number: 1, Name: "pairs", Version: 1, Sections: []Kind{inner, leaves}, Pairs: true},
		apart,
		{Number: 3, Name: "apart", Version: 1, Sections: []Kind{keyOffsets, keyBytes}, Strings: true},
		{Number: 4, Name: "blocked", Version: 2, Sections: []Kind{inner, leaves}, Pairs: true, Paged: true},
		{Number: 5, Name: "blocked", Version: 2, Sections: []Kind{inner, leaves}, Paged: true},
		compressed,
		{Number: 7, Name: "compressed", Version: 2, Sections: []Kind{inner, leaves, directory, wordPages, keyBytes}, Strings: true},
	}
)

// example returns a header and parts of a file with four sections.
func example() (Header, []Part) {
	offsets := make([]byte, 8*4)
	h := Header{Entries: 3, Format: apart, KeyBits: 64, Fanout: 9, Key: "uint64", Value: Encoded + "string"}
	return h, []Part{
		Memory(inner, nil), Memory(leaves, bytes.Repeat([]byte{1}, 64)),
		Memory(ValueOffsets, offsets), Memory(ValueBytes, bytes.Repeat([]byte("value"), 2000)),
	}
}

func written(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	h, parts := example()
	if n, err := Write(&b, h, parts); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	return b.Bytes()
}

func read(data []byte) (*Header, error) {
	return Read(bytes.NewReader(data), int64(len(data)), formats)
}

func TestReadWhatWasWritten(t *testing.T) {
	data := written(t)
	got, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := example()
	want.Version, want.Size, want.Sections = 1, int64(len(data)), got.Sections
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, want %+v", *got, want)
	}
	if s, ok := got.Section(ValueBytes); !ok || s.Offset%Page != 0 || string(data[s.Offset:s.Offset+10]) != "valuevalue" {
		t.Errorf("%+v, %v", s, ok)
	}
	if _, ok := got.Section(Rows); ok {
		t.Error("a section that is not there")
	}
	if err := Verify(bytes.NewReader(data), got); err != nil {
		t.Error(err)
	}
}

// emptyOf returns a header and parts of a file in a format, without entries.
func emptyOf(f *Format) (Header, []Part) {
	h := Header{Format: f, KeyBits: 32, Key: "uint32", Value: "none"}
	if f.Strings {
		h.KeyBits, h.Key = 0, "string"
	}
	if f.Paged {
		h.PageLevels = 12
	}
	var parts []Part
	for _, k := range f.Sections {
		parts = append(parts, Memory(k, make([]byte, 8)))
	}
	return h, parts
}

// A file has the version of its format, and the sections that the format has.
func TestVersionsOfFormats(t *testing.T) {
	for _, f := range formats {
		h, parts := emptyOf(f)
		var b bytes.Buffer
		if _, err := Write(&b, h, parts); err != nil {
			t.Fatalf("%v: %v", f, err)
		}
		got, err := read(b.Bytes())
		if err != nil {
			t.Fatalf("%v: %v", f, err)
		}
		if got.Version != f.Version || got.Format != f || got.PageLevels != h.PageLevels || len(got.Sections) != len(parts) {
			t.Errorf("%v: %+v", f, got)
		}
		for i, s := range got.Sections {
			if s.Kind.String() == "" || s.Kind != parts[i].Kind {
				t.Errorf("%v: section %d is %v", f, i, s.Kind)
			}
		}
	}
}

// A format may say how many entries a page holds; else they take 4 bytes each.
func TestMostEntries(t *testing.T) {
	for _, f := range []*Format{apart, compressed} {
		h, parts := emptyOf(f)
		pages := int64(1 + len(parts))
		h.Entries = pages * Page / 4
		if f.MostPerPage > 0 {
			h.Entries = pages * f.MostPerPage
		}
		if _, err := Write(io.Discard, h, parts); err != nil {
			t.Errorf("%v: %v", f, err)
		}
		h.Entries++
		if _, err := Write(io.Discard, h, parts); err == nil || !strings.Contains(err.Error(), "entries") {
			t.Errorf("%v: %d entries in %d pages: %v", f, h.Entries, pages, err)
		}
	}
}

// docs/format.md gives these places; a file that was written once must be
// readable for ever.
func TestPlacesInTheHeader(t *testing.T) {
	data := written(t)
	le := binary.LittleEndian
	for at, want := range map[int]uint64{
		20: 2, 24: uint64(len(data)), 32: 3, 40: 64, 44: 0, 48: 9, 52: 0, 56: 4, 60: 0,
		64: 1, 72: 4096, 80: 0, 96: 2, 104: 4096, 112: 64, 128: 7, 136: 8192, 144: 32, 160: 8, 168: 12288, 176: 10000,
	} {
		got := uint64(le.Uint32(data[at:]))
		if at == 24 || at == 32 || at >= 64 && at%32 != 0 {
			got = le.Uint64(data[at:])
		}
		if got != want {
			t.Errorf("byte %d holds %d, want %d", at, got, want)
		}
	}
	if string(data[:20]) != "\x89PANDO\r\n\x04\x03\x02\x01\x01\x00\x00\x00"+string(data[16:20]) {
		t.Errorf("the file starts with %q", data[:20])
	}
	if string(data[320:328]) != "\x06\x00uint64" || string(data[384:400]) != "\x0e\x00encoded string" {
		t.Errorf("types are %q and %q", data[320:328], data[384:400])
	}
}

// The errors are sentences about what is wrong.
func TestReadErrors(t *testing.T) {
	for what, c := range map[string]struct {
		change func(data []byte) []byte
		says   string
	}{
		"empty":         {func([]byte) []byte { return nil }, "empty"},
		"another file":  {func([]byte) []byte { return []byte("PK\x03\x04 some archive") }, "does not start"},
		"one byte":      {func(d []byte) []byte { return d[:1] }, "cut short"},
		"half a header": {func(d []byte) []byte { return d[:2000] }, "cut short: 2000"},
		"half a file":   {func(d []byte) []byte { return d[:8192] }, "cut short: 8192"},
		"more":          {func(d []byte) []byte { return append(d, 0) }, "behind the end"},
		"big-endian":    {func(d []byte) []byte { copy(d[8:], "\x01\x02\x03\x04"); return d }, "big-endian"},
		"no order":      {func(d []byte) []byte { d[8]++; return d }, "byte order"},
		"version":       {func(d []byte) []byte { d[12] = 9; Seal(d); return d }, "version 9"},
		"bit":           {func(d []byte) []byte { d[3000] = 1; return d }, "checksum"},
		"not zero":      {func(d []byte) []byte { d[3000] = 1; Seal(d); return d }, "must be zero"},
		"layout":        {func(d []byte) []byte { d[20] = 8; Seal(d); return d }, "no layout has number 8"},
		"later layout":  {func(d []byte) []byte { d[20] = 5; Seal(d); return d }, "layout blocked in a file of version 1"},
		"later version": {func(d []byte) []byte { d[12] = 2; Seal(d); return d }, "layout apart in a file of version 2"},
		"pages":         {func(d []byte) []byte { d[60] = 9; Seal(d); return d }, "pages of 9 levels"},
		"entries":       {func(d []byte) []byte { d[39] = 0x80; Seal(d); return d }, "entries"},
		"sections":      {func(d []byte) []byte { d[56] = 9; Seal(d); return d }, "9 sections"},
		"section":       {func(d []byte) []byte { d[64] = 9; Seal(d); return d }, "the sections [Kind(9) leaves"},
	} {
		_, err := read(c.change(written(t)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
		var newer Newer
		if errors.As(err, &newer) != (what == "version") {
			t.Errorf("%s: %T", what, err)
		}
	}
}

// Any change behind the header is seen by Verify, any in it by Read.
func TestAnyFlipIsSeen(t *testing.T) {
	rng := seed.Rand(t)
	data := written(t)
	step := seed.Step(8)
	for at := rng.IntN(step); at < len(data); at += step {
		data[at] ^= 1 << rng.IntN(8)
		was := data[at]
		h, err := read(data)
		if err == nil {
			err = Verify(bytes.NewReader(data), h)
		}
		var bad Bad
		if !errors.As(err, &bad) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if data[at] != was {
			t.Fatal("reading changes the file")
		}
		data = written(t)
	}
}

// No header that Read accepts leads outside of its file.
func TestAcceptedHeadersAreInside(t *testing.T) {
	rng := seed.Rand(t)
	accepted := 0
	good := written(t)
	for range seed.Times(40_000, 200_000) {
		data := append([]byte(nil), good[:Page]...)
		for range 1 + rng.IntN(3) {
			at := 20 + 4*rng.IntN(75)
			x := []uint64{0, 1, 3, 4096, 8192, 1 << 31, 1 << 32, 1 << 61, 1 << 63, ^uint64(0), ^uint64(4095), uint64(rng.IntN(100))}[rng.IntN(12)]
			binary.LittleEndian.PutUint64(data[at:], x)
		}
		Seal(data)
		h, err := decode(data, formats)
		if err != nil {
			continue
		}
		accepted++
		end := int64(Page)
		for _, s := range h.Sections {
			if s.Offset < end || s.Bytes < 0 || s.Offset+s.Bytes < s.Offset || s.Offset+s.Bytes > h.Size {
				t.Fatalf("%+v", *h)
			}
			end = s.Offset + s.Bytes
		}
	}
	t.Logf("%d accepted", accepted)
}

// A part that writes something else the second time is found out.
func TestChangingPart(t *testing.T) {
	h, parts := example()
	calls := 0
	parts[3].Write = func(w io.Writer) error {
		calls++
		_, err := w.Write([]byte{byte(calls)})
		return err
	}
	if _, err := Write(io.Discard, h, parts); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	parts[3].Write = func(io.Writer) error { return io.ErrUnexpectedEOF }
	if _, err := Write(io.Discard, h, parts); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	h.Value = Encoded + strings.Repeat("x", MaxValue)
	if _, err := Write(io.Discard, h, parts); err == nil {
		t.Error("a description that is too long is taken")
	}
}
