package backlog

import (
	"errors"
	"sync/atomic"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
)

// Host is a tree in host memory. bplus.Tree and radix.Tree implement it.
type Host[K, V any] interface {
	Get(key K) (val V, ok bool)
	Set(key K, val V) (old V, had bool, err error)
	Delete(key K) (old V, had bool, err error)
	Pop(greatest bool) (key K, val V, ok bool, err error)
	DeleteRange(lo, hi K, gone func(val V)) (deleted int, err error)
	Len() int
	Closed() bool
}

// Copy is the copy of a tree on a GPU, as a pair needs it.
type Copy[K any] interface {
	// Send sets keys of the copy to their values in host memory, or deletes those that are
	// not there. Keys may be there more than once. All stripes are held, the log is empty.
	Send(keys []K) error
	// Hash returns a number by which keys are divided into stripes.
	Hash(key K) uint64
	// Own puts keys into memory of their own, in their place.
	Own(keys []K)
	// Refresh brings the copy up to date, since many keys are noted. No stripe is held.
	Refresh()
	// Keys returns the first keys of the tree in host memory from lo to hi, without lo where
	// open is true: most of them, or all if there are no more.
	Keys(lo, hi K, open bool, most int) []K
}

// Pair is a tree in host memory and its copy on a GPU, kept the same by the rules of this
// package. Changes of one key, and of ranges, are made in host memory, and noted; the copy has
// them before its next search or batch. Batches that the copy has accepted are in the log.
type Pair[K any, V comparable] struct {
	Stripes Stripes[K]
	Log     Log[K, V]
	Share
	host Host[K, V]
	copy Copy[K]
	name string // of the device
	down atomic.Pointer[error]
}

// Share says which part of the work is the GPU's.
type Share struct {
	// Least is the number of searches from which on a batch goes to the GPU.
	Least int
	// Changes is the number of operations from which on a batch that changes
	// something does; 0 is none: they run in host memory, which may be limited, and
	// the GPU only answers.
	Changes int
	// Notes is how many keys are noted before the GPU gets them; 0 is any number.
	Notes int
}

// Init makes a pair ready, whose log has a size of most. name is the device's.
func (p *Pair[K, V]) Init(host Host[K, V], copy Copy[K], share Share, name string, most int) {
	p.host, p.copy, p.Share, p.name = host, copy, share, name
	p.Log.Init(&p.Stripes, most)
}

// Down returns the reason why the GPU is no longer used, or nil.
func (p *Pair[K, V]) Down() error {
	if e := p.down.Load(); e != nil {
		return *e
	}
	return nil
}

// Works reports whether the GPU is in use.
func (p *Pair[K, V]) Works() bool { return p.down.Load() == nil }

// Takes reports whether a batch of n searches goes to the GPU.
func (p *Pair[K, V]) Takes(n int) bool { return n > 0 && n >= p.Least && p.Works() }

// TakesChanges reports whether a batch of n changes does.
func (p *Pair[K, V]) TakesChanges(n int) bool { return p.Changes > 0 && n >= p.Changes && p.Works() }

// Fail gives the GPU up, and says so the first time, which it reports.
func (p *Pair[K, V]) Fail(err error) (first bool) {
	if first = p.down.CompareAndSwap(nil, &err); first {
		device.Warn("pando: the GPU failed, the CPU does everything from now on", "device", p.name, "error", err)
	}
	return first
}

// Ended gives the GPU up since the pair is closed.
func (p *Pair[K, V]) Ended() {
	closed := errors.New("backlog: closed")
	p.down.CompareAndSwap(nil, &closed)
}

// Get returns the value of key, and reports whether there is one.
func (p *Pair[K, V]) Get(key K) (val V, ok bool) {
	if val, ok, known := p.Log.Get(key); known {
		return val, ok
	}
	return p.host.Get(key)
}

// Len returns the number of entries. It is exact if nobody writes meanwhile.
func (p *Pair[K, V]) Len() int {
	if n, known := p.Log.Entries(); known {
		return n
	}
	return p.host.Len()
}

// Wait waits until everything that was accepted is in the tree in host memory.
func (p *Pair[K, V]) Wait() { p.Log.Wait() }

// Pending reports whether there is something that is not.
func (p *Pair[K, V]) Pending() bool { return p.Log.Pending() }

// Set sets the value of key, and returns the one it had.
func (p *Pair[K, V]) Set(key K, val V) (old V, had bool, err error) {
	old, had, err = p.set(key, val)
	p.bound()
	return old, had, err
}

// bound sends the noted keys if they are many.
func (p *Pair[K, V]) bound() {
	if p.Notes > 0 && p.Stripes.Dirty() >= p.Notes {
		p.copy.Refresh()
	}
}

