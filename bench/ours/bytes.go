package ours

import (
	"bytes"
	"encoding/binary"

	"github.com/pando-index/pando"
)

// TreeBytes is a Tree of strings and slices of bytes.
type TreeBytes struct {
	Tree *pando.Tree[string, []byte]
	buf  []byte
	room BatchRoom
}

// BatchRoom is memory for the results of GetBatchAppend.
type BatchRoom struct {
	data    []byte
	offsets []int64
	found   []bool
}

// NewTreeBytes returns an empty one.
func NewTreeBytes() (*TreeBytes, error) {
	t, err := pando.NewTree[string, []byte](pando.Workers(1))
	return &TreeBytes{Tree: t}, err
}

func (t *TreeBytes) Name() string { return NameTree }
func (t *TreeBytes) Close()       { t.Tree.Close() }

func (t *TreeBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		if err := t.Tree.Set(k, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *TreeBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		var ok bool
		if t.buf, ok = t.Tree.GetAppend(k, t.buf[:0]); ok {
			got[i] = binary.LittleEndian.Uint64(t.buf)
			hits++
		}
	}
	return hits
}

// GetEach is Get by the method Get, which allocates each value.
func (t *TreeBytes) GetEach(q []string, got []uint64) (hits int) {
	for i, k := range q {
		if v, ok := t.Tree.Get(k); ok {
			got[i] = binary.LittleEndian.Uint64(v)
			hits++
		}
	}
	return hits
}

// bytesAtOnce is the keys of a batch: its values stay in the caches.
const bytesAtOnce = 4096

// GetBatch is Get by batches.
func (t *TreeBytes) GetBatch(q []string, got []uint64) (hits int) {
	return t.room.GetBatch(t.Tree, q, got)
}

// GetBatch looks keys up by batches.
func (r *BatchRoom) GetBatch(t *pando.Tree[string, []byte], q []string, got []uint64) (hits int) {
	if r.found == nil {
		r.offsets, r.found = make([]int64, bytesAtOnce+1), make([]bool, bytesAtOnce)
	}
	for lo := 0; lo < len(q); lo += bytesAtOnce {
		part := q[lo:min(lo+bytesAtOnce, len(q))]
		var n int
		r.data, n = t.GetBatchAppend(part, r.data[:0], r.offsets, r.found)
		hits += n
		for i := range part {
			if r.found[i] {
				got[lo+i] = binary.LittleEndian.Uint64(r.data[r.offsets[i]:])
			}
		}
	}
	return hits
}

// SetBatch is Set by batches.
func (t *TreeBytes) SetBatch(keys []string, vals [][]byte) error {
	const atOnce = 1 << 16
	for lo := 0; lo < len(keys); lo += atOnce {
		hi := min(lo+atOnce, len(keys))
		if err := t.Tree.SetBatch(keys[lo:hi], vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

func (t *TreeBytes) Delete(keys []string) error {
	for _, k := range keys {
		t.Tree.Delete(k)
	}
	return nil
}

// NameBoxes is a Tree whose values the garbage collector sees.
const NameBoxes = "Pando Tree, boxes"

// box is a slice of bytes that a Tree keeps in Go memory, as it does all values with pointers
// that are not strings or slices themselves.
type box struct{ b []byte }

// BoxedBytes is a Tree of strings and boxes.
type BoxedBytes struct{ tree *pando.Tree[string, box] }

// NewBoxedBytes returns an empty one.
func NewBoxedBytes() (*BoxedBytes, error) {
	t, err := pando.NewTree[string, box](pando.Workers(1))
	return &BoxedBytes{t}, err
}

func (t *BoxedBytes) Name() string { return NameBoxes }
func (t *BoxedBytes) Close()       { t.tree.Close() }

func (t *BoxedBytes) Set(keys []string, vals [][]byte) error {
	for i, k := range keys {
		if err := t.tree.Set(k, box{bytes.Clone(vals[i])}); err != nil {
			return err
		}
	}
	return nil
}

func (t *BoxedBytes) Get(q []string, got []uint64) (hits int) {
	for i, k := range q {
		if v, ok := t.tree.Get(k); ok {
			got[i] = binary.LittleEndian.Uint64(v.b)
			hits++
		}
	}
	return hits
}

func (t *BoxedBytes) Delete(keys []string) error {
	for _, k := range keys {
		t.tree.Delete(k)
	}
	return nil
}
