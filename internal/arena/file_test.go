package arena

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"
)

// somefile makes a file of n bytes, each holding the low bits of its offset.
func somefile(t *testing.T, n int) (*os.File, []byte) {
	t.Helper()
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, data
}

func TestMappedFile(t *testing.T) {
	before := InUse()
	for _, n := range []int{1, 4095, 4096, 4097, 100_000} {
		f, data := somefile(t, n)
		half := n / 2 / Align * Align
		const slack = 70_000
		b, err := Map(f, int64(n), []Part{{half, n - half}, {half, 0}, {0, n}}, slack, 1)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		os.Remove(f.Name())
		if !bytes.Equal(b.Segment(0), data[half:]) || len(b.Segment(1)) != 0 || !bytes.Equal(b.Segment(2), data) || !bytes.Equal(b.Memory(), data[half:]) {
			t.Errorf("%d bytes: other bytes than the file's", n)
		}
		if unsafe.SliceData(b.Segment(1)) != unsafe.SliceData(b.Segment(0)) {
			t.Errorf("%d bytes: an empty segment is elsewhere", n)
		}
		if b.Bytes() != int64(n) || InUse() != before || b.Base() != unsafe.Pointer(unsafe.SliceData(b.Segment(0))) {
			t.Errorf("%d bytes: holds %d, in use %d", n, b.Bytes(), InUse())
		}
		all := unsafe.Slice(unsafe.SliceData(b.Segment(2)), n+slack)
		for i, c := range all[n:] {
			if c != 0 {
				t.Fatalf("byte %d behind the end is %d", i, c)
			}
		}
		b.Release()
		b.Release()
		if !b.Released() {
			t.Error("not released")
		}
		for i, c := range all { // must not fault
			if c != 0 {
				t.Fatalf("byte %d is %d after Release", i, c)
			}
		}
		runtime.KeepAlive(b)
	}
}

func TestMapRefuses(t *testing.T) {
	f, _ := somefile(t, 8192)
	for _, p := range []Part{{-64, 10}, {64, -1}, {1, 10}, {64, 8192}, {8256, 0}, {4096, math.MaxInt / 2}} {
		if _, err := Map(f, 8192, []Part{p}, 0, 0); err == nil {
			t.Errorf("%+v of 8192 bytes is mapped", p)
		}
	}
	for _, length := range []int64{-1, 1 << 62} {
		if _, err := Map(f, length, nil, 0, 0); !errors.Is(err, ErrLimit) {
			t.Errorf("length %d: %v", length, err)
		}
	}
	f.Close()
	if _, err := Map(f, 8192, nil, 0, 0); err == nil {
		t.Error("a closed file is mapped")
	}
}

// Systems that cannot map files read them, and count the memory.
func TestReadInsteadOfMapped(t *testing.T) {
	before := InUse()
	f, data := somefile(t, 10_000)
	if _, err := readFile(f, 10_000, 100, 12_287); !errors.Is(err, ErrLimit) {
		t.Errorf("limit: %v", err)
	}
	if _, err := readFile(f, 10_001, 100, 0); err == nil {
		t.Error("more is read than there is")
	}
	m, err := readFile(f, 10_000, 100, 12_288)
	if err != nil {
		t.Fatal(err)
	}
	if InUse() != before+12_288 || !bytes.Equal(unsafe.Slice((*byte)(m.addr), 10_000), data) {
		t.Errorf("in use %d, before %d", InUse(), before)
	}
	m.unmap()
	if InUse() != before {
		t.Errorf("in use %d, before %d", InUse(), before)
	}
}
