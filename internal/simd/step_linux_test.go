package simd

import (
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// A step reads the lines of its nodes, its keys and its node numbers, and
// nothing past them: each may lie at the very end of memory.
func TestStepReadsNothingBehindTheEnd(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, stepsInside[uint32], stepsInside[uint64])
	})
}

func stepsInside[C Code](t *testing.T) {
	rng := seed.Rand(t)
	room := func(n int) []uint64 { return guarded(t, n) }
	for _, here := range places() {
		l := makeLevel(here, room, named[C]("mixed", rng))
		for _, n := range lengths() {
			if n == 0 {
				continue
			}
			keys, nodes := l.ask(n, rng)
			if l.Last = rng.IntN(l.nodes << l.Fan); n%2 == 0 {
				l.Next = Lines{Page: 1 << 30} // far past the end
			}
			words := guarded(t, n)
			all := unsafe.Slice((*C)(unsafe.Pointer(&words[0])), n*8/int(unsafe.Sizeof(keys[0])))
			atEnd := all[len(all)-n:]
			copy(atEnd, keys)
			numbers := unsafe.Slice((*int)(unsafe.Pointer(&guarded(t, n)[0])), n)
			copy(numbers, nodes)
			if err := l.check(atEnd, nodes); err != nil {
				t.Fatalf("batch of %d: %v", n, err)
			}
			StepDown(&l.Step, atEnd, numbers)
			FetchEach(l.Base, numbers, 64)
		}
	}
}
