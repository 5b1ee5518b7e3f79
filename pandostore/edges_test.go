package pandostore

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/log"
)

// within fails a test whose store is stuck.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s: stuck", what)
	}
}

// must returns a store that can be opened.
func must[K pando.Key, V any](t *testing.T, fs *crash.Folder, opts ...Option) *Store[K, V] {
	t.Helper()
	s, err := open[K, V](fs, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// try fails a test for an error.
func try(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A range whose ends are longer than a frame is one frame. Salvage cuts before frames that
// no program can have written.
func TestLongRange(t *testing.T) {
	fs := crash.New()
	s := must[string, int](t, fs, small)
	long := strings.Repeat("z", 10000)
	try(t, s.Set("a", 1), s.Set("b"+long, 2))
	if n, err := s.DeleteRange("b", long); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	try(t, s.Set("c", 3), s.Close())
	s = must[string, int](t, fs, small)
	if s.Len() != 2 {
		t.Errorf("%d entries, want 2", s.Len())
	}
	half := append(s.c.log.Begin(), make([]byte, 8)...)
	try(t, s.c.log.EndPart(half, log.DeleteRange, 1), s.c.log.Commit(), s.Set("d", 4), s.Close())
	if _, err := open[string, int](fs, []Option{small}); !errors.Is(err, pando.ErrFile) {
		t.Error("half a range: ", err)
	}
	out := crash.New()
	if saved, err := salvage(fs, out); err != nil || saved.Damage == nil {
		t.Errorf("salvage: %+v, %v", saved, err)
	}
	if s = must[string, int](t, out, small); s.Len() != 2 {
		t.Errorf("%d entries are saved, want 2", s.Len())
	}
	s.Close()
}

// A store opens again with its own options, however full its tree was, and whatever a
// crash has left in the log that the tree would refuse. What is over the limit then stays,
// and is refused nothing but more memory.
func TestLimitAgain(t *testing.T) {
	opts := []Option{Tree(pando.MemoryLimit(1 << 20)), medium, CheckpointAfter(0), NoSync()}
	again := func(t *testing.T, fs *crash.Folder, want map[uint64]uint64) *Store[uint64, uint64] {
		t.Helper()
		s := must[uint64, uint64](t, fs, opts...)
		if got := maps.Collect(s.All()); !maps.Equal(got, want) {
			t.Fatalf("%d entries, want %d", len(got), len(want))
		}
		return s
	}
	batch := func(n uint64) (keys, vals []uint64) {
		keys, vals = make([]uint64, 1000), make([]uint64, 1000)
		for i := range keys {
			keys[i] = n<<32 | uint64(i)*7919
		}
		return keys, vals
	}
	t.Run("replay", func(t *testing.T) { // which gathers more than the tree had at any time
		fs := crash.New()
		s := must[uint64, uint64](t, fs, opts...)
		for n := range uint64(60) {
			keys, vals := batch(n)
			try(t, s.SetBatch(keys, vals))
			if n > 5 {
				keys, _ = batch(n - 5)
				_, err := s.DeleteBatch(keys, nil)
				try(t, err)
			}
		}
		want := maps.Collect(s.All())
		try(t, s.Close())
		again(t, fs, want).Close()
	})
	t.Run("checkpoint", func(t *testing.T) {
		fs := crash.New()
		s := must[uint64, uint64](t, fs, opts...)
		k := uint64(0)
		for s.Set(k*7919, k) == nil {
			k++
		}
		want := maps.Collect(s.All())
		try(t, s.Checkpoint(), s.Close())
		s = again(t, fs, want)
		defer s.Close()
		full := error(nil)
		for n := uint64(0); full == nil && n < 1000; n++ {
			full = s.SetBatch(batch(1<<20 | n))
		}
		if !errors.Is(full, pando.ErrMemoryLimit) {
			t.Error("the limit does not count again: ", full)
		}
		_, err := s.DeleteRange(0, math.MaxUint64/2)
		try(t, err, s.Set(1, 1))
	})
	t.Run("values", func(t *testing.T) { // that lie apart from the tree
		fs := crash.New()
		s := must[string, []byte](t, fs, opts...)
		k := 0
		for ; s.Set(fmt.Sprint(k), make([]byte, 1000)) == nil; k++ {
		}
		try(t, s.Close())
		s = must[string, []byte](t, fs, opts...)
		defer s.Close()
		if s.Len() != k {
			t.Fatalf("%d entries, want %d", s.Len(), k)
		}
		if err := s.Set("more", make([]byte, 10_000)); !errors.Is(err, pando.ErrMemoryLimit) {
			t.Error("the limit does not count again: ", err)
		}
	})
	t.Run("crash", func(t *testing.T) {
		fs := crash.New()
		s := must[uint64, uint64](t, fs, opts...)
		defer s.Close()
		for n := uint64(0); ; n++ {
			writes := 0
			var image *crash.Folder
			fs.SetBefore(func(c int, what string) {
				if strings.HasPrefix(what, "write log") && !strings.Contains(what, log.Temporary) {
					if writes++; writes == 2 {
						image = fs.Clone() // the batch is there, the refusal is not
					}
				}
			})
			keys, vals := batch(n)
			if err := s.SetBatch(keys, vals); err != nil {
				want := maps.Collect(s.All())
				for i, k := range keys {
					want[k] = vals[i]
				}
				again(t, image, want).Close()
				return
			}
		}
	})
}

// A function that ends its goroutine ends that of its caller, and nobody else's.
func TestUpdateExits(t *testing.T) {
	s := must[int, int](t, crash.New(), small)
	var wg sync.WaitGroup
	var returned atomic.Int64
	for g := range 8 {
		wg.Go(func() {
			for range 20 {
				err := s.Update(1, func(old int, _ bool) (int, bool) {
					if g == 0 {
						runtime.Goexit()
					}
					return old + 1, true
				})
				if err != nil || g == 0 {
					t.Error(g, err)
				}
				returned.Add(1)
			}
		})
	}
	within(t, "Update", wg.Wait)
	within(t, "Set", func() { try(t, s.Set(2, 2)) })
	within(t, "Close", func() { try(t, s.Close()) })
	if returned.Load() != 7*20 {
		t.Errorf("%d updates returned", returned.Load())
	}
}

// The function of an Update may change the value that it gets, also if another goroutine has just
// set it: that one's memory stays as it is, and so does its value.
func TestUpdateChangesItsOwn(t *testing.T) {
	s := must[string, []byte](t, crash.New(), small)
	defer s.Close()
	var wg sync.WaitGroup
	in, out := make(chan struct{}), make(chan struct{})
	behind := func(n int, do func()) { // does it when as many requests wait
		for {
			s.c.seq.mu.Lock()
			waiting := len(s.c.seq.waiting)
			s.c.seq.mu.Unlock()
			if waiting == n {
				wg.Go(do)
				return
			}
			runtime.Gosched()
		}
	}
	wg.Go(func() {
		try(t, s.Update("leader", func([]byte, bool) ([]byte, bool) {
			close(in)
			<-out
			return nil, true
		}))
	})
	<-in
	mine := []byte("a value")
	behind(0, func() { try(t, s.Set("key", mine)) })
	behind(1, func() {
		defer func() { recover() }()
		s.Update("key", func(old []byte, had bool) ([]byte, bool) {
			if !had || string(old) != "a value" {
				t.Errorf("%q, %t", old, had)
			}
			clear(old)
			panic("mine")
		})
	})
	behind(2, func() { close(out) })
	wg.Wait()
	if v, _ := s.Get("key"); string(v) != "a value" || string(mine) != "a value" {
		t.Errorf("%q was set, and is %q", mine, v)
	}
}

// A leader that panics leaves a store that reads, and refuses changes.
func TestLeaderPanics(t *testing.T) {
	fs := crash.New()
	s := must[int, int](t, fs, small)
	try(t, s.Set(1, 1))
	fs.SetBefore(func(_ int, what string) {
		if strings.HasPrefix(what, "write log-") && !strings.Contains(what, ".tmp") { // by the leader, not by whoever makes the next segment
			panic("disk")
		}
	})
	within(t, "Set", func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		s.Set(2, 2)
	})
	fs.SetBefore(nil)
	within(t, "Set", func() {
		if err := s.Set(3, 3); !errors.Is(err, ErrReadOnly) {
			t.Error(err)
		}
	})
	within(t, "Close", func() { s.Close() })
	if s = must[int, int](t, fs, small); s.Len() != 1 {
		t.Error(s.Len())
	}
	s.Close()
}

// moody is a value that can be written once.
type moody struct{ left *int }

func (m moody) MarshalBinary() ([]byte, error) {
	if *m.left--; *m.left < 0 {
		return nil, errors.New("moody")
	}
	return []byte{1}, nil
}

func (m *moody) UnmarshalBinary([]byte) error { m.left = new(int); return nil }

// A value is encoded once, by the goroutine that gives it.
func TestMoodyValues(t *testing.T) {
	s := must[int, moody](t, crash.New(), small)
	once := func() moody { n := 1; return moody{&n} }
	try(t, s.Set(1, once()), s.SetBatch([]int{2, 3}, []moody{once(), once()}),
		s.Update(4, func(moody, bool) (moody, bool) { return once(), true }),
		s.Apply([]pando.Op{pando.OpSet, pando.OpDelete}, []int{5, 1}, []moody{once(), {}}, nil))
	if err := s.Set(6, moody{new(int)}); !errors.Is(err, pando.ErrValues) {
		t.Error(err)
	}
	try(t, s.Set(7, once()))
	if s.Len() != 5 {
		t.Error(s.Len())
	}
	try(t, s.Close())
}

// Salvage says what Open says of a segment that has lost its seal.
func TestSalvageWithoutSeal(t *testing.T) {
	fs := crash.New()
	opts := []Option{small, CheckpointAfter(0)}
	s := must[uint64, uint64](t, fs, opts...)
	for i := range uint64(100) {
		try(t, s.Set(i, i))
	}
	try(t, s.Close())
	d := fs.Bytes(log.Name(2))
	n := len(d)
	for n > 0 && d[n-1] == 0 {
		n--
	}
	clear(d[(n-1)&^63 : n])
	_, want := open[uint64, uint64](fs.Clone(), opts)
	if !errors.Is(want, pando.ErrFile) {
		t.Fatal(want)
	}
	out := crash.New()
	saved, err := salvage(fs, out)
	if err != nil || saved.Damage == nil || !strings.Contains(want.Error(), saved.Damage.Error()) {
		t.Errorf("salvage: %+v, %v; Open: %v", saved, err, want)
	}
	if s = must[uint64, uint64](t, out, opts...); s.Len() == 0 || s.Len() >= 100 {
		t.Error(s.Len())
	}
	s.Close()
}

// failWith makes some calls fail, and counts them.
func failWith(fs *crash.Folder, err error, of func(what string) bool) *atomic.Int64 {
	n := new(atomic.Int64)
	fs.SetFail(func(_ int, what string) crash.Fault {
		if !of(what) {
			return crash.Fault{}
		}
		n.Add(1)
		return crash.Fault{Err: err}
	})
	return n
}

// A disk that has no room for a checkpoint, not even for the segment that it begins, has
// room for changes; and one that was full for a moment is not taken for full later.
func TestFullDisk(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, CheckpointAfter(0), medium)
	try(t, s.Set(1, 1))
	failWith(fs, syscall.ENOSPC, func(what string) bool { return strings.Contains(what, log.Temporary) })
	if err := s.Checkpoint(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	try(t, s.Set(2, 2))
	fs.SetFail(nil)
	try(t, s.Set(3, 3), s.Checkpoint(), s.Close())

	fs = crash.New()
	s = must[uint64, uint64](t, fs, CheckpointAfter(0), small)
	var failed atomic.Bool
	failWith(fs, syscall.ENOSPC, func(what string) bool {
		// The second segment may have been made already.
		return strings.HasPrefix(what, "write "+log.Name(3)+log.Temporary) && !failed.Swap(true)
	})
	for i := range uint64(400) {
		try(t, s.Set(i, i))
	}
	fs.SetFail(nil)
	try(t, s.Close())
	if s = must[uint64, uint64](t, fs, small); s.Len() != 400 || !failed.Load() {
		t.Error(s.Len(), failed.Load())
	}
	s.Close()
}

// A store whose disk has no room for another frame is opened, to be read.
func TestOpenOnFullDisk(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, small)
	try(t, s.Set(1, 1), s.Close())
	writes := 0
	failWith(fs, syscall.ENOSPC, func(what string) bool {
		if strings.HasPrefix(what, "write log") {
			writes++
		}
		return writes > 1 // the first puts what is there in its place again
	})
	s = must[uint64, uint64](t, fs, small)
	if v, ok := s.Get(1); v != 1 || !ok {
		t.Error(v, ok)
	}
	if err := s.Set(2, 2); !errors.Is(err, ErrReadOnly) || !errors.Is(err, syscall.ENOSPC) || !errors.Is(s.Log().ReadOnly, ErrReadOnly) {
		t.Error(err)
	}
	s.Close()
	fs.SetFail(nil)
	s = must[uint64, uint64](t, fs, small)
	try(t, s.Set(2, 2), s.Close())
}

// A checkpoint that the store begins by itself and that fails is not begun again before
// the log has grown by as much.
func TestFailedCheckpointWaits(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, CheckpointAfter(0), medium)
	for i := range uint64(600) {
		try(t, s.Set(i, i))
	}
	try(t, s.Close())
	s = must[uint64, uint64](t, fs, CheckpointAfter(20<<10), medium)
	tries := failWith(fs, syscall.ENOSPC, func(what string) bool { return strings.HasPrefix(what, "create checkpoint") })
	before := s.Log().Bytes
	for i := range uint64(60) {
		try(t, s.Set(i, i))
		for s.c.checkpoints.busy.Load() {
			runtime.Gosched()
		}
	}
	if l := s.Log(); tries.Load() != 1 || l.Failed == nil || l.Bytes <= before {
		t.Errorf("%d checkpoints were begun; %v; %d bytes of log, were %d", tries.Load(), l.Failed, l.Bytes, before)
	}
	fs.SetFail(nil)
	try(t, s.Close())
}

