package files_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/seed"
)

// Files of every layout are cut short, flipped and forged, as those of one
// layout are byte by byte in badfile_test.go.
func TestBadFilesOfEveryLayout(t *testing.T) {
	for i, kind := range fuzzFiles {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "index")
			data := kind.make(t, 600)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			for name, do := range map[string]func(*testing.T, fuzzFile, *os.File, []byte){
				"cut": cutShort, "header": flippedHeader, "sections": flippedSections, "numbers": awkwardNumbers,
			} {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Run(name, func(t *testing.T) { do(t, kind, f, data) })
				put(t, f, data, 0)
				f.Close()
				if err := errors.Join(kind.open(path), pando.Verify(path)); err != nil {
					t.Fatalf("after %s: %v", name, err)
				}
			}
		})
	}
}

// waysToOpen opens a file in all ways and gives each one's error.
func waysToOpen(kind fuzzFile, path string) map[string]error {
	_, inspected := pando.Inspect(path)
	return map[string]error{"Open": kind.open(path), "Inspect": inspected, "Verify": pando.Verify(path)}
}

func cutShort(t *testing.T, kind fuzzFile, f *os.File, data []byte) {
	for n := len(data) - 1; n >= 0; n -= 1009 {
		if err := f.Truncate(int64(n)); err != nil {
			t.Fatal(err)
		}
		for way, err := range waysToOpen(kind, f.Name()) {
			if !errors.Is(err, pando.ErrFile) {
				t.Fatalf("%d bytes of %d: %s gives %v", n, len(data), way, err)
			}
		}
	}
}

func flippedHeader(t *testing.T, kind fuzzFile, f *os.File, data []byte) {
	for bit := 0; bit < 8*files.Page; bit += 157 * seed.Step(2) {
		at := bit / 8
		put(t, f, []byte{data[at] ^ 1<<(bit%8)}, at)
		for way, err := range waysToOpen(kind, f.Name()) {
			if !errors.Is(err, pando.ErrFile) {
				t.Fatalf("bit %d: %s gives %v", bit, way, err)
			}
		}
		put(t, f, data[at:at+1], at)
	}
}

// flippedSections changes single bits behind the header: Verify sees all of
// them, and an index that is opened without answers, or is refused.
func flippedSections(t *testing.T, kind fuzzFile, f *os.File, data []byte) {
	rng := seed.Rand(t)
	for at := files.Page + rng.IntN(20); at < len(data); at += 1 + rng.IntN(len(data)/40) {
		put(t, f, []byte{data[at] ^ 1<<rng.IntN(8)}, at)
		if err := pando.Verify(f.Name()); !errors.Is(err, pando.ErrFile) {
			t.Fatalf("byte %d: Verify gives %v", at, err)
		}
		if err := kind.open(f.Name()); err != nil && !errors.Is(err, pando.ErrFile) {
			t.Fatalf("byte %d: Open gives %v", at, err)
		}
		put(t, f, data[at:at+1], at)
	}
}

// awkwardNumbers puts numbers into the header that may overflow, with the
// right checksum.
func awkwardNumbers(t *testing.T, kind fuzzFile, f *os.File, data []byte) {
	le := binary.LittleEndian
	step := seed.Step(3)
	for at := 20 + 4*seed.Rand(t).IntN(step); at < 320; at += 4 * step {
		old := le.Uint64(data[at:])
		for _, x := range []uint64{0, old + 1, 1<<32 - 1, 1 << 60, 1<<64 - 4096} {
			forged(t, f, data, func(page []byte) { le.PutUint64(page[at:], x) })
			for way, err := range waysToOpen(kind, f.Name()) {
				if err != nil && !errors.Is(err, pando.ErrFile) && !errors.Is(err, pando.ErrLayout) {
					t.Fatalf("%#x at %d: %s gives %v", x, at, way, err)
				}
			}
		}
	}
}
