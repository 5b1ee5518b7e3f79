package radix

import (
	"math/bits"
	"sync/atomic"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/shortcut"
)

// batch is the operations of a batch, or some of them, in parts: those with keys of one
// sub-tree are in one part, in their order. So the worker of a part hardly ever meets
// others.
type batch struct {
	workers int
	rows    []int32 // numbers of the first operations on each key, part by part
	ends    []int   // where each part ends
	err     atomic.Pointer[error]
}

const (
	partsEach = 8   // parts for each worker, so that none waits long for the last
	leastPart = 128 // operations of a part, about
)

// newBatch parts the operations on the keys from lo to hi.
func newBatch(o *Ops, lo, hi int, s *shortcut.Table) *batch {
	n := hi - lo
	b := &batch{workers: max(min(o.Workers, n/leastPart), 1)}
	if b.workers == 1 {
		b.rows, b.ends = make([]int32, n), []int{n}
		for i := range b.rows {
			b.rows[i] = o.head(lo + i)
		}
		return b
	}
	parts := min(b.workers*partsEach, n/leastPart)
	b.rows, b.ends = parted(b.workers, n, parts, func(from, to int, owner []uint16) {
		for i := from; i < to; i++ {
			owner[i] = uint16(ownerOf(s, o.Keys[o.head(lo+i)], parts))
		}
	})
	for i, at := range b.rows {
		b.rows[i] = o.head(lo + int(at))
	}
	return b
}

// parted sorts the numbers from 0 to n-1 by their owners, of which there are parts, and returns
// where those of each end. own sets the owners of numbers from lo to hi; several goroutines call
// it.
func parted(workers, n, parts int, own func(lo, hi int, owner []uint16)) (rows []int32, ends []int) {
	const piece = 4096
	owner := make([]uint16, n)
	counts := make([][]int, (n+piece-1)/piece)
	par.Run(workers, len(counts), par.Func(func(p int) {
		counts[p] = make([]int, parts)
		lo, hi := p*piece, min((p+1)*piece, n)
		own(lo, hi, owner)
		for _, at := range owner[lo:hi] {
			counts[p][at]++
		}
	}))
	rows, ends = make([]int32, n), make([]int, parts)
	at := 0
	for part := range parts {
		for _, c := range counts {
			c[part], at = at, at+c[part]
		}
		ends[part] = at
	}
	par.Run(workers, len(counts), par.Func(func(p int) {
		next := counts[p]
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			rows[next[owner[i]]] = int32(i)
			next[owner[i]]++
		}
	}))
	return rows, ends
}

// ownerOf returns the part of a key: one for all keys that begin with the bytes that
// lead to a top.
func ownerOf(s *shortcut.Table, key string, parts int) int {
	var h uint64
	if s != nil && len(key) >= s.Depth {
		h = s.Hash(key)
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
