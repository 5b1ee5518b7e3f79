package rig

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/internal/op"
)

// BitBytes returns the size in bytes of n bits in words of 32 bits.
func BitBytes(n int) int { return (n + 31) / 32 * 4 }

// AllSet checks words of found bits, starting with that of query 32·first: all
// must be set, since all n queries are hits, and none after the last.
func AllSet(first int, part []uint32, n int) error {
	for i, w := range part {
		at := 32 * (first + i)
		want := uint32(math.MaxUint32)
		if n-at < 32 {
			want = 1<<(n-at) - 1
		}
		if w != want {
			return fmt.Errorf("found bit of query %d is wrong", at+bits.TrailingZeros32(w^want))
		}
	}
	return nil
}

// Placing puts things into the GPU's memory until there is an error.
type Placing struct {
	G      *Rig
	Memory []Ptr
	Err    error
}

// Room returns memory.
func (p *Placing) Room(bytes int) (at Ptr) {
	if p.Err != nil {
		return 0
	}
	if at, p.Err = p.G.Dev.Alloc(max(bytes, 4)); p.Err == nil {
		p.Memory = append(p.Memory, at)
	}
	return at
}

// Place returns a copy of a slice.
func Place[T any](p *Placing, s []T) Ptr {
	var t T
	at := p.Room(len(s) * int(unsafe.Sizeof(t)))
	if p.Err == nil && len(s) > 0 {
		p.Err = errors.Join(p.G.Stream.CopyIn(at, inside.Bytes(s)), p.G.Stream.Synchronize())
	}
	return at
}

// Free frees all of it.
func (p *Placing) Free() error {
	var errs []error
	for _, at := range p.Memory {
		errs = append(errs, p.G.Dev.Free(at))
	}
	return errors.Join(errs...)
}

// ClearTree is clear for what may have found no room in a tree, either.
func (g *Rig) ClearTree(n int, err error) error {
	if errors.Is(err, op.ErrLimit) {
		err = fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	}
	return g.Clear(n, err)
}
