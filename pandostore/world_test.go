package pandostore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandostore/internal/disk/crash"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// A Store has no method of a Tree that changes it beside the log.
func TestNothingBesideTheLog(t *testing.T) {
	reads := []string{"All", "At", "Backward", "Batcher", "Ceil", "Count", "CountBatch", "Cursor", "Floor", "Freeze", "Get", "GetAppend", "GetBatch", "GetBatchAppend",
		"GetBatchBytes", "GetBatchBytesAppend", "GetBytes", "GetBytesAppend",
		"Has", "HasBytes", "Len", "Max", "Min", "Prefix", "PrefixCount", "Range", "RangeBatch", "Rank", "RankBatch", "RankBytes", "Save", "Scan",
		"Snapshot", "Stats", "String", "WriteTo"}
	tree, store := reflect.TypeFor[*pando.Tree[string, int]](), reflect.TypeFor[*Store[string, int]]()
	for i := range tree.NumMethod() {
		m := tree.Method(i)
		of, _ := store.MethodByName(m.Name)
		same := of.Type.NumOut() == m.Type.NumOut()
		for j := 0; same && j < m.Type.NumOut(); j++ {
			same = of.Type.Out(j) == m.Type.Out(j)
		}
		n := of.Type.NumOut()
		if !slices.Contains(reads, m.Name) && (n == 0 || of.Type.Out(n-1) != reflect.TypeFor[error]()) {
			t.Errorf("%s changes a store, and returns no error", m.Name)
		}
		if slices.Contains(reads, m.Name) && !same {
			t.Errorf("%s is not the tree's", m.Name)
		}
	}
	var _ pando.Index[string, int] = (*Store[string, int])(nil)
	fs := crash.New()
	s, err := open[string, int](fs, []Option{small})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := []func() error{
		func() error { return s.Set("a", 1) },
		func() error { return s.SetBytes([]byte("b"), 1) },
		func() error { _, _, err := s.Swap("a", 2); return err },
		func() error { _, _, err := s.SwapBytes([]byte("b"), 2); return err },
		func() error { return s.Update("a", func(int, bool) (int, bool) { return 3, true }) },
		func() error { return s.UpdateBytes([]byte("b"), func(int, bool) (int, bool) { return 3, true }) },
		func() error { return s.SetBatch([]string{"c", "d"}, []int{1, 2}) },
		func() error { return s.SetBatchBytes([]byte("efg"), []int32{0, 1, 2, 3}, []int{1, 2, 3}) },
		func() error { _, err := s.DeleteBatchBytes([]byte("cd"), []int32{0, 1, 2}, nil); return err },
		func() error { _, err := s.DeleteBatch([]string{"e"}, make([]bool, 1)); return err },
		func() error { _, _, err := s.Delete("a"); return err },
		func() error { _, _, err := s.DeleteBytes([]byte("b")); return err },
		func() error {
			return s.Apply([]pando.Op{pando.OpSet, pando.OpDelete}, []string{"h", "f"}, []int{1, 2}, nil)
		},
		func() error { _, err := s.DeleteRange("x", "y"); return err },
		func() error { _, _, _, err := s.PopMin(); return err },
		func() error { _, _, _, err := s.PopMax(); return err },
	}
	for i, do := range all {
		before := s.Log().Next
		if err := do(); err != nil || s.Log().Next == before {
			t.Errorf("change %d: %v; %d operations before, %d after", i, err, before, s.Log().Next)
		}
		if err := reread(fs, s); err != nil {
			t.Errorf("after change %d: %v", i, err)
		}
	}
}

// reread compares a store with what another process would find.
func reread(fs *crash.Folder, s *Store[string, int]) error {
	back, err := open[string, int](fs.Clone(), []Option{small})
	if err != nil {
		return err
	}
	defer back.Close()
	var a, b bytes.Buffer
	_, err = s.WriteTo(&a)
	_, err2 := back.WriteTo(&b)
	if err = errors.Join(err, err2); err == nil && !bytes.Equal(a.Bytes(), b.Bytes()) {
		err = errors.New("what is in the log differs from what is seen")
	}
	return err
}

