package chunked

import (
	"encoding/binary"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
)

// TEMPORARY: on the host.

func (t *Tree[C]) primitiveBytes(n int) int { return 0 }

// sum sets out to the sums of n numbers before each, and of all.
func (t *Tree[C]) sum(in, out device.Ptr, n int) error {
	buf := make([]byte, 4*n)
	if err := t.run.Stream.CopyOut(buf, in); err != nil {
		return err
	}
	if err := t.run.Stream.Synchronize(); err != nil {
		return err
	}
	res, sum := make([]byte, 4*n+4), uint32(0)
	for i := range n {
		binary.LittleEndian.PutUint32(res[4*i:], sum)
		sum += binary.LittleEndian.Uint32(buf[4*i:])
	}
	binary.LittleEndian.PutUint32(res[4*n:], sum)
	if err := t.run.Stream.CopyIn(out, res); err != nil {
		return err
	}
	return t.run.Stream.Synchronize()
}

func (t *Tree[C]) sort(ops *Ops) (keys, places device.Ptr, err error) {
	n := ops.N
	ks := make([]C, n)
	if err := t.run.Stream.CopyOut(arena.Bytes(ks), ops.Keys); err != nil {
		return 0, 0, err
	}
	if err := t.run.Stream.Synchronize(); err != nil {
		return 0, 0, err
	}
	idx := make([]uint32, n)
	for i := range idx {
		idx[i] = uint32(i)
	}
	slices.SortStableFunc(idx, func(a, b uint32) int {
		switch {
		case ks[a] < ks[b]:
			return -1
		case ks[a] > ks[b]:
			return 1
		}
		return 0
	})
	out := make([]C, n)
	for i, x := range idx {
		out[i] = ks[x]
	}
	keys, places = t.work.bytes(n*t.run.Bits/8), t.work.words(n)
	if err := t.run.Stream.CopyIn(keys, arena.Bytes(out)); err != nil {
		return 0, 0, err
	}
	if err := t.run.Stream.CopyIn(places, arena.Bytes(idx)); err != nil {
		return 0, 0, err
	}
	return keys, places, t.run.Stream.Synchronize()
}
