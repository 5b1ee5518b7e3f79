package live

import (
	"errors"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Map is keys and their values, one a key, to be read and changed by any number of
// goroutines at once.
type Map struct {
	tree    Tree
	boxes   *boxes      // nil where values lie in the tree, or take no memory
	gens    Generations // of the tree, where there are boxes; nil while it is loaded
	kind    *kind
	val     *index.ValueType
	size    int // bytes of a value in the tree
	key     index.KeyType
	codec   *index.Codec
	workers int
	cfg     index.Config
	where   index.Device // where batches run
	why     string
	holds   holds // keys that only one goroutine may change
	walks   par.Pool[walk]
	short   short // reads short ranges

	setLimit func(bytes int64) // of the tree; nil if it knows none
}

// bind makes a limit count that was not to count so far.
func (m *Map) bind() {
	if m.setLimit != nil {
		m.setLimit(m.cfg.Limit)
	}
}

// LoadMap returns a map of n entries. span sets keys and vals to those from lo on,
// which must ascend; several goroutines call it. keys are of the map's type.
func LoadMap(key index.KeyType, val *index.ValueType, n int, span func(lo int, keys order.Keys, vals index.Column), cfg index.Config, codec *index.Codec) (*Map, error) {
	k, err := kindOf(key.Type, &cfg)
	if err != nil {
		return nil, err
	}
	m := &Map{kind: k, key: key, codec: codec, workers: par.Workers(cfg.Workers), cfg: cfg, val: val, size: val.KeptSize(), walks: par.NewPool[walk]()}
	if m.size == 0 && val.Size() > 0 {
		m.boxes = new(boxes)
	}
	if m.tree, err = k.load(&loading{m, n, span}); err != nil {
		return nil, mutableError(err)
	}
	if m.boxes != nil {
		m.gens = m.tree.(Boxer).Generations()
		m.gens.OnFree(m.boxes.drop)
	}
	if err := m.attach(); err != nil {
		return m, err
	}
	m.short.init(m)
	return m, nil
}

// attach gives the tree a GPU, if that is asked for. Only trees that hold the values have
// one.
func (m *Map) attach() (err error) {
	t, can := m.tree.(Attacher)
	switch {
	case !can:
		return nil
	case m.boxes != nil:
		m.where, m.why = index.OnCPU, reasonOnCPU
		return nil
	}
	if m.tree, m.where, m.why, err = t.Attach(m.cfg, m.size); err != nil {
		m.tree.Close()
	}
	return err
}

const reasonOnCPU = "numbers in a radix tree, and a tree of large values, are on the CPU"

// loadEach sets dst to the bits or box numbers that the tree holds for values.
func loadEach[C order.Code](m *Map, dst []C, vals index.Column) {
	if m.boxes == nil {
		loadVals(dst, m.val.Bytes(vals), m.size)
		return
	}
	for i := range dst {
		dst[i] = C(m.bits(m.val.Boxed(m.val.Place(vals, i))))
	}
}

// mutableError gives an error of a tree a cause.
func mutableError(err error) error {
	if errors.Is(err, op.ErrLimit) {
		return index.Problem(index.ErrMemoryLimit, "the tree is as large as it may be: %w", err)
	}
	if errors.Is(err, op.ErrClosed) {
		return index.Problem(index.ErrClosed, "%w", err)
	}
	return err
}

// failed gives an error of a change a cause, and the figures of a limit.
func (m *Map) failed(err error) error {
	if errors.Is(err, op.ErrLimit) {
		return index.Problem(index.ErrMemoryLimit, "the nodes of the tree take %d bytes, the limit is %d, and this change needs more: raise MemoryLimit, or delete entries", m.tree.Bytes(), m.cfg.Limit)
	}
	return mutableError(err)
}

// bits returns a value as the tree holds it: its own bits, or the number of the
// box that it is put into.
func (m *Map) bits(v index.Value) uint64 {
	if m.boxes == nil {
		return v.Bits
	}
	born := uint64(0)
	if m.gens != nil {
		born = m.gens.Epoch()
	}
	return m.boxes.put(v.At, born)
}

// value returns the value of bits or of a box number that the tree holds. The number
// of a box may be an old one; then the value is any.
func (m *Map) value(bits uint64) index.Value {
	if m.boxes == nil {
		return index.Value{Bits: bits}
	}
	return index.Value{At: m.boxes.load(bits)}
}

// storeAll sets vals to the values of bits or box numbers that the tree holds.
func (m *Map) storeAll(vals index.Column, bits []uint64) {
	if m.boxes == nil {
		storeVals(m.val.Bytes(vals), m.size, bits)
		return
	}
	for i, b := range bits {
		m.val.Store(m.val.Place(vals, i), m.value(b))
	}
}

// gone takes a value that is no longer in the tree.
func (m *Map) gone(bits ...uint64) {
	if m.boxes == nil || len(bits) == 0 {
		return
	}
	born := make([]uint64, len(bits))
	for i, s := range bits {
		born[i] = m.boxes.born(s)
	}
	m.gens.Retire(bits, born)
}

// Get returns the value of a key, and reports whether there is one.
func (m *Map) Get(key order.Probe) (v index.Value, ok bool) {
	if m.boxes == nil {
		bits, ok := m.tree.Get(key)
		return m.value(bits), ok
	}
	for {
		gen := m.gens.Gen()
		bits, ok := m.tree.Get(key)
		var v index.Value
		if ok {
			v = m.value(bits)
		}
		if m.gens.Current(gen) || m.tree.Closed() {
			return v, ok
		}
	}
}

// Set sets the value of a key.
func (m *Map) Set(key order.Probe, val index.Value) error {
	if m.boxes != nil {
		_, _, err := m.Swap(key, val)
		return err
	}
	m.awaitKey(key)
	if _, _, err := m.tree.Set(key, m.bits(val)); err != nil {
		return m.failed(err)
	}
	return nil
}

// Swap sets the value of a key, and returns the one it had.
func (m *Map) Swap(key order.Probe, val index.Value) (old index.Value, had bool, err error) {
	m.awaitKey(key)
	bits := m.bits(val)
	was, had, err := m.tree.Set(key, bits)
	if err != nil {
		m.unused(bits)
		return old, false, m.failed(err)
	}
	return m.taken(was, had), had, nil
}

// unused takes back the box of a value that never came into the tree.
func (m *Map) unused(bits ...uint64) {
	if m.boxes != nil {
		m.boxes.drop(bits)
	}
}

// taken returns a value that was taken out of the tree by the caller: nobody
// else frees its box.
func (m *Map) taken(bits uint64, had bool) (v index.Value) {
	if had {
		v = m.value(bits)
		if m.boxes != nil { // else a call would make a slice for nothing
			m.gone(bits)
		}
	}
	return v
}

// Delete deletes a key, and returns the value it had.
func (m *Map) Delete(key order.Probe) (old index.Value, had bool, err error) {
	m.awaitKey(key)
	was, had, err := m.tree.Delete(key)
	if err != nil {
		return old, false, m.failed(err)
	}
	return m.taken(was, had), had, nil
}

// Pop deletes the least entry, or the greatest, and returns it.
func (m *Map) Pop(greatest bool) (key order.Probe, val index.Value, ok bool, err error) {
	m.awaitAny()
	k, bits, ok, err := m.tree.Pop(greatest)
	if err != nil {
		return key, val, false, m.failed(err)
	}
	return k, m.taken(bits, ok), ok, nil
}

// DeleteRange deletes the entries from lo to hi, and returns how many there
// were.
func (m *Map) DeleteRange(lo, hi order.Probe) (int, error) {
	m.awaitRange(lo, hi)
	if m.boxes == nil {
		n, err := m.tree.DeleteRange(lo, hi, nil)
		return n, m.failed(err)
	}
	var slots []uint64
	n, err := m.tree.DeleteRange(lo, hi, func(bits uint64) { slots = append(slots, bits) })
	m.gone(slots...)
	return n, m.failed(err)
}

// Rank returns the number of entries below key, or up to it.
func (m *Map) Rank(key order.Probe, after bool) int { return m.tree.Rank(key, after) }

// RankBatch sets ranks[i] to Rank(keys[i]).
func (m *Map) RankBatch(keys order.Keys, after bool, ranks []int) {
	m.tree.RankBatch(keys, after, ranks)
}

// At returns entry i in key order, and false if there is none.
func (m *Map) At(i int) (key order.Probe, val index.Value, ok bool) {
	for {
		gen := uint64(0)
		if m.boxes != nil {
			gen = m.gens.Gen()
		}
		k, bits, ok := m.tree.At(i)
		var v index.Value
		if ok {
			v = m.value(bits)
		}
		if m.boxes == nil || m.gens.Current(gen) || m.tree.Closed() {
			return k, v, ok
		}
	}
}

// Has reports whether there is an entry with a key.
func (m *Map) Has(key order.Probe) bool {
	_, ok := m.tree.Get(key)
	return ok
}

// Beyond reports whether a key is on the other side of an edge, upwards or down.
func (m *Map) Beyond(key order.Probe, e index.Edge, down bool) bool {
	return m.key.Beyond(key, e, down)
}

// compare compares two keys.
func (m *Map) compare(a, b order.Probe) int { return m.key.Compare(a, b) }

// Cursor reads entries one after the other while others change the map.
type Cursor struct {
	m *Map
	c TreeCursor
}

// Cursor returns a cursor. Move comes first.
func (m *Map) Cursor() Cursor { return Cursor{m, m.tree.Cursor()} }

// Done gives the cursor's memory to a later one. It must not be used again.
func (c Cursor) Done() { c.c.Done() }

// Move makes Next return the first entry within an edge, upwards or down. It
// returns false if there can be none: then Move comes before the next Next.
func (c Cursor) Move(from index.Edge, down bool) bool { return c.c.Move(from, down) }

// Next returns the next entry, and false if there is none.
func (c Cursor) Next() (key order.Probe, val index.Value, ok bool) {
	if c.m.boxes == nil {
		k, bits, ok := c.c.Next()
		if !ok {
			return key, val, false
		}
		return k, c.m.value(bits), true
	}
	for {
		gen := c.m.gens.Gen()
		k, bits, ok := c.c.Next()
		var v index.Value
		if ok {
			v = c.m.value(bits)
		}
		if !ok || c.m.gens.Current(gen) {
			return k, v, ok
		}
		c.c.Undo() // not to the key that was found: one before it may have come since
	}
}

// Stats describes the map.
func (m *Map) Stats() index.Stats {
	s := index.Stats{Len: m.Len(), Device: m.where, Reason: m.why, Path: simd.Active().String(), Layout: string(m.kind.name), Workers: m.workers, Pages: m.cfg.Pages, Fanout: m.kind.fanout}
	s.LeafBytes, s.KeptBytes = m.tree.Bytes(), m.tree.Kept()
	if m.boxes != nil {
		s.HeapBytes = m.boxes.held.Load() * int64(m.val.Size()+24)
	}
	s.TotalBytes = s.LeafBytes + s.HeapBytes
	if d, ok := m.tree.(OnGPU); ok {
		s.DeviceBytes = d.DeviceBytes()
		if err := d.Down(); err != nil {
			s.Device, s.Reason = index.OnCPU, "GPU failed: "+err.Error()
		}
	}
	return s
}

// Len returns the number of entries.
func (m *Map) Len() int { return m.tree.Len() }

// Check returns an error for the first thing in the tree that is not as it must be.
func (m *Map) Check() error { return m.tree.Check() }

// Close gives the memory back that no snapshot needs.
func (m *Map) Close() { m.tree.Close() }

// Workers returns the most goroutines that a batch uses.
func (m *Map) Workers() int { return m.workers }
