package radix

import (
	"math/bits"
	"sync/atomic"

	"github.com/pando-index/pando/internal/par"
)

// batch is the operations of a batch, or some of them, in parts: those with keys of one
// sub-tree are in one part, in their order. So whoever has a part hardly ever meets
// others, and operations with one key have one owner.
type batch struct {
	workers int
	rows    []int32 // numbers of operations, part by part
	ends    []int   // where each part ends
	err     atomic.Pointer[error]
}

const (
	partsEach = 8   // parts for each worker, so that none waits long for the last
	leastPart = 128 // operations of a part, about
)

// newBatch parts the operations from lo to hi.
func newBatch(o *Ops, lo, hi int, s *shortcuts) *batch {
	n := hi - lo
	b := &batch{workers: max(min(o.Workers, n/leastPart), 1), rows: make([]int32, n)}
	if b.workers == 1 {
		for i := range b.rows {
			b.rows[i] = int32(lo + i)
		}
		b.ends = []int{n}
		return b
	}
	parts := min(b.workers*partsEach, n/leastPart)
	owner := make([]uint16, n)
	const piece = 4096
	pieces := (n + piece - 1) / piece
	counts := make([][]int, pieces)
	par.Run(b.workers, pieces, par.Func(func(p int) {
		counts[p] = make([]int, parts)
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			at := ownerOf(s, o.Keys[lo+i], parts)
			owner[i] = uint16(at)
			counts[p][at]++
		}
	}))
	b.place(owner, counts, lo)
	return b
}

// place sorts the operations by their owner, given how many of each piece are whose.
func (b *batch) place(owner []uint16, counts [][]int, lo int) {
	parts := len(counts[0])
	b.ends = make([]int, parts)
	at := 0
	for part := range parts {
		for _, c := range counts {
			c[part], at = at, at+c[part]
		}
		b.ends[part] = at
	}
	const piece = 4096
	par.Run(b.workers, len(counts), par.Func(func(p int) {
		next := counts[p]
		for i := p * piece; i < min((p+1)*piece, len(owner)); i++ {
			b.rows[next[owner[i]]] = int32(lo + i)
			next[owner[i]]++
		}
	}))
}

// ownerOf returns the part of a key: one for all keys that begin with the bytes that
// lead to a top.
func ownerOf(s *shortcuts, key string, parts int) int {
	var h uint64
	if s != nil && len(key) >= s.depth {
		h = s.hash(key)
	} else {
		for i := range len(key) {
			h = (h ^ uint64(key[i])) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
	}
	hi, _ := bits.Mul64(h*0x9e3779b97f4a7c15, uint64(parts))
	return int(hi)
}

// run calls f with each part, on several goroutines.
func (b *batch) run(f func(rows []int32) error) {
	par.Run(b.workers, len(b.ends), par.Func(func(p int) {
		lo := 0
		if p > 0 {
			lo = b.ends[p-1]
		}
		if err := f(b.rows[lo:b.ends[p]]); err != nil {
			b.err.CompareAndSwap(nil, &err)
		}
	}))
}

// failed reports whether a part has failed.
func (b *batch) failed() bool { return b.err.Load() != nil }

func (b *batch) error() error {
	if err := b.err.Load(); err != nil {
		return *err
	}
	return nil
}
