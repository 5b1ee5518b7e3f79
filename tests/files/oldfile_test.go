package files_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// oldFile unpacks a file that version 1 of the format was written in.
func oldFile(t *testing.T, name string) (path string, data []byte) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "files", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, data
}

// Files that were written when there was but version 1 open, answer, and are
// written again as they were.
func TestOldFilesOpen(t *testing.T) {
	const n = 20
	keys, vals, words := make([]int64, n), make([]uint64, n), make([]string, n)
	for i := range keys {
		keys[i], vals[i], words[i] = int64(i*i)-100, uint64(i), fmt.Sprintf("key %d", i*7)
	}
	t.Run("pairs", opensOld("pairs-v1.pando", keys, vals, facetest.Uint64Values.Same))
	t.Run("apart", opensOld("apart-v1.pando", keys, words, facetest.StringValues.Same, stringCodec))
	t.Run("text", opensOld("text-v1.pando", words, vals, facetest.Uint64Values.Same))
}

func opensOld[K pando.Key, V any](name string, keys []K, vals []V, same func(a, b V) bool, opts ...pando.Option) func(*testing.T) {
	return func(t *testing.T) {
		path, data := oldFile(t, name)
		if err := pando.Verify(path); err != nil {
			t.Fatal(err)
		}
		ix, err := pando.Open[K, V](path, append(opts, pando.Verified())...)
		if err != nil {
			t.Fatal(err)
		}
		defer ix.Close()
		if err := facetest.CheckIndex(ix, facetest.NewModel(keys, vals, same), keys); err != nil {
			t.Error(err)
		}
		var again bytes.Buffer
		if _, err := ix.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), data) {
			t.Errorf("written again it is another file: %v", err)
		}
	}
}
