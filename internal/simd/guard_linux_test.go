package simd

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pando-index/pando/internal/seed"
)

// guarded returns n words that end where memory ends: reading one word more is
// a fault.
func guarded(t *testing.T, n int) []uint64 {
	const page = 4096
	size := (8*n + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	if err := unix.Mprotect(mem[size:], unix.PROT_NONE); err != nil {
		t.Skip(err)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&mem[size-8*n])), n)
}

// No search reads past the last leaf, nor past the keys searched for: both may
// lie at the very end of memory.
func TestNothingIsReadBehindTheEnd(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, readsInside[uint32], readsInside[uint64])
	})
}

func readsInside[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, f := range forms() {
		if f.hybrid { // these may count one child too many and end past the leaves
			continue
		}
		tree := makeTree(f, named[C]("mixed", rng))
		tree.Distance = uint64(1 + rng.IntN(20))
		used := int(tree.Leaves) + (int(tree.LastLeaf-tree.Leaves)/8+f.short+1)*8
		words := guarded(t, used)
		copy(words, tree.words)
		tree.words, tree.Base = words, unsafe.Pointer(&words[0])
		asks := asked(tree, longest, rng)
		room := guarded(t, (longest*int(unsafe.Sizeof(asks[0]))+7)/8)
		all := unsafe.Slice((*C)(unsafe.Pointer(&room[0])), len(room)*8/int(unsafe.Sizeof(asks[0])))
		for _, n := range lengths() {
			keys := all[len(all)-n:]
			copy(keys, asks)
			if err := checkBatch(tree, keys, answers(tree, keys)); err != nil {
				t.Fatalf("%v, batch of %d: %v", f, n, err)
			}
		}
	}
}
