package raftlog

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
)

// A crash at any call leaves of each group what was acknowledged, and of what was asked for a
// beginning: also while segments become free, and while a log is opened.
func TestCrash(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	images := int64(0)
	for range seed.Times(1, 3) {
		for groups := 1; groups <= 4; groups += 3 {
			l := newLife(t, groups)
			step := seed.Step(13)
			of := rand.New(rand.NewPCG(rng.Uint64(), 1))
			l.fs.SetBefore(func(n int, what string) {
				if n%step != 0 || t.Failed() {
					return
				}
				lo := l.acked()
				image := l.fs.Image(of)
				l.check(image, lo, l.issued(), what)
			})
			for range 4 {
				if err := l.live(rng.Uint64(), 60); err != nil {
					t.Fatal(err)
				}
			}
			l.fs.SetBefore(nil)
			l.check(l.fs.Clone(), l.issued(), l.issued(), "at the end")
			images += l.images.Load()
		}
	}
	t.Logf("%d crash images", images)
}

// After a crash a log goes on from what is there, and crashes again: what the first has left
// unfinished never comes back.
func TestCrashAgain(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	for range seed.Times(6, 400) {
		l := newLife(t, 3)
		for range 6 {
			if l.untilCrash(rng); t.Failed() {
				return
			}
		}
	}
}

// untilCrash lets a log live up to some call, and makes the folder what a crash there leaves, and
// the histories what it then is.
func (l *life) untilCrash(rng *rand.Rand) {
	at := l.fs.Calls() + rng.IntN(200)
	var image *crash.Folder
	var lo, hi []int64
	l.fs.SetBefore(func(n int, what string) {
		if n == at {
			lo, image, hi = l.acked(), l.fs.Image(rng), l.issued()
		}
	})
	if err := l.live(rng.Uint64(), 60); err != nil {
		l.t.Fatal(err)
	}
	if image == nil {
		lo, image, hi = l.acked(), l.fs.Clone(), l.issued()
	}
	got := l.check(image.Clone(), lo, hi, "another crash")
	if l.t.Failed() {
		return
	}
	l.fs = image
	for i, h := range l.groups {
		l.groups[i] = newHistory(h.id, got[i])
	}
}

// Each call that fails, in turn, is final: its change and all later ones return that error, and what was
// acknowledged is there when the log is opened again.
func TestFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]crash.Fault{
		"EIO": {Err: syscall.EIO}, "ENOSPC": {Err: syscall.ENOSPC}, "short": {Err: syscall.ENOSPC, Short: true},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing(t, fault)
		})
	}
}

func failing(t *testing.T, fault crash.Fault) {
	first := seed.Of(t)
	step, tried := seed.Step(17), 0
	for at := int(first % uint64(step)); ; at += step {
		l := newLife(t, 1)
		hit := false
		l.fs.SetFail(func(n int, what string) crash.Fault {
			// A segment that cannot be made ahead is made when it is needed.
			if n == at && !strings.Contains(what, ".tmp") {
				hit = true
				return fault
			}
			return crash.Fault{}
		})
		rng := rand.New(rand.NewPCG(first, uint64(at)))
		log, err := open(l.fs)
		if err != nil && !errors.Is(err, fault.Err) {
			t.Fatal(err)
		}
		for range 150 {
			if err != nil {
				break
			}
			err = l.groups[0].one(rng, log)
		}
		if hit && log != nil {
			l.stopped(log, fault.Err, err)
		}
		lo := l.acked()
		images := []*crash.Folder{l.fs.Image(rng), l.fs.Image(rng)}
		if log != nil {
			if err := log.Close(); err != nil && !errors.Is(err, fault.Err) {
				t.Fatal(err)
			}
		}
		l.fs.SetFail(nil)
		for _, image := range append(images, l.fs.Clone()) {
			l.check(image, lo, l.issued(), "a fault")
		}
		if t.Failed() {
			t.Fatalf("call %d", at)
		}
		if tried++; l.fs.Calls() < at {
			break
		}
	}
	t.Logf("%d faults", tried)
}

// stopped demands that a log refuses all if a call has failed. The fault may be that of a step which nobody waits
// for, and then comes with the next changes.
func (l *life) stopped(log *Log, want, err error) {
	if err == nil {
		return // the call was not one of the log's own
	}
	if !errors.Is(err, want) {
		l.t.Fatalf("%v; want %v", err, want)
	}
	g := log.Group(9)
	<-log.Failed()
	_, last := g.LastIndex()
	for _, err := range []error{log.Err(), g.SetUint64([]byte("term"), 1), g.StoreLog(entryOf(1, "x")), log.Drop(3), last} {
		if !errors.Is(err, want) {
			l.t.Fatalf("after a failure: %v; want %v", err, want)
		}
	}
}

// Damage is noticed: with one byte changed a log has all that it had, or cannot be opened.
func TestFlipped(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	l := newLife(t, 3)
	for range 3 {
		if err := l.live(rng.Uint64(), 60); err != nil {
			t.Fatal(err)
		}
	}
	names, err := l.fs.Names()
	if err != nil || len(names) < 3 {
		t.Fatal(names, err)
	}
	refused := 0
	tries := seed.Times(200, 20_000)
	for range tries {
		fs := l.fs.Clone()
		name := names[rng.IntN(len(names))]
		b := fs.Bytes(name)
		at := rng.IntN(len(b))
		b[at] ^= 1 << rng.IntN(8)
		log, err := open(fs)
		if err != nil {
			refused++
			continue
		}
		log.Close()
		if l.check(fs, l.issued(), l.issued(), "a byte changed"); t.Failed() {
			t.Fatalf("%s, byte %d", name, at)
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("%d of %d refused", refused, tries)
}

// A segment that is gone is noticed, whichever it is.
func TestMissing(t *testing.T) {
	t.Parallel()
	rng := seed.Rand(t)
	l := newLife(t, 3)
	for range 3 {
		if err := l.live(rng.Uint64(), 60); err != nil {
			t.Fatal(err)
		}
	}
	names, err := l.fs.Names()
	if err != nil || len(names) < 3 || names[0] == "log-0000000000000001" {
		t.Fatal(names, err)
	}
	for i, name := range names[:len(names)-1] {
		fs := l.fs.Clone()
		if err := fs.Remove(name); err != nil {
			t.Fatal(err)
		}
		if i == len(names)-2 {
			// Nothing may have been written to the last one; then this is the end of the log, and not behind it.
			if err := fs.Remove(names[len(names)-1]); err != nil {
				t.Fatal(err)
			}
		}
		if log, err := open(fs); err == nil {
			log.Close()
			t.Errorf("%s is gone, of %v, and the log opens", name, names)
		}
	}
}
