package ptx

import (
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// watcher notes what it sees.
type watcher struct {
	begun    int
	turns    int
	accesses []Access
	lanes    uint32
}

func (w *watcher) Begin(string, int, int) { w.begun++ }
func (w *watcher) Turn(_, _ int, lanes, _ uint32) {
	w.turns++
	w.lanes |= lanes
}
func (w *watcher) Access(a Access) { w.accesses = append(w.accesses, a) }

// An observer sees every access, a seed repeats what it sees, and a launch is the
// same with and without it.
func TestObserver(t *testing.T) {
	run := func(seed uint64, o Observer) (uint64, []byte) {
		r := newRig(t, Seed(seed), Observe(o))
		defer r.dev.Close()
		k := r.load(program(1, doubling))("k")
		p := r.alloc32(slices.Repeat([]uint32{21}, 64))
		r.must(r.launch(k, device.Grid{Blocks: 2, Threads: 32}, uint64(p)))
		return r.dev.Instructions(), r.read(p, 64*4)
	}
	var a, again, other watcher
	n, out := run(3, &a)
	m, same := run(3, nil)
	if n != m || !slices.Equal(out, same) || out[0] != 42 {
		t.Errorf("%d instructions with an observer, %d without; the result begins with %d", n, m, out[0])
	}
	run(3, &again)
	run(4, &other)
	if a.begun != 1 || a.turns == 0 || a.lanes != 1<<32-1 || len(a.accesses) != 128 {
		t.Errorf("%d launches, %d turns of lanes %x, %d accesses", a.begun, a.turns, a.lanes, len(a.accesses))
	}
	if !slices.Equal(a.accesses, again.accesses) {
		t.Error("the same seed shows another schedule")
	}
	if slices.Equal(a.accesses, other.accesses) {
		t.Error("another seed shows the same schedule")
	}
	writes := 0
	for _, x := range a.accesses {
		if x.Write {
			writes++
			if x.Value != 42 {
				t.Errorf("a store leaves %d", x.Value)
			}
		}
	}
	if writes != 64 {
		t.Errorf("%d writes, want 64", writes)
	}
}

// An observer sees what atomics leave, also under the model, and its turns.
func TestObserverOfAtomics(t *testing.T) {
	for _, opts := range [][]Option{nil, {FreezeHolders(true)}, {Strict(true), PCT(3)}} {
		var w watcher
		r := newRig(t, append(opts, Observe(&w))...)
		k := r.load(program(1, counting))("k")
		p := r.alloc32([]uint32{7})
		r.must(r.launch(k, device.Grid{Blocks: 2, Threads: 32}, uint64(p)))
		var left []uint64
		for _, x := range w.accesses {
			if !x.Atomic || !x.Write {
				t.Fatalf("%+v is no atomic", x)
			}
			left = append(left, x.Value)
		}
		for i, v := range left {
			if v != uint64(8+i) {
				t.Fatalf("atomic %d leaves %d", i, v)
			}
		}
		if len(left) != 64 || w.turns == 0 {
			t.Errorf("%d atomics in %d turns", len(left), w.turns)
		}
		r.dev.Close()
	}
}

// counting adds one to a word, in each thread.
const counting = `ld.param.u64 %d1, [p0];
atom.global.add.u32 %r1, [%d1], 1;`

// doubling doubles the word of each thread.
const doubling = `ld.param.u64 %d1, [p0];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r1, 32, %r2;
mul.wide.u32 %d2, %r3, 4;
add.u64 %d3, %d1, %d2;
ld.global.u32 %r4, [%d3];
add.u32 %r5, %r4, %r4;
st.global.u32 [%d3], %r5;`
