package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// BenchmarkOpen opens a file, gets one key and closes it again: the time from
// a file in the system's cache to the first answer. It should not depend on
// the size. The large file takes 1 GiB of disk and twice that of memory while
// it is made.
func BenchmarkOpen(b *testing.B) {
	b.Run("1MiB", benchmarkOpen(60_000))
	b.Run("1GiB", benchmarkOpen(59_600_000))
}

func benchmarkOpen(n int) func(b *testing.B) {
	return func(b *testing.B) {
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = uint64(i) * 3
		}
		path := filepath.Join(b.TempDir(), "index")
		ix := facetest.MustFreeze(b, keys, keys, pando.On(pando.CPU))
		if err := ix.Save(path); err != nil {
			b.Fatal(err)
		}
		ix.Close()
		if info, err := os.Stat(path); err == nil {
			b.ReportMetric(float64(info.Size()), "file-bytes")
		}
		i := 0
		for b.Loop() {
			f, err := pando.Open[uint64, uint64](path)
			if err != nil {
				b.Fatal(err)
			}
			i = (i + 7_919_333) % n
			if v, ok := f.Get(keys[i]); !ok || v != keys[i] {
				b.Fatalf("Get(%d) = %d, %v", keys[i], v, ok)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
