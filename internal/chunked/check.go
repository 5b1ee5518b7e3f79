package chunked

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
)

// leaf is the bytes of one, as chunked.h has them.
type leaf[C order.Code] struct{ keys, vals [kernel.LeafEntries]C }

// chunk is the parts of one, as chunked.h has them: their sizes depend on the keys.
type chunk[C order.Code] struct {
	seps, pivots []C
	items        []item
}

// item is the data of a leaf in a chunk, beside its separator.
type item struct {
	ref          uint32
	first, count uint16
}

// chunkOf returns the chunk in a slot.
func chunkOf[C order.Code](bytes []byte) *chunk[C] {
	var k chunk[C]
	take := func(n int) (v []C) {
		v = unsafe.Slice((*C)(unsafe.Pointer(&bytes[0])), n)
		bytes = bytes[n*int(unsafe.Sizeof(C(0))):]
		return v
	}
	k.seps = take(kernel.ChunkLeaves)
	k.pivots = take(kernel.ChunkLeaves / kernel.ChunkGroup(codeBits[C]()))
	k.items = unsafe.Slice((*item)(unsafe.Pointer(&bytes[0])), kernel.ChunkLeaves)
	return &k
}

// checking is a tree that is being looked at, in copies of its memory.
type checking[C order.Code] struct {
	t      *Tree[C]
	b      *table
	leaves []leaf[C]
	chunks []byte          // slots
	slots  map[uint32]bool // leaves seen
	keys   []C
	vals   []C
	low    C // the next key is above
	any    bool
}

// Check looks at all of the newest version, and returns an error if something is
// not as it must be. It copies the tree to host memory.
func (t *Tree[C]) Check() error {
	_, _, err := t.read(t.now)
	return err
}

// read returns all entries of a version, and looks at everything on the way.
func (t *Tree[C]) read(b *table) (keys, vals []C, err error) {
	c := &checking[C]{t: t, b: b, slots: map[uint32]bool{}}
	c.leaves, c.chunks = make([]leaf[C], t.leaves.next), make([]byte, t.chunks.next*kernel.ChunkBytes(t.run.Bits))
	if err := t.copyOut(arena.Bytes(c.leaves), t.leaves.base); err != nil {
		return nil, nil, err
	}
	if err := t.copyOut(c.chunks, t.chunks.base); err != nil {
		return nil, nil, err
	}
	if err := c.tables(); err != nil {
		return nil, nil, err
	}
	if len(c.keys) != b.entries {
		return nil, nil, fmt.Errorf("chunked: %d entries, %d are known", len(c.keys), b.entries)
	}
	if len(c.slots) != b.leaves {
		return nil, nil, fmt.Errorf("chunked: %d leaves, %d are known", len(c.slots), b.leaves)
	}
	return c.keys, c.vals, c.free(&t.leaves, c.slots)
}

func (t *Tree[C]) copyOut(to []byte, from device.Ptr) error {
	if len(to) == 0 {
		return nil
	}
	if err := t.run.Stream.CopyOut(to, from); err != nil {
		return err
	}
	return t.run.Stream.Synchronize()
}

// words reads n numbers.
func (c *checking[C]) words(at device.Ptr, n int) ([]uint32, error) {
	out := make([]uint32, n)
	return out, c.t.copyOut(arena.Bytes(out), at)
}

// tables looks at the table, and at all chunks.
func (c *checking[C]) tables() error {
	v := &c.b.version
	n := int(v.Count)
	slots, err := c.words(v.Slots, n)
	if err != nil {
		return err
	}
	used, err := c.words(v.Used, n)
	if err != nil {
		return err
	}
	first, err := c.words(v.First, n+1)
	if err != nil {
		return err
	}
	heads := make([]C, n*kernel.HeadKeys)
	if err := c.t.copyOut(arena.Bytes(heads), v.Heads); err != nil {
		return err
	}
	seps, err := c.levels()
	if err != nil {
		return err
	}
	seen, size := map[uint32]bool{}, kernel.ChunkBytes(c.t.run.Bits)
	for i := range n {
		if int(first[i]) != len(c.keys) {
			return fmt.Errorf("chunked: chunk %d begins with entry %d, not %d", i, first[i], len(c.keys))
		}
		if int(slots[i]) >= c.t.chunks.next || seen[slots[i]] {
			return fmt.Errorf("chunked: chunk %d is in slot %d of %d, or another is", i, slots[i], c.t.chunks.next)
		}
		seen[slots[i]] = true
		k := chunkOf[C](c.chunks[int(slots[i])*size:])
		for q, have := range heads[i*kernel.HeadKeys:][:kernel.HeadKeys] {
			want := C(slots[i])
			if q < kernel.HeadKeys-1 {
				want = k.seps[(q+1)*kernel.ChunkLeaves/kernel.HeadKeys-1]
			}
			if have != want {
				return fmt.Errorf("chunked: chunk %d: key %d of its head is %d, not %d", i, q, have, want)
			}
		}
		if err := c.chunk(k, int(used[i]), seps[i]); err != nil {
			return fmt.Errorf("chunked: chunk %d: %w", i, err)
		}
	}
	if int(first[n]) != len(c.keys) || seps[n-1] != ^C(0) {
		return fmt.Errorf("chunked: the table ends with entry %d and separator %d", first[n], seps[n-1])
	}
	return c.free(&c.t.chunks, seen)
}

