package faulty

import (
	"math/rand/v2"
	"slices"
	"sync"
	"unsafe"
)

// output is a copy to the host. Until it is settled, nobody has been told that
// the copy is done, and its target may be spoiled.
type output struct {
	dst     []byte
	settled bool
}

// outputs are the copies that waiting here waits for: those of a stream,
// together with those of other streams that an event put before its work; or
// those before an event. They are shared: a copy is settled for all at once.
type outputs struct {
	mu   *sync.Mutex // the device's
	list []*output
}

func (o *outputs) add(more ...*output) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(unsettled(o.list), more...)
}

func (o *outputs) replace(list []*output) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = list
}

// pending returns the current outputs.
func (o *outputs) pending() []*output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return unsettled(o.list)
}

// unsettled returns the outputs of a list that are not settled, in a new list.
func unsettled(list []*output) []*output {
	return slices.DeleteFunc(slices.Clone(list), func(o *output) bool { return o.settled })
}

// settle ends outputs: their targets belong to the caller again.
func (o *outputs) settle(list []*output) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range list {
		p.settled = true
	}
}

// forget settles the outputs that go to a piece of host memory.
func (o *outputs) forget(memory []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.list {
		p.settled = p.settled || overlap(p.dst, memory)
	}
}

// spoil overwrites the targets of all unsettled outputs, and settles them.
func (o *outputs) spoil() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.list {
		if !p.settled {
			spoil(p.dst)
			p.settled = true
		}
	}
}

func spoil(b []byte) {
	const nonsense = 0xa5
	for i := range b {
		b[i] = nonsense
	}
}

// spoilOne spoils the target of a copy that was not carried out. That of a lie
// looks like anything, so that no pattern in it helps its reader.
func (d *Device) spoilOne(b []byte) {
	if !d.plan.Lie {
		spoil(b)
		return
	}
	rng := rand.New(rand.NewPCG(uint64(d.Count(Any)), 0))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

func overlap(a, b []byte) bool {
	if len(a) == 0 || cap(b) == 0 {
		return false
	}
	from, to := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return from < to+uintptr(cap(b)) && to < from+uintptr(len(a))
}
