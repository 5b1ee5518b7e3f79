package index

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/order"
)

// holds are the keys of updates whose function has run again and again, because
// others changed the key each time. Whoever wants to change such a key waits until
// the update is done. Changes that had begun before finish, so the function may run
// once more for each of them, and then no more.
type holds struct {
	n   atomic.Int32 // how many there are; writers look at nothing else, as long as it is 0
	mu  sync.Mutex
	all []*held
}

// held is a key that one goroutine updates alone.
type held struct {
	key  order.Probe
	by   uint64        // the goroutine
	done chan struct{} // is closed when the update is done
}

// wait returns when no other goroutine holds a key that a change touches. One that
// holds a key itself does not wait, since others may wait for it; it panics over a
// change of its own key, which it would repeat for ever.
func (h *holds) wait(touches func(key order.Probe) bool) {
	me := goroutine()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.await(me, touches)
}

// take holds a key for the calling goroutine. It returns nil if another one holds it
// and may wait for this one. same reports whether a key is the same.
func (h *holds) take(key order.Probe, same func(key order.Probe) bool) *held {
	k := &held{key, goroutine(), make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.await(k.by, same) {
		return nil
	}
	h.all = append(h.all, k)
	h.n.Add(1)
	return k
}

// await waits for other goroutines than me that hold a key which a change touches. It
// reports whether there are none; there may be some if me holds keys itself. The
// lock is held, but not while it waits.
func (h *holds) await(me uint64, touches func(key order.Probe) bool) bool {
	for {
		var other *held
		busy := false
		for _, k := range h.all {
			switch mine := k.by == me; {
			case mine && touches(k.key):
				panic("pando: the function of an Update changes the key that it updates; it must return the new value instead")
			case mine:
				busy = true
			case touches(k.key):
				other = k
			}
		}
		if other == nil || busy {
			return other == nil
		}
		h.mu.Unlock()
		<-other.done
		h.mu.Lock()
	}
}

// drop ends a hold.
func (h *holds) drop(k *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, other := range h.all {
		if other == k {
			h.all = append(h.all[:i:i], h.all[i+1:]...)
			break
		}
	}
	h.n.Add(-1)
	close(k.done)
}

// goroutine returns the number of the calling goroutine, which the runtime tells in
// the first line of its stack alone. It takes some microseconds.
func goroutine() uint64 {
	var buf [64]byte
	line := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(line, []byte(" "))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		panic("pando: the runtime does not tell the number of a goroutine: " + string(line))
	}
	return n
}