// levels looks at the levels of separators, and returns the lowest.
func (c *checking[C]) levels() (seps []C, err error) {
	v, group := &c.b.version, kernel.ChunkGroup(c.t.run.Bits)
	var above []C
	sizes := []int{int(v.Count)}
	for range v.Levels - 1 { // there may be more than are needed
		sizes = slices.Insert(sizes, 0, (sizes[0]+group-1)/group)
	}
	for l, n := range sizes {
		seps = make([]C, kernel.SepRoom(n, c.t.run.Bits))
		if err := c.t.copyOut(arena.Bytes(seps), v.Seps[l]); err != nil {
			return nil, err
		}
		for i, s := range seps {
			if i >= n && s != ^C(0) || i > 0 && i < n && s <= seps[i-1] {
				return nil, fmt.Errorf("chunked: separator %d of level %d is %d", i, l, s)
			}
		}
		for i := range above {
			if want := seps[min(i*group+group-1, n-1)]; above[i] != want {
				return nil, fmt.Errorf("chunked: separator %d of level %d is %d, not %d", i, l-1, above[i], want)
			}
		}
		above = seps[:n]
	}
	return above, nil
}

// chunk checks a chunk, used being the number of its leaves, and these.
func (c *checking[C]) chunk(k *chunk[C], used int, sep C) error {
	if used < 1 || used > kernel.ChunkLeaves || k.seps[used-1] != sep {
		return fmt.Errorf("%d leaves, up to key %d", used, sep)
	}
	for i, p := range k.pivots {
		if want := k.seps[(i+1)*kernel.ChunkLeaves/len(k.pivots)-1]; p != want {
			return fmt.Errorf("pivot %d is %d, not %d", i, p, want)
		}
	}
	before := 0
	for e, x := range k.items {
		if e >= used {
			if k.seps[e] != ^C(0) || x.count != 0 {
				return fmt.Errorf("leaf %d, behind the last, has separator %d and %d entries", e, k.seps[e], x.count)
			}
			continue
		}
		if int(x.first) != before {
			return fmt.Errorf("leaf %d begins with entry %d, not %d", e, x.first, before)
		}
		before += int(x.count)
		if err := c.leaf(x.ref, int(x.count), k.seps[e]); err != nil {
			return fmt.Errorf("leaf %d: %w", e, err)
		}
	}
	return nil
}

// leaf checks a leaf of count entries, whose keys are up to high.
func (c *checking[C]) leaf(ref uint32, count int, high C) error {
	if int(ref) >= len(c.leaves) || c.slots[ref] {
		return fmt.Errorf("in slot %d of %d, or another is", ref, len(c.leaves))
	}
	c.slots[ref] = true
	last := high == ^C(0) && c.b.leaves == len(c.slots)
	if count > kernel.LeafEntries || count == 0 && !last {
		return fmt.Errorf("slot %d: %d entries", ref, count)
	}
	l := &c.leaves[ref]
	for i, k := range l.keys[:count] {
		if c.any && k <= c.low || k > high {
			return fmt.Errorf("slot %d: key %d is %d, after %d, up to %d", ref, i, k, c.low, high)
		}
		c.low, c.any = k, true
		c.keys, c.vals = append(c.keys, k), append(c.vals, l.vals[i])
	}
	if c.any && c.low > high {
		return fmt.Errorf("slot %d ends with %d, before %d", ref, high, c.low)
	}
	return nil
}

// free looks at the list of free slots: with those in use, and those that
// snapshots need, they are all.
func (c *checking[C]) free(s *space, used map[uint32]bool) error {
	list, err := c.words(s.list.At, s.list.N)
	if err != nil {
		return err
	}
	seen := map[uint32]bool{}
	for _, x := range list {
		if int(x) >= s.next || used[x] || seen[x] {
			return fmt.Errorf("chunked: slot %d is free, and in use, or free twice, or was never used", x)
		}
		seen[x] = true
	}
	if len(c.t.held) == 0 && len(c.t.limbo) == 0 && c.b == c.t.now && len(used)+len(seen) != s.next {
		return fmt.Errorf("chunked: %d slots are in use, %d free, of %d", len(used), len(seen), s.next)
	}
	return nil
}