// A folder that is in use, is no store, or is one of other types or of a later version, is
// told apart.
func TestOtherFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "store")
	s, err := Open[int64, string](dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Set(1, "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open[int64, string](dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Error("a store in use: ", err)
	}
	if _, err := OpenCheckpoint[int64, string](dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("no checkpoint yet: ", err)
	}
	if err := s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(2, "two"); err != nil {
		t.Fatal(err)
	}
	f, err := OpenCheckpoint[int64, string](dir)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Get(1); v != "one" || !ok || f.Len() != 1 {
		t.Error("the checkpoint has", v, ok, f.Len())
	}
	f.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(3, "three"); !errors.Is(err, pando.ErrClosed) {
		t.Error("after Close: ", err)
	}
	if _, err := Open[int32, string](dir); !errors.Is(err, pando.ErrType) {
		t.Error("other keys: ", err)
	}
	if _, err := Open[int64, []byte](dir); !errors.Is(err, pando.ErrType) {
		t.Error("other values: ", err)
	}
	if _, err := Open[int64, map[string]int](filepath.Join(dir, "maps")); !errors.Is(err, pando.ErrValues) {
		t.Error("values without a codec: ", err)
	}
	os.RemoveAll(filepath.Join(dir, "maps"))
	file := filepath.Join(dir, log.Name(2))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[12]++
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open[int64, string](dir); !errors.Is(err, pando.ErrVersion) {
		t.Error("a later version: ", err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter.txt"), []byte("Dear"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open[int64, string](other); !errors.Is(err, pando.ErrFile) {
		t.Error("a folder that is no store: ", err)
	}
	if _, err := Open[int64, string](file); err == nil {
		t.Error("a file is opened as a store")
	}
	for _, o := range []Option{nil, SyncEvery(0), CheckpointAfter(-1), Tree(pando.Workers(-1))} {
		if _, err := Open[int64, string](t.TempDir(), o); !errors.Is(err, pando.ErrOption) {
			t.Error(err)
		}
	}
}

// A tree that is full refuses changes as without a store; deletions make room; and what was
// refused is not there when the store is opened again, with or without a limit.
func TestMemoryLimit(t *testing.T) {
	fs := crash.New()
	limit := Tree(pando.MemoryLimit(1 << 20))
	s, err := open[uint64, uint64](fs, []Option{limit, medium})
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]uint64{}
	keys, vals := make([]uint64, 4000), make([]uint64, 4000)
	refused := 0
	for n := range uint64(200) {
		for i := range keys {
			keys[i], vals[i] = n<<32|uint64(i)*7919, n
		}
		switch err := s.SetBatch(keys, vals); {
		case err == nil:
			for i, k := range keys {
				want[k] = vals[i]
			}
		case errors.Is(err, pando.ErrMemoryLimit):
			refused++
		default:
			t.Fatal(err)
		}
		if n == 150 {
			if _, err := s.DeleteRange(0, 3<<32); err != nil {
				t.Fatal(err)
			}
			for k := range want {
				if k <= 3<<32 {
					delete(want, k)
				}
			}
		}
	}
	// Many writers at once, beyond the limit.
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(3000) {
				k := 1<<63 | g<<40 | i*104729
				if err := s.Set(k, i); err == nil {
					mu.Lock()
					want[k] = i
					mu.Unlock()
				} else if !errors.Is(err, pando.ErrMemoryLimit) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if refused == 0 {
		t.Error("the limit was never reached")
	}
	same := func(s *Store[uint64, uint64], when string) {
		t.Helper()
		n := 0
		for k, v := range s.All() {
			if n++; want[k] != v {
				t.Fatalf("%s: key %d has %d, want %d", when, k, v, want[k])
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d entries, want %d", when, n, len(want))
		}
	}
	same(s, "before")
	image := fs.Clone()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	back, err := open[uint64, uint64](image, []Option{medium})
	if err != nil {
		t.Fatal(err)
	}
	same(back, "after")
	back.Close()
}

// The function of an Update that panics does so in the goroutine that called it, and others
// go on.
func TestUpdatePanics(t *testing.T) {
	s, err := open[int, int](crash.New(), []Option{small})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				func() {
					defer func() {
						if p := recover(); (p == "mine") != (g == 0) {
							t.Errorf("goroutine %d: %v", g, p)
						}
					}()
					err := s.Update(1, func(old int, had bool) (int, bool) {
						if g == 0 {
							panic("mine")
						}
						return old + 1, true
					})
					if err != nil {
						t.Error(i, err)
					}
				}()
			}
		})
	}
	wg.Wait()
	if v, _ := s.Get(1); v != 7*50 {
		t.Errorf("%d updates, want %d", v, 7*50)
	}
}