func (p *Pair[K, V]) set(key K, val V) (old V, had bool, err error) {
	x := p.Stripes.hold(p.copy.Hash(key))
	defer x.Unlock()
	old, had, err = p.host.Set(key, val)
	p.noted(x, key, err == nil)
	return old, had, err
}

// Delete deletes key, and returns the value it had.
func (p *Pair[K, V]) Delete(key K) (old V, had bool, err error) {
	old, had, err = p.delete(key)
	p.bound()
	return old, had, err
}

func (p *Pair[K, V]) delete(key K) (old V, had bool, err error) {
	x := p.Stripes.hold(p.copy.Hash(key))
	defer x.Unlock()
	old, had, err = p.host.Delete(key)
	p.noted(x, key, err == nil && had)
	return old, had, err
}

// noted ends a change of a key whose stripe is held.
func (p *Pair[K, V]) noted(x *stripe[K], key K, changed bool) {
	if changed && p.Works() {
		x.keys = append(x.keys, key)
		p.copy.Own(x.keys[len(x.keys)-1:])
	} else {
		p.Stripes.dirty.Add(-1)
	}
}

// Update sets the value of key to the result of f for the old one, or deletes key where f
// returns false. It asks f without holding anything, since f may use the tree; the change is
// made if the value is still the same.
func (p *Pair[K, V]) Update(key K, f func(old V, had bool) (val V, keep bool)) (old V, had bool, err error) {
	for {
		if p.host.Closed() {
			return old, false, op.ErrClosed
		}
		old, had = p.Get(key)
		val, keep := f(old, had)
		done, err := p.swap(key, old, had, val, keep)
		if p.bound(); done || err != nil {
			return old, had, err
		}
	}
}

// swap makes a change of Update, and reports whether the key had the old value still.
func (p *Pair[K, V]) swap(key K, old V, had bool, val V, keep bool) (done bool, err error) {
	x := p.Stripes.hold(p.copy.Hash(key))
	defer x.Unlock()
	now, there := p.host.Get(key)
	if done = now == old && there == had; done {
		switch {
		case keep:
			_, _, err = p.host.Set(key, val)
		case had:
			_, _, err = p.host.Delete(key)
		}
	}
	p.noted(x, key, done && err == nil && (keep || had))
	return done, err
}

// Alone runs f, which changes any keys of the tree in host memory and returns
// which, in a slice that is the pair's from then on. Nobody else changes it meanwhile.
func (p *Pair[K, V]) Alone(f func() (changed []K)) {
	p.Stripes.All(func() []K {
		changed := f()
		if !p.Works() {
			return nil
		}
		p.copy.Own(changed)
		return changed
	})
	p.bound()
}

// Pop deletes the least entry, or the greatest, and returns it.
func (p *Pair[K, V]) Pop(greatest bool) (key K, val V, ok bool, err error) {
	p.Alone(func() []K {
		if key, val, ok, err = p.host.Pop(greatest); !ok || err != nil {
			return nil
		}
		return []K{key}
	})
	return key, val, ok, err
}

// rangeKeys is the number of keys that DeleteRange deletes at a time: others have their turn
// between.
const rangeKeys = 4096

// DeleteRange deletes the entries from lo to hi, and returns how many there were. gone, unless
// it is nil, is called with the value of each.
func (p *Pair[K, V]) DeleteRange(lo, hi K, gone func(val V)) (n int, err error) {
	for open, more := false, true; more && err == nil; open = true {
		p.Alone(func() (keys []K) {
			keys = p.copy.Keys(lo, hi, open, rangeKeys)
			if more = len(keys) > 0; more {
				deleted := 0
				lo = keys[len(keys)-1]
				deleted, err = p.host.DeleteRange(keys[0], lo, gone)
				n += deleted
			} else if p.host.Closed() {
				err = op.ErrClosed
			}
			return keys
		})
	}
	return n, err
}

// Renew brings the copy up to date for a search. One goroutine at a time may call it, or
// have begun a batch.
func (p *Pair[K, V]) Renew() error {
	if p.Stripes.Dirty() == 0 {
		return nil
	}
	p.Log.Begin(0)
	defer p.Log.End()
	if p.Pending() { // the stripes are held since before: nothing was noted
		return nil
	}
	return p.CatchUp()
}

// CatchUp sends the values of noted keys. All stripes are held, and the log is empty or
// nothing is noted.
func (p *Pair[K, V]) CatchUp() error {
	keys := p.Stripes.Noted()
	if len(keys) == 0 {
		return nil
	}
	if err := p.copy.Send(keys); err != nil {
		return err
	}
	p.Stripes.Clear()
	return nil
}

// Instead does changes in host memory that a batch has begun and the GPU could not do: once, or
// where others of the batch were accepted until it succeeds.
func (p *Pair[K, V]) Instead(accepted bool, do func() error) error {
	p.Log.Alone()
	defer p.Log.End()
	if !accepted {
		return do()
	}
	Insist(do)
	return nil
}
