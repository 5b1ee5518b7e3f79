package pandostore

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
)

// A crash at any call leaves what was acknowledged, and of what was issued a beginning:
// of numbers, strings, rows and bytes, in all modes, during checkpoints and recoveries, too.
func TestCrash(t *testing.T) {
	t.Parallel()
	images := new(atomic.Int64)
	t.Cleanup(func() { t.Logf("%d crash images", images.Load()) })
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashes(t, &numbers, name != "every group", mode, images)
			crashes(t, &texts, name != "every group", mode, images)
			crashes(t, &rows, name != "every group", mode, images)
			crashes(t, &slices_, name != "every group", mode, images)
		})
	}
}

func crashes[K pando.Key, V any](t *testing.T, w *world[K, V], lazy bool, mode []Option, images *atomic.Int64) {
	t.Run(w.name, func(t *testing.T) {
		t.Parallel()
		rng := seed.Rand(t)
		for range seed.Times(1, 5) {
			for writers := 1; writers <= 3; writers += 2 {
				l := newLife(t, w, rng.Uint64(), writers, mode...)
				l.lazy, l.nested, l.images, l.skip = lazy, true, images, seed.Size(6, 0)
				l.watch()
				if err := l.lives(4); err != nil || t.Failed() {
					t.Fatal(err)
				}
			}
		}
	})
}

// lives lets a store live several times, each until it is closed.
func (l *life[K, V]) lives(n int) error {
	for range n {
		if err := l.live(12, true); err != nil {
			return err
		}
		l.seed++
	}
	return nil
}

// After a crash a store goes on from what is there, and crashes again: what the first has
// left unfinished never comes back.
func TestCrashAgain(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashAgain(t, &numbers, name != "every group", mode)
			crashAgain(t, &texts, name != "every group", mode)
		})
	}
}

func crashAgain[K pando.Key, V any](t *testing.T, w *world[K, V], lazy bool, mode []Option) {
	t.Run(w.name, func(t *testing.T) {
		t.Parallel()
		rng := seed.Rand(t)
		for range seed.Times(20, 400) {
			l := newLife(t, w, rng.Uint64(), 1, mode...)
			l.lazy = lazy
			for range 5 {
				if !l.untilCrash(rng) {
					return
				}
			}
		}
	})
}

// untilCrash lets a store live up to some call, and makes the folder what a crash there
// leaves, and the history what it then is.
func (l *life[K, V]) untilCrash(rng *rand.Rand) bool {
	h := l.writers[0]
	at := l.fs.Calls() + rng.IntN(80)
	var image *crash.Folder
	var lo, hi int64
	l.fs.SetBefore(func(n int, what string) {
		if n == at {
			lo = l.certain()[0]
			image = l.fs.Image(rng)
			hi = h.issued()
		}
	})
	l.seed = rng.Uint64()
	if err := l.live(12, true); err != nil {
		l.t.Error(err)
		return false
	}
	if image == nil {
		lo, image, hi = h.acked.Load(), l.fs.Clone(), h.issued()
	}
	s, err := open[K, V](image.Clone(), l.opts)
	if err != nil {
		l.t.Error(err)
		return false
	}
	got := l.read(s)
	s.Close()
	l.compare(got, []int64{lo}, []int64{hi}, "another")
	l.fs, h.states = image, []state{got}
	h.acked.Store(0)
	h.synced.Store(0)
	return !l.t.Failed()
}

// Each call that fails, in turn: its change and all later ones return that error, readers
// go on, and what was acknowledged is there when the store is opened again.
func TestFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]crash.Fault{
		"EIO": {Err: syscall.EIO}, "ENOSPC": {Err: syscall.ENOSPC}, "short": {Err: syscall.ENOSPC, Short: true},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for mode, opts := range modes {
				t.Run(mode, func(t *testing.T) { failing(t, &numbers, fault, mode != "every group", opts) })
			}
			failing(t, &texts, fault, false, nil)
		})
	}
}

func failing[K pando.Key, V any](t *testing.T, w *world[K, V], fault crash.Fault, lazy bool, mode []Option) {
	first := seed.Of(t)
	tried, step := 0, seed.Step(4)
	for at := int(first % uint64(step)); ; at += step {
		l := newLife(t, w, first, 1, mode...)
		l.lazy = lazy
		hit := false
		l.fs.SetFail(func(n int, what string) crash.Fault {
			if n == at {
				hit = true
				return fault
			}
			return crash.Fault{}
		})
		err := l.liveFailing(fault.Err)
		if err != nil {
			t.Fatalf("call %d: %v", at, err)
		}
		if !hit {
			break
		}
		tried++
		l.fs.SetFail(nil)
		rng := rand.New(rand.NewPCG(first, uint64(at)))
		h := l.writers[0]
		lo := l.certain()
		l.check(l.fs.Clone(), []int64{min(h.acked.Load(), h.issued())}, "the fault, without a crash")
		for range 3 {
			l.check(l.fs.Image(rng), lo, "the fault")
		}
		if t.Failed() {
			t.Fatalf("call %d", at)
		}
	}
	t.Logf("%d faults", tried)
}

// liveFailing lets a store live until something fails, and demands that it then refuses
// all changes for good.
func (l *life[K, V]) liveFailing(cause error) error {
	s, err := open[K, V](l.fs, l.opts)
	if err != nil {
		if !errors.Is(err, cause) {
			return err
		}
		return nil
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(l.seed, 1))
	h := l.writers[0]
	for range 40 {
		err := l.one(rng, 0, h, s, true)
		if err == nil {
			continue
		}
		if !errors.Is(err, cause) {
			return err
		}
		if !errors.Is(err, ErrReadOnly) { // of a checkpoint: the store goes on
			continue
		}
		was := l.read(s)
		for _, again := range []error{s.Set(l.key(1), l.val(1)), s.SetBatch([]K{l.key(1)}, []V{l.val(1)}), s.Sync(), s.Checkpoint()} {
			if !errors.Is(again, cause) || !errors.Is(again, ErrReadOnly) {
				return errors.Join(errors.New("a change after the failure returns"), again)
			}
		}
		if l.read(s) != was {
			return errors.New("a change after the failure is seen")
		}
		return nil
	}
	return nil
}

// What a sync that failed has left in the system's memory is not on disk, though a
// later sync succeeds: a store that finds it there writes it again before anybody sees it.
func TestCrashAfterForgottenSync(t *testing.T) {
	rng := seed.Rand(t)
	for range seed.Times(20, 400) {
		l := newLife(t, &numbers, rng.Uint64(), 1)
		at := 12 + rng.IntN(30)
		var failed atomic.Bool // the next segment is made beside the others
		l.fs.SetFail(func(n int, what string) crash.Fault {
			if n >= at && strings.HasPrefix(what, "sync log") && failed.CompareAndSwap(false, true) {
				return crash.Fault{Err: syscall.EIO}
			}
			return crash.Fault{}
		})
		if err := l.liveFailing(syscall.EIO); err != nil {
			t.Fatal(err)
		}
		l.fs.SetFail(nil)
		s, err := open[uint64, uint64](l.fs, l.opts) // no crash: it reads what programs see
		if err != nil {
			t.Fatal(err)
		}
		seen := l.read(s)
		image := l.fs.Image(rng)
		s.Close()
		if s, err = open[uint64, uint64](image, l.opts); err != nil {
			t.Fatal(err)
		}
		if got := l.read(s); got != seen {
			t.Fatalf("after a crash\n%v, was seen before\n%v", got, seen)
		}
		s.Close()
	}
}