// The function of an update may look at the log.
func TestLogInUpdate(t *testing.T) {
	s := must[int, int](t, crash.New(), small)
	within(t, "Log", func() {
		try(t, s.Update(1, func(int, bool) (int, bool) { return int(s.Log().Next), true }))
	})
	try(t, s.Close())
}

// Keys that are too long are refused by whatever takes one, before anything is logged.
func TestHugeKeys(t *testing.T) {
	b := make([]byte, index.MostColumns) // of which nobody reads a byte
	huge := unsafe.String(&b[0], len(b))
	s := must[string, int](t, crash.New(), small)
	next := s.Log().Next
	for i, do := range []func() error{
		func() error { return s.Set(huge, 1) },
		func() error { _, _, err := s.Swap(huge, 1); return err },
		func() error { _, _, err := s.Delete(huge); return err },
		func() error { return s.Update(huge, func(int, bool) (int, bool) { return 1, true }) },
		func() error { _, err := s.DeleteRange("", huge); return err },
		func() error { _, err := s.DeleteBatch([]string{huge}, nil); return err },
		func() error { return s.SetBatch([]string{huge}, []int{1}) },
	} {
		if err := do(); !errors.Is(err, pando.ErrTooLong) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	try(t, s.Set("b", 1))
	if s.Log().Next != next+1 {
		t.Errorf("%d operations were logged", s.Log().Next-next)
	}
	try(t, s.Close())
}

// What the tree refuses of a group is one frame.
func TestRefusedTogether(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, Tree(pando.MemoryLimit(1<<20)), CheckpointAfter(0))
	keys, k := make([]uint64, 100), uint64(0)
	for full := error(nil); full == nil; full = s.SetBatch(keys, keys) {
		for i := range keys {
			keys[i] = k * 7919
			k++
		}
	}
	const n = 20
	var syncs atomic.Int64
	var wg sync.WaitGroup
	fs.SetBefore(func(_ int, what string) {
		if strings.HasPrefix(what, "sync log") && syncs.Add(1) == 1 {
			for waiting := 0; waiting < n; { // until the others are one group
				runtime.Gosched()
				s.c.seq.mu.Lock()
				waiting = len(s.c.seq.waiting)
				s.c.seq.mu.Unlock()
			}
		}
	})
	wg.Go(func() { s.Delete(math.MaxUint64) })
	for syncs.Load() == 0 {
		runtime.Gosched()
	}
	refused := new(atomic.Int64)
	for g := range uint64(n) {
		wg.Go(func() {
			if errors.Is(s.SetBatch(sparse(g)), pando.ErrMemoryLimit) {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if refused.Load() < n/2 || syncs.Load() > 3 {
		t.Errorf("%d refused, %d syncs", refused.Load(), syncs.Load())
	}
	want := s.Len()
	try(t, s.Close())
	if s = must[uint64, uint64](t, fs); s.Len() != want {
		t.Errorf("%d entries, want %d", s.Len(), want)
	}
	s.Close()
}

// sparse returns keys that share no leaf with others.
func sparse(g uint64) (keys, vals []uint64) {
	keys = make([]uint64, 4000)
	for i := range keys {
		keys[i] = 1<<60 | g<<40 | uint64(i)
	}
	return keys, keys
}

// Refusals are found in any order, and overlapping.
func TestJoined(t *testing.T) {
	got := joined([]refusal{{10, 12}, {1, 3}, {12, 13}, {2, 5}, {20, 21}})
	if want := fmt.Sprint([]refusal{{1, 5}, {10, 13}, {20, 21}}); fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// A file that is no longer needed and cannot be removed, since a reader has it open, say,
// is in nobody's way.
func TestCannotRemove(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, small, CheckpointAfter(0))
	try(t, s.Set(1, 1), s.Checkpoint())
	failWith(fs, syscall.EBUSY, func(what string) bool { return strings.HasPrefix(what, "remove ") })
	try(t, s.Set(2, 2), s.Checkpoint(), s.Set(3, 3), s.Checkpoint(), s.Close())
	before, _ := fs.Names()
	s = must[uint64, uint64](t, fs, small)
	if s.Len() != 3 {
		t.Error(s.Len())
	}
	fs.SetFail(nil)
	try(t, s.Checkpoint(), s.Close())
	if after, _ := fs.Names(); len(after) >= len(before) {
		t.Errorf("%v are left of %v", after, before)
	}
}

// A folder that is no store stays as it is, and a file in the place of the lock, too.
func TestForeignFolders(t *testing.T) {
	target := filepath.Join(t.TempDir(), "letter")
	try(t, os.WriteFile(target, []byte("Dear"), 0o600))
	for name, files := range map[string][]string{
		"files":     {"letter.txt", "LOCK"},
		"lock":      {"LOCK"},
		"temporary": {"checkpoint-of-my-model.tmp"},
	} {
		dir := t.TempDir()
		for _, f := range files {
			try(t, os.WriteFile(filepath.Join(dir, f), []byte("mine"), 0o666))
		}
		if _, err := Open[int, int](dir); !errors.Is(err, pando.ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
		there, err := os.ReadDir(dir)
		if len(there) != len(files) {
			t.Errorf("%s: %v, %v", name, there, err)
		}
		for _, f := range files {
			if b, err := os.ReadFile(filepath.Join(dir, f)); string(b) != "mine" {
				t.Errorf("%s: %s is %q, %v", name, f, b, err)
			}
		}
	}
	dir := t.TempDir()
	if os.Symlink(target, filepath.Join(dir, "LOCK")) != nil || runtime.GOOS == "windows" {
		return
	}
	if _, err := Open[int, int](dir); err == nil {
		t.Error("a link is taken for the lock")
	}
	if b, _ := os.ReadFile(target); string(b) != "Dear" {
		t.Errorf("through a link a file became %q", b)
	}
}

// A lock counts although its file was removed.
func TestLockRemoved(t *testing.T) {
	dir := t.TempDir()
	s, err := Open[int, int](dir)
	try(t, err)
	if os.Remove(filepath.Join(dir, "LOCK")) != nil || runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		s.Close()
		t.Skip("files in use cannot be removed here, or folders not locked")
	}
	if _, err := Open[int, int](dir); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	try(t, s.Set(1, 1), s.Close())
	s, err = Open[int, int](dir)
	try(t, err, s.Close())
}

// Frames whose payload is no columns are damage.
func TestForgedPayload(t *testing.T) {
	for name, f := range map[string]struct {
		kind log.FrameKind
		n    int
	}{"mixed": {log.Mixed, 5}, "delete": {log.Delete, 1}, "set": {log.Set, 3}, "refused": {log.Refused, 0}, "range": {log.DeleteRange, 1}, "records": {log.Records, 1}} {
		fs := crash.New()
		s := must[uint64, uint64](t, fs, small)
		try(t, s.c.log.End(append(s.c.log.Begin(), 1, 1, 1, 1, 1), f.kind, f.n), s.Close())
		if _, err := open[uint64, uint64](fs, []Option{small}); !errors.Is(err, pando.ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A checkpoint of another store under the name of this one's is told apart.
func TestOtherCheckpoint(t *testing.T) {
	var dirs [2]*crash.Folder
	name := ""
	for i := range dirs {
		dirs[i] = crash.New()
		s := must[uint64, uint64](t, dirs[i], small)
		try(t, s.Set(uint64(i), 1), s.Checkpoint(), s.Set(uint64(i)+10, 1), s.Close())
		names, _ := dirs[i].Names()
		name = names[0]
	}
	must[uint64, uint64](t, dirs[0], small).Close()
	dirs[0].SetBytes(name, dirs[1].Bytes(name))
	if _, err := open[uint64, uint64](dirs[0], []Option{small}); !errors.Is(err, pando.ErrFile) {
		t.Error(err)
	}
	r := recovery{core: &core{dir: dirs[0]}}
	if err := r.verify(); !errors.Is(err, pando.ErrFile) {
		t.Error("Verify: ", err)
	}
	if got, err := salvage(dirs[0], crash.New()); !errors.Is(err, pando.ErrFile) {
		t.Errorf("Salvage: %+v, %v", got, err)
	}
}

// A note is whatever the user likes, and has a last line of the store's.
func TestNotes(t *testing.T) {
	for _, text := range []string{"", "a", "\n", "a\n", "a\nb", "checkpoint of store 0123456789abcdef", "checkpoint of store ", strings.Repeat("x", MaxNote)} {
		note := noteOf(text, 0xabc)
		if got, store, ok := readNote(note); got != text || store != 0xabc || !ok || len(note) > files.MaxNote {
			t.Errorf("%q is read as %q of store %x, %v", note, got, store, ok)
		}
	}
	for _, note := range []string{"", "a", "checkpoint of store ", "checkpoint of store 1", "acheckpoint of store 0123456789abcdef", "checkpoint of store 0123456789abcdef\n", "checkpoint of store 0123456789ABCDEF"} {
		if text, store, ok := readNote(note); ok {
			t.Errorf("%q is read as %q of store %x", note, text, store)
		}
	}
	fs := crash.New()
	note := func() string {
		names, _ := fs.Names()
		_, note, err := headOf(fs, names[0])
		try(t, err)
		return note
	}
	for _, c := range []struct{ given, want string }{{"", ""}, {"first", "first"}, {"", "first"}, {"second", "second"}} {
		s := must[uint64, uint64](t, fs, small, Note(c.given))
		try(t, s.Checkpoint(), s.Close())
		if got := note(); got != c.want {
			t.Errorf("with Note(%q) it is %q, want %q", c.given, got, c.want)
		}
	}
	if _, err := open[uint64, uint64](fs, []Option{Note(strings.Repeat("x", MaxNote+1))}); !errors.Is(err, pando.ErrOption) {
		t.Error(err)
	}
}

// A codec that panics while the store writes a checkpoint by itself ends no program.
func TestCodecPanicsBehind(t *testing.T) {
	var armed atomic.Bool
	v := pando.Values(func(dst []byte, v *int) []byte {
		if armed.Load() {
			panic("codec")
		}
		return fmt.Append(dst, *v)
	}, func(b []byte) (*int, error) { return new(int), nil })
	fs := crash.New()
	s := must[int, *int](t, fs, small, Tree(v), CheckpointAfter(0))
	for i := range 100 {
		try(t, s.Set(i, new(int)))
	}
	armed.Store(true)
	s.c.cfg.never, s.c.cfg.checkpoint = false, 1
	_, _, err := s.Delete(1)
	try(t, err)
	for s.c.checkpoints.busy.Load() {
		runtime.Gosched()
	}
	if err := s.Log().Failed; err == nil || !strings.Contains(err.Error(), "codec") {
		t.Error(err)
	}
	func() {
		defer func() {
			if p := recover(); p == nil {
				t.Error("no panic in the caller of Checkpoint")
			}
		}()
		s.Checkpoint()
	}()
	armed.Store(false)
	try(t, s.Checkpoint(), s.Close())
}

// Each call that reads and fails, in turn: Open returns its error, or the store has all that
// it had; and nothing is lost that was acknowledged.
func TestReadFaults(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, small, CheckpointAfter(0))
	for i := range uint64(60) {
		try(t, s.Set(i, i))
		if i == 20 {
			try(t, s.Checkpoint())
		}
	}
	image := fs.Clone() // of a program that was killed
	s.Close()
	for at := int64(0); ; at++ {
		fs := image.Clone()
		var calls, hits atomic.Int64
		fs.SetFailRead(func(what string) error {
			if calls.Add(1)-1 == at {
				hits.Add(1)
				return fmt.Errorf("%s: %w", what, syscall.EIO)
			}
			return nil
		})
		want := 60
		s, err := open[uint64, uint64](fs, []Option{small, CheckpointAfter(0)})
		if err == nil {
			if s.Len() != 60 {
				t.Fatalf("call %d: %d entries", at, s.Len())
			}
			for i := range uint64(60) {
				if s.Set(100+i, i) != nil {
					break
				}
				want++
			}
			s.Checkpoint()
			s.Close()
		} else if !errors.Is(err, syscall.EIO) {
			t.Fatalf("call %d: %v", at, err)
		}
		fs.SetFailRead(nil)
		s = must[uint64, uint64](t, fs, small)
		if s.Len() < want {
			t.Fatalf("call %d: %d entries are left of %d", at, s.Len(), want)
		}
		s.Close()
		if hits.Load() == 0 {
			t.Logf("%d faults", at)
			return
		}
	}
}
