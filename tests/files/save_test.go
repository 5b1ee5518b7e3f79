package files_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// generation makes an index all of whose values are g, larger the greater g is.
func generation(t testing.TB, g int) *pando.Frozen[uint64, uint64] {
	t.Helper()
	n := 3000 + g%7*1500
	keys, vals := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i), uint64(g)
	}
	return facetest.MustFreeze(t, keys, vals)
}

// generationOf reads the whole file, and says which generation it is. It is an
// error if it is not one whole.
func generationOf(path string) (int, error) {
	if err := pando.Verify(path); err != nil {
		return 0, err
	}
	ix, err := pando.Open[uint64, uint64](path)
	if err != nil {
		return 0, err
	}
	defer ix.Close()
	g, _ := ix.Get(0)
	if want := 3000 + int(g)%7*1500; ix.Len() != want {
		return 0, fmt.Errorf("generation %d has %d entries, want %d", g, ix.Len(), want)
	}
	for k, v := range ix.All() {
		if v != g {
			return 0, fmt.Errorf("generations %d and %d (of key %d) in one file", g, v, k)
		}
	}
	return int(g), nil
}

// alone checks that a directory holds just these files.
func alone(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
}

// An index over a file that is replaced, or removed, serves what it has, and
// can be saved over its own file.
func TestOpenFileReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	first := generation(t, 1)
	defer first.Close()
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	old, err := pando.Open[uint64, uint64](path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	second := generation(t, 2)
	defer second.Close()
	for _, change := range []func() error{
		func() error { return second.Save(path) },
		func() error { return os.Remove(path) },
		func() error { return old.Save(path) },
		func() error { return old.Save(path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for k, v := range old.All() {
			if v != 1 {
				t.Fatalf("the value of %d is of generation %d", k, v)
			}
		}
	}
	if g, err := generationOf(path); g != 1 || err != nil {
		t.Errorf("generation %d, %v", g, err)
	}
	alone(t, dir, "index")
}

// What cannot be saved leaves the old file and nothing else.
func TestSaveRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	old := generation(t, 1)
	defer old.Close()
	if err := old.Save(path); err != nil {
		t.Fatal(err)
	}
	calls := 0
	moody := func(size bool) pando.Option {
		return pando.Values(func(dst []byte, v string) []byte {
			if calls++; size {
				return append(dst, make([]byte, calls%5)...)
			}
			return append(dst, byte(calls))
		}, func(b []byte) (string, error) { return string(b), nil })
	}
	for what, opt := range map[string]pando.Option{
		"other bytes": moody(false), "other sizes": moody(true),
	} {
		ix := facetest.MustFreeze(t, []uint64{3, 1, 2}, []string{"a", "b", "c"}, opt)
		if err := ix.Save(path); !errors.Is(err, pando.ErrValues) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := ix.WriteTo(io.Discard); !errors.Is(err, pando.ErrValues) {
			t.Errorf("%s: WriteTo: %v", what, err)
		}
		ix.Close()
	}
	lists := facetest.MustFreeze(t, []uint64{3, 1, 2}, [][]int{nil, {1}, {2}})
	defer lists.Close()
	if err := lists.Save(path); !errors.Is(err, pando.ErrValues) || !strings.Contains(err.Error(), path) {
		t.Errorf("no codec: %v", err)
	}
	angry := pando.Values(func(dst []byte, v string) []byte { panic("no") }, func(b []byte) (string, error) { return "", nil })
	ix := facetest.MustFreeze(t, []uint64{3, 1, 2}, []string{"a", "b", "c"}, angry)
	defer ix.Close()
	if text := facetest.PanicOf(func() { ix.Save(path) }); text != "no" {
		t.Errorf("a codec that panics: %q", text)
	}
	if g, err := generationOf(path); g != 1 || err != nil {
		t.Errorf("generation %d, %v", g, err)
	}
	alone(t, dir, "index")
}

// limited is a writer that fails after so many bytes.
type limited struct{ left int }

var errFull = errors.New("full")

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// WriteTo returns the writer's error and the number of bytes it took, wherever
// it fails.
func TestWriteToFailingWriter(t *testing.T) {
	keys := []string{"c", "a", "b"}
	ix := facetest.MustFreeze(t, keys, keys, stringCodec)
	defer ix.Close()
	all, err := ix.WriteTo(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	step := seed.Step(23)
	for room := int(seed.Of(t) % uint64(step)); room < int(all); room += step {
		if n, err := ix.WriteTo(&limited{room}); n != int64(room) || !errors.Is(err, errFull) {
			t.Fatalf("room for %d bytes: %d, %v", room, n, err)
		}
	}
}

// Paths that are something else.
func TestSavePaths(t *testing.T) {
	dir := t.TempDir()
	ix := generation(t, 1)
	defer ix.Close()
	if err := ix.Save(filepath.Join(dir, "none", "index")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	for _, path := range []string{dir, "", os.DevNull} {
		if err := ix.Save(path); err == nil || !strings.Contains(err.Error(), "save") {
			t.Errorf("%q: %v", path, err)
		}
	}
	long := filepath.Join(dir, strings.Repeat("x", 255))
	if err := ix.Save(long); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	os.Remove(long)
	alone(t, dir)
}

// A link stays, and the file behind it is replaced; its mode stays too.
func TestSaveThroughLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "index"), filepath.Join(dir, "link")
	if err := os.Symlink("index", link); err != nil {
		t.Skip(err)
	}
	ix := generation(t, 1)
	defer ix.Close()
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := ix.Save(link); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if to, err := os.Readlink(link); to != "index" {
		t.Errorf("the link points to %q, %v", to, err)
	}
	alone(t, dir, "index", "link")
}

// An index that is closed while it is saved leaves the old file or a whole new
// one, and says which: no error means new.
func TestSaveWhileClosing(t *testing.T) {
	rng := seed.Rand(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	first := generation(t, 0)
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	first.Close()
	last := 0
	for g := 1; g < 60; g++ {
		ix := generation(t, g)
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Microsecond)
			ix.Close()
		})
		text := facetest.PanicOf(func() {
			if err := ix.Save(path); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if text == "" {
			last = g
		} else if !facetest.ClosedText(text) {
			t.Errorf("generation %d: %s", g, text)
		}
		if got, err := generationOf(path); got != last || err != nil {
			t.Fatalf("generation %d, %v; want %d", got, err, last)
		}
	}
	alone(t, dir, "index")
}

// Many save to one path at once: the last rename counts, nothing is left over.
func TestSaveConcurrently(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "index")
	var wg sync.WaitGroup
	for g := range 8 {
		ix := generation(t, g)
		wg.Go(func() {
			defer ix.Close()
			for range 5 {
				if err := ix.Save(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		if _, err := generationOf(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	wg.Wait()
	if _, err := generationOf(path); err != nil {
		t.Error(err)
	}
	alone(t, dir, "index")
}

// Readers of an opened index that is closed under them panic rather than give
// nonsense, and never fault.
func TestOpenedCloseWhileRead(t *testing.T) {
	path, _ := saved(t, 20_000)
	keys := make([]uint64, 5000)
	for i := range keys {
		keys[i] = uint64(i * 4)
	}
	for range 20 {
		ix, err := pando.Open[uint64, string](path, stringCodec)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				vals := make([]string, len(keys))
				for {
					text := facetest.PanicOf(func() { ix.GetBatch(keys, vals, nil) })
					if text != "" {
						if !facetest.ClosedText(text) {
							t.Error(text)
						}
						return
					}
					if vals[7] != "28" {
						t.Errorf("value of 28 is %q", vals[7])
					}
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		ix.Close()
		wg.Wait()
	}
}
