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
	for name, old := range map[string]content{
		"pairs-v1.pando": thinContent("", keys, vals, facetest.Uint64Values.Same),
		"apart-v1.pando": thinContent("", keys, words, facetest.StringValues.Same),
		"text-v1.pando":  thinContent("", words, vals, facetest.Uint64Values.Same),
	} {
		t.Run(name, func(t *testing.T) { opensOld(t, name, old) })
	}
}

func opensOld(t *testing.T, name string, old content) {
	path, data := oldFile(t, name)
	if err := pando.Verify(path); err != nil {
		t.Fatal(err)
	}
	ix, err := old.made(path, pando.Verified())
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if err := ix.check(); err != nil {
		t.Error(err)
	}
	var again bytes.Buffer
	if _, err := ix.WriteTo(&again); err != nil || !bytes.Equal(again.Bytes(), data) {
		t.Errorf("written again it is another file: %v", err)
	}
}
