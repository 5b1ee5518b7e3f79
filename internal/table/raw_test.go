package table

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// little returns values as little-endian bytes.
func little[T any](values ...T) string {
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestRaw tests raw values and SOSD files, recognized by ending, name or
// option.
func TestRaw(t *testing.T) {
	many := make([]uint64, batchRows+5)
	for i := range many {
		many[i] = ^uint64(i)
	}
	b := readAll(t, tempFile(t, "x.u64", little(many...)), Options{})
	if !slices.Equal(b.Columns[0].Uint64, many) || b.Columns[0].Name != "key" {
		t.Error("u64")
	}
	b = readAll(t, tempFile(t, "books_200M_uint64", little(uint64(len(many)))+little(many...)), Options{})
	if !slices.Equal(b.Columns[0].Uint64, many) {
		t.Error("SOSD by its name")
	}
	b = readAll(t, tempFile(t, "x", little(uint64(2))+little[uint32](3, 1<<32-1)), Options{Format: "sosd32", Columns: []string{"1"}})
	if !slices.Equal(b.Columns[0].Uint32, []uint32{3, 1<<32 - 1}) || b.Columns[0].Name != "1" {
		t.Error("sosd32")
	}
	b = readAll(t, tempFile(t, "x.i32", little[int32](-3, 4)), Options{Types: map[string]Type{"key": Int64}})
	if !slices.Equal(b.Columns[0].Int64, []int64{-3, 4}) {
		t.Error("i32 as int64")
	}
	b = readAll(t, tempFile(t, "x.i64", little[int64](-3, 4)), Options{})
	if !slices.Equal(b.Columns[0].Int64, []int64{-3, 4}) {
		t.Error("i64")
	}
	b = readAll(t, tempFile(t, "x.sosd64", little[uint64](0)), Options{})
	if b.Rows != 0 {
		t.Error("empty")
	}
	src, err := Open("-", strings.NewReader(little[uint64](1, 7)), Options{Format: "sosd64"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := drain(src); err != nil || got.Rows != 1 || got.Columns[0].Uint64[0] != 7 {
		t.Errorf("from a pipe: %v", err)
	}
	src.Close()
}

// TestRawErrors tests sizes that do not fit, from files and from pipes.
func TestRawErrors(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"u64", "123456789", "multiple of 8"},
		{"sosd64", "123", "too short|ends in the middle"},
		{"sosd64", little[uint64](3, 1), "3 values of 8 bytes, but has 8 bytes|ends in the middle"},
		{"sosd64", little[uint64](1, 1, 1), "1 values of 8 bytes, but has 16 bytes|more values"},
		{"sosd64", little[uint64](1<<63, 1), "has 8 bytes after its count|ends in the middle"},
		{"sosd64", little[uint64](1, 1) + "x", "1 values of 8 bytes, but has 9 bytes|more values"},
		{"sosd32", little[uint64](1<<62) + "1234", "has 4 bytes after its count|ends in the middle"},
	} {
		file, pipe, both := strings.Cut(c.want, "|")
		if _, err := readErr(tempFile(t, "x", c.text), Options{Format: c.format}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", c.format, err)
		}
		src, err := Open("-", strings.NewReader(c.text), Options{Format: c.format})
		if err == nil {
			_, err = drain(src)
			src.Close()
		}
		if both && (err == nil || !strings.Contains(err.Error(), pipe) && !strings.Contains(err.Error(), file)) {
			t.Errorf("%s from a pipe: %v", c.format, err)
		}
	}
	path := tempFile(t, "x.i64", little[int64](1, -2))
	_, err := readErr(path, Options{Types: map[string]Type{"key": Uint64}})
	if e, ok := err.(*Error); !ok || e.Line != 2 || !strings.Contains(err.Error(), `"-2" does not fit uint64`) {
		t.Errorf("%v", err)
	}
	if _, err := readErr(tempFile(t, "x", "\x00\x01"), Options{}); err == nil || !strings.Contains(err.Error(), "--format") {
		t.Errorf("%v", err)
	}
}
