package live

import (
	"bytes"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/order"
)

// holds are the keys of updates whose function has run again and again, because
// others changed the key each time. Other writers of such a key wait until the
// update is done. Changes that had begun before finish, so the function may run
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

// wait waits for the updates of other goroutines that hold a key which a change
// touches, as they are now: those that come later may wait for this change, so that
// nobody waits for ever. A goroutine that holds a key itself does not wait, since
// others may wait for it; and it panics over a change of its own key, which it would
// repeat for ever, unless own is false.
func (h *holds) wait(touches func(key order.Probe) bool, own bool) {
	me, busy := goroutine(), false
	var others []*held
	for _, k := range h.now() {
		switch {
		case k.by == me && own && touches(k.key):
			panic("pando: the function of an Update changes the key that it updates; it must return the new value instead")
		case k.by == me:
			busy = true
		case touches(k.key):
			others = append(others, k)
		}
	}
	if busy {
		return
	}
	for _, k := range others {
		<-k.done
	}
}

// now returns the holds that there are.
func (h *holds) now() []*held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// take holds a key for the calling goroutine, when nobody else does. It returns nil if
// another one holds it and may wait for this one. same reports whether a key is the
// same.
func (h *holds) take(key order.Probe, same func(key order.Probe) bool) *held {
	mine := &held{key, goroutine(), make(chan struct{})}
	for {
		other, busy := h.try(mine, same)
		if other == nil {
			return mine
		}
		if busy {
			return nil
		}
		<-other.done
	}
}

// try holds a key, unless another goroutine does, whose hold it returns. busy is
// whether this one holds other keys.
func (h *holds) try(mine *held, same func(key order.Probe) bool) (other *held, busy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.all {
		if busy = busy || k.by == mine.by; k.by != mine.by && same(k.key) {
			other = k
		}
	}
	if other == nil {
		h.all = append(h.all, mine)
		h.n.Add(1)
	}
	return other, busy
}

// drop ends a hold.
func (h *holds) drop(k *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = slices.DeleteFunc(h.all, func(other *held) bool { return other == k })
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