// A store writes checkpoints by itself when the log is long, and then the log is short.
func TestCheckpointsByItself(t *testing.T) {
	fs := crash.New()
	s, err := open[uint64, uint64](fs, []Option{CheckpointAfter(20 << 10), small})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(4000) {
		if err := s.Set(i%100, i); err != nil {
			t.Fatal(err)
		}
	}
	for until := time.Now().Add(10 * time.Second); s.Log().Checkpoints < 3 && time.Now().Before(until); {
		if err := s.Set(1, 1); err != nil {
			t.Fatal(err)
		}
	}
	l := s.Log()
	if l.Checkpoints < 3 || l.Failed != nil || l.Checkpoint == 0 {
		t.Errorf("%+v", l)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var seen []Progress
	s, err = open[uint64, uint64](fs, []Option{small, Recovering(func(p Progress) { seen = append(seen, p) })})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if f := s.Log().Found; f.CheckpointEntries != 100 || !f.Clean || f.Torn != 0 || f.Segments == 0 {
		t.Errorf("found %+v", f)
	}
	if n := len(seen); n == 0 || seen[n-1].Done != seen[n-1].Total {
		t.Errorf("progress %v", seen)
	}
}

// Keys and values may be longer than frames and segments.
func TestLongValues(t *testing.T) {
	fs := crash.New()
	want := map[string][]byte{}
	for life := range 3 {
		s, err := open[string, []byte](fs, []Option{small})
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != len(want) {
			t.Fatalf("%d entries, want %d", s.Len(), len(want))
		}
		for k, v := range want {
			if got, ok := s.Get(k); !ok || !bytes.Equal(got, v) {
				t.Fatalf("a value of %d bytes is one of %d, %t", len(v), len(got), ok)
			}
		}
		var keys []string
		var vals [][]byte
		for i, n := range []int{0, 1, 100, 5000, 30000, 3} {
			k, v := strings.Repeat("k", n*(life+1)), bytes.Repeat([]byte{byte(i)}, (30000-n)*life)
			want[k] = v
			keys, vals = append(keys, k), append(vals, v)
			if i%2 == 0 {
				if err := s.Set(k, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(s.SetBatch(keys, vals), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// A value that cannot be written is refused before anything is logged, and a codec that
// panics does so in its caller.
func TestCodec(t *testing.T) {
	encode := func(dst []byte, v []string) []byte {
		if len(v) == 3 {
			panic("three")
		}
		return append(dst, strings.Join(v, " ")...)
	}
	decode := func(b []byte) ([]string, error) { return strings.Fields(string(b)), nil }
	fs := crash.New()
	opts := []Option{small, Tree(pando.Values(encode, decode))}
	s, err := open[int, []string](fs, opts)
	if err != nil {
		t.Fatal(err)
	}
	three := []string{"a", "b", "c"}
	for i, do := range []func() error{
		func() error { return s.Set(1, three) },
		func() error { return s.SetBatch([]int{1, 2}, [][]string{{"x"}, three}) },
		func() error { return s.Update(1, func([]string, bool) ([]string, bool) { return three, true }) },
	} {
		func() {
			defer func() {
				if p := recover(); p != "three" {
					t.Errorf("change %d: %v", i, p)
				}
			}()
			t.Error(do())
		}()
	}
	if err := errors.Join(s.Set(5, []string{"five", "5"}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = open[int, []string](fs, opts); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if v, ok := s.Get(5); !ok || !slices.Equal(v, []string{"five", "5"}) || s.Len() != 1 {
		t.Error(v, ok, s.Len())
	}
}

// With SyncEvery the log is synced though nobody asks for it: soon no crash takes back what
// was acknowledged.
func TestSyncEvery(t *testing.T) {
	t.Parallel()
	fs, rng := crash.New(), seed.Rand(t)
	s := must[uint64, uint64](t, fs, SyncEvery(time.Millisecond), CheckpointAfter(0))
	defer s.Close()
	for key := range uint64(3) {
		try(t, s.Set(key, key))
		for end := time.Now().Add(20 * time.Second); !outlives(t, fs, rng, key); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the log is not synced")
			}
		}
	}
}

// outlives reports whether a key is there after each of many crashes, half of which would
// take it back if it were not on disk.
func outlives(t *testing.T, fs *crash.Folder, rng *rand.Rand, key uint64) bool {
	for range 20 {
		s := must[uint64, uint64](t, fs.Image(rng))
		has := s.Has(key)
		s.Close()
		if !has {
			return false
		}
	}
	return true
}

// A store has copies of values: the caller's slices may change when a method has returned.
func TestValuesAreCopied(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			fs := crash.New()
			s := must[int, []byte](t, fs, mode...)
			val := []byte("as it was given to the store")
			want := string(val)
			try(t, s.Set(1, val), s.SetBatch([]int{2, 3}, [][]byte{val, val}), s.Update(4, func([]byte, bool) ([]byte, bool) { return val, true }))
			clear(val)
			for range 2 {
				for k := 1; k <= 4; k++ {
					if v, _ := s.Get(k); string(v) != want {
						t.Errorf("key %d: %q, want %q", k, v, want)
					}
				}
				try(t, s.Close())
				s = must[int, []byte](t, fs, mode...)
			}
			s.Close()
		})
	}
}

// A recovery has a few segments in memory, however many cores there are.
func TestRecoveryReadsFew(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	fs := crash.New()
	s := must[uint64, uint64](t, fs, small, CheckpointAfter(0))
	for i := range uint64(1000) {
		try(t, s.SetBatch([]uint64{i, i + 1000}, []uint64{i, i}))
	}
	try(t, s.Close())
	var reads atomic.Int64
	fs.SetFailRead(func(what string) error {
		if strings.HasPrefix(what, "read log") {
			reads.Add(1)
		}
		return nil
	})
	most := int64(0)
	s = must[uint64, uint64](t, fs, small, Recovering(func(p Progress) {
		if most > 0 {
			return
		}
		for still := 0; still < 20; still++ { // until all that check a segment wait for this
			time.Sleep(time.Millisecond)
			if n := reads.Load(); n != most {
				most, still = n, 0
			}
		}
	}))
	defer s.Close()
	if n := s.Log().Found.Segments; n < 10 || most > mostAtOnce+1 { // one for the head of the first
		t.Errorf("%d of %d segments were read when the first was checked", most, n)
	}
}
