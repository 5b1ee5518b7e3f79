package cpp

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// program compiles the standard library's map, which every compiler has.
func program(t *testing.T) string {
	t.Helper()
	path, err := Libraries()[0].Build(t.TempDir(), "-O0")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no C++ compiler")
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The peer is a map: it answers as Go's does.
func TestPeerIsAMap(t *testing.T) {
	path := program(t)
	testPeer[uint64](t, path)
	testPeer[uint32](t, path)
	if m, err := Start[uint32](filepath.Join(t.TempDir(), "missing")); err == nil {
		m.Close()
		t.Error("a program that is not there starts")
	}
}

func testPeer[W Word](t *testing.T, path string) {
	rng := seed.Rand(t)
	m, err := Start[W](path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	draw := func(n int) (keys, vals []W) {
		for range n {
			keys, vals = append(keys, W(rng.IntN(4000))), append(vals, W(rng.Uint64()))
		}
		return keys, vals
	}
	keys, vals := draw(1000)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	vals = vals[:len(keys)]
	model := map[W]W{}
	for i, k := range keys {
		model[k] = vals[i]
	}
	if err := m.Load(keys, vals); err != nil || m.Len != len(model) || m.Bytes < 0 {
		t.Fatalf("loaded %d of %d, %d bytes: %v", m.Len, len(model), m.Bytes, err)
	}
	for threads := range 4 {
		more, moreVals := draw(100)
		if err := m.Set(more, moreVals); err != nil {
			t.Fatal(err)
		}
		for i, k := range more {
			model[k] = moreVals[i]
		}
		if m.Len != len(model) {
			t.Fatalf("%d entries, not %d", m.Len, len(model))
		}
		askAll(t, m, model, threads)
	}
	if err := m.Clear(); err != nil || m.Len != 0 {
		t.Errorf("%d entries after Clear: %v", m.Len, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Set(keys, vals); err == nil {
		t.Error("a closed peer takes keys")
	}
}

func askAll[W Word](t *testing.T, m *Map[W], model map[W]W, threads int) {
	t.Helper()
	q := make([]W, 4000)
	for i := range q {
		q[i] = W(i)
	}
	vals, found := make([]W, len(q)), make([]bool, len(q))
	hits, err := m.Get(q, vals, found, threads)
	if err != nil || hits != len(model) {
		t.Fatalf("%d hits, not %d: %v", hits, len(model), err)
	}
	for i, k := range q {
		if want, ok := model[k]; found[i] != ok || vals[i] != want {
			t.Fatalf("key %d: %d, %v, not %d, %v", k, vals[i], found[i], want, ok)
		}
	}
}

// Without a compiler or a library the error says which.
func TestWhatIsMissing(t *testing.T) {
	t.Setenv("CXX", filepath.Join(t.TempDir(), "no-compiler"))
	if _, err := Libraries()[0].Build(t.TempDir()); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without a compiler: %v", err)
	}
	dir := t.TempDir()
	fake := filepath.Join(dir, "cxx")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho 'error: #error PEER_LIBRARY_MISSING'\nexit 1\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CXX", fake)
	if _, err := Libraries()[1].Build(dir); !errors.Is(err, ErrNoLibrary) && !strings.Contains(err.Error(), "exec format") {
		t.Errorf("without the library: %v", err)
	}
}
