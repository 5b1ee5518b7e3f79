package index

import (
	"cmp"
	"errors"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/simd"
)

// Map is keys and their values, one a key, to be read and changed by any number of
// goroutines at once.
type Map[V any] struct {
	keyMap
	boxes   *boxes[V] // nil where values lie in the tree, or take no memory
	size    int       // bytes of a value in the tree
	key     KeyType
	codec   *Codec[V]
	workers int
	cfg     Config
	where   Device // where batches run
	why     string
	holds   holds // keys that only one goroutine may change
}

// NewMap returns an empty map.
func NewMap[V any](key KeyType, cfg Config, codec *Codec[V]) (*Map[V], error) {
	return LoadMap(key, 0, nil, cfg, codec)
}

// LoadMap returns a map of n entries. span sets keys and vals to those from lo on,
// which must ascend; several goroutines call it. keys are of the map's type.
func LoadMap[V any](key KeyType, n int, span func(lo int, keys order.Keys, vals []V), cfg Config, codec *Codec[V]) (*Map[V], error) {
	if err := treeLayout(key, cfg); err != nil {
		return nil, err
	}
	m := &Map[V]{key: key, codec: codec, workers: par.Workers(cfg.Workers), cfg: cfg, size: inlineSize[V]()}
	if m.size == 0 && sizeOf[V]() > 0 {
		m.boxes = new(boxes[V])
	}
	var err error
	switch {
	case cfg.DeviceOnly && key.Bits() == 32 && m.size != 8:
		m.keyMap, err = loadSolo[uint32](m, n, span)
	case cfg.DeviceOnly:
		m.keyMap, err = loadSolo[uint64](m, n, span)
	case key.Bits() == 0:
		m.keyMap, err = loadTexts(m, n, span)
	case cfg.Layout == "radix":
		m.keyMap, err = loadDigits(m, n, span)
	case key.Bits() == 32 && m.size != 8:
		m.keyMap, err = loadCodes[uint32](m, n, span)
	default:
		m.keyMap, err = loadCodes[uint64](m, n, span)
	}
	if err != nil {
		return nil, mutableError(err)
	}
	if m.boxes != nil {
		m.onFree(m.boxes.drop)
	}
	return m, m.attach()
}

// attach gives the map a GPU, if that is asked for. Only maps with values in the tree
// have one.
func (m *Map[V]) attach() (err error) {
	if m.boxes != nil || m.inRadix() && m.key.Bits() != 0 {
		m.where, m.why = onCPU, "numbers in a radix tree, and a tree of large values, are on the CPU"
		return nil
	}
	switch c := m.keyMap.(type) {
	case *textMap:
		m.keyMap, m.where, m.why, err = attachTexts(c, m.size, m.cfg)
	case *codes[uint32]:
		m.keyMap, m.where, m.why, err = attachCodes(c, m.cfg)
	case *codes[uint64]:
		m.keyMap, m.where, m.why, err = attachCodes(c, m.cfg)
	}
	if err != nil {
		m.keyMap.Close()
	}
	return err
}

// loadCodes makes the tree of a map.
func loadCodes[C order.Code, V any](m *Map[V], n int, span func(lo int, keys order.Keys, vals []V)) (keyMap, error) {
	tree, err := bplus.Load(n, func(lo int, ks, vs []C) {
		keys, vals := order.MakeKeys(m.key.Type, len(ks)), make([]V, len(vs))
		span(lo, keys, vals)
		codesOf(ks, keys)
		for i, v := range vals {
			if i > 0 || lo == 0 { // else another call puts it aside
				vs[i] = C(m.bits(v))
			}
		}
	}, m.cfg.Limit, m.workers)
	if err != nil {
		return nil, err
	}
	return &codes[C]{tree, m.key.Type, m.workers}, nil
}

// mutableError gives an error of a tree a cause.
func mutableError(err error) error {
	if errors.Is(err, bplus.ErrLimit) || errors.Is(err, radix.ErrLimit) {
		return problem(CauseLimit, "the tree is as large as it may be: %w", err)
	}
	if errors.Is(err, bplus.ErrClosed) || errors.Is(err, radix.ErrClosed) {
		return problem(CauseClosed, "%w", err)
	}
	return err
}

// failed gives an error of a change a cause, and the figures of a limit.
func (m *Map[V]) failed(err error) error {
	if errors.Is(err, bplus.ErrLimit) || errors.Is(err, radix.ErrLimit) {
		return problem(CauseLimit, "the nodes of the tree take %d bytes, the limit is %d, and this change needs more: raise MemoryLimit, or delete entries", m.Bytes(), m.cfg.Limit)
	}
	return mutableError(err)
}

// bits returns a value as the tree holds it: its own bits, or the number of the
// box that it is put into.
func (m *Map[V]) bits(v V) uint64 {
	switch {
	case m.size == 4:
		return uint64(*(*uint32)(unsafe.Pointer(&v)))
	case m.size == 8:
		return *(*uint64)(unsafe.Pointer(&v))
	case m.boxes == nil:
		return 0
	}
	born := uint64(0)
	if m.keyMap != nil { // nil while it is loaded
		born = m.Epoch()
	}
	return m.boxes.put(v, born)
}

// value returns what the tree holds as a value. The number of a box may be an old
// one; then the value is any.
func (m *Map[V]) value(bits uint64) (v V) {
	switch {
	case m.size == 4:
		*(*uint32)(unsafe.Pointer(&v)) = uint32(bits)
	case m.size == 8:
		*(*uint64)(unsafe.Pointer(&v)) = bits
	case m.boxes != nil:
		if b := m.boxes.load(bits); b != nil {
			return b.val
		}
	}
	return v
}

// gone takes what is no longer in the tree.
func (m *Map[V]) gone(bits ...uint64) {
	if m.boxes == nil || len(bits) == 0 {
		return
	}
	born := make([]uint64, len(bits))
	for i, s := range bits {
		born[i] = m.boxes.at(s).Load().born
	}
	m.retire(bits, born)
}

// Get returns the value of a key, and reports whether there is one.
func (m *Map[V]) Get(key order.Probe) (v V, ok bool) {
	if m.boxes == nil {
		bits, ok := m.get(key)
		return m.value(bits), ok
	}
	for {
		gen := m.Gen()
		bits, ok := m.get(key)
		var v V
		if ok {
			v = m.value(bits)
		}
		if m.Current(gen) || m.Closed() {
			return v, ok
		}
	}
}

// Set sets the value of a key.
func (m *Map[V]) Set(key order.Probe, val V) error {
	if m.boxes != nil {
		_, _, err := m.Swap(key, val)
		return err
	}
	m.awaitKey(key)
	if _, _, err := m.set(key, m.bits(val)); err != nil {
		return m.failed(err)
	}
	return nil
}

// Swap sets the value of a key, and returns the one it had.
func (m *Map[V]) Swap(key order.Probe, val V) (old V, had bool, err error) {
	m.awaitKey(key)
	bits := m.bits(val)
	was, had, err := m.set(key, bits)
	if err != nil {
		m.unused(bits)
		return old, false, m.failed(err)
	}
	return m.taken(was, had), had, nil
}

// unused takes back the box of a value that never came into the tree.
func (m *Map[V]) unused(bits ...uint64) {
	if m.boxes != nil {
		m.boxes.drop(bits)
	}
}

// taken returns a value that was taken out of the tree by the caller: nobody
// else frees its box.
func (m *Map[V]) taken(bits uint64, had bool) (v V) {
	if had {
		v = m.value(bits)
		if m.boxes != nil { // else a call would make a slice for nothing
			m.gone(bits)
		}
	}
	return v
}

// Delete deletes a key, and returns the value it had.
func (m *Map[V]) Delete(key order.Probe) (old V, had bool, err error) {
	m.awaitKey(key)
	was, had, err := m.remove(key)
	if err != nil {
		return old, false, m.failed(err)
	}
	return m.taken(was, had), had, nil
}

// Pop deletes the least entry, or the greatest, and returns it.
func (m *Map[V]) Pop(greatest bool) (key order.Probe, val V, ok bool, err error) {
	m.awaitAny()
	k, bits, ok, err := m.pop(greatest)
	if err != nil {
		return key, val, false, m.failed(err)
	}
	return k, m.taken(bits, ok), ok, nil
}

// DeleteRange deletes the entries from lo to hi, and returns how many there
// were.
func (m *Map[V]) DeleteRange(lo, hi order.Probe) (int, error) {
	m.awaitRange(lo, hi)
	if m.boxes == nil {
		n, err := m.deleteRange(lo, hi, nil)
		return n, m.failed(err)
	}
	var slots []uint64
	n, err := m.deleteRange(lo, hi, func(bits uint64) { slots = append(slots, bits) })
	m.gone(slots...)
	return n, m.failed(err)
}

// Rank returns the number of entries below key, or up to it.
func (m *Map[V]) Rank(key order.Probe, after bool) int { return m.rank(key, after) }

// RankBatch sets ranks[i] to Rank(keys[i]).
func (m *Map[V]) RankBatch(keys order.Keys, after bool, ranks []int) { m.rankBatch(keys, after, ranks) }

// At returns entry i in key order, and false if there are not so many.
func (m *Map[V]) At(i int) (key order.Probe, val V, ok bool) {
	for {
		gen := m.Gen()
		k, bits, ok := m.at(i)
		var v V
		if ok {
			v = m.value(bits)
		}
		if m.Current(gen) || m.Closed() {
			return k, v, ok
		}
	}
}

// Has reports whether there is an entry with a key.
func (m *Map[V]) Has(key order.Probe) bool {
	_, ok := m.get(key)
	return ok
}

// Edge is where entries begin, or end: at a key, or right behind it where it is
// open; None is no edge at all.
type Edge struct {
	Key        order.Probe
	Open, None bool
}

// NoEdge leaves out nothing.
var NoEdge = Edge{None: true}

// Beyond reports whether a key is on the other side of an edge, upwards or down.
func (m *Map[V]) Beyond(key order.Probe, e Edge, down bool) bool {
	if e.None {
		return false
	}
	c := m.compare(key, e.Key)
	if down {
		c = -c
	}
	return c > 0 || c == 0 && e.Open
}

// compare compares two keys.
func (m *Map[V]) compare(a, b order.Probe) int {
	if m.key.Bits() == 0 {
		return strings.Compare(a.Text, b.Text)
	}
	return cmp.Compare(a.Code, b.Code)
}

// Cursor reads entries one after the other while others change the map.
type Cursor[V any] struct {
	m *Map[V]
	c keyCursor
}

// Cursor returns a cursor. Move comes first.
func (m *Map[V]) Cursor() Cursor[V] { return Cursor[V]{m, m.cursor()} }

// Done gives the cursor's memory to a later one. It must not be used again.
func (c Cursor[V]) Done() { c.c.Done() }

// Move makes Next return the first entry within an edge, upwards or down. It
// returns false if there can be none: then Move comes before the next Next.
func (c Cursor[V]) Move(from Edge, down bool) bool { return c.c.move(from, down) }

// Next returns the next entry, and false if there is none.
func (c Cursor[V]) Next() (key order.Probe, val V, ok bool) {
	if c.m.boxes == nil {
		k, bits, ok := c.c.next()
		if !ok {
			return key, val, false
		}
		return k, c.m.value(bits), true
	}
	for {
		gen := c.m.Gen()
		k, bits, ok := c.c.next()
		var v V
		if ok {
			v = c.m.value(bits)
		}
		if !ok || c.m.Current(gen) {
			return k, v, ok
		}
		c.c.Undo() // not to the key that was found: one before it may have come since
	}
}

// Stats describes the map.
func (m *Map[V]) Stats() Stats {
	s := Stats{Len: m.Len(), Device: m.where, Reason: m.why, Path: simd.Active().String(), Layout: "bplus", Workers: m.workers, Pages: m.cfg.Pages, Fanout: 64}
	if m.inRadix() {
		s.Layout, s.Fanout = "radix", 256
	}
	s.LeafBytes, s.KeptBytes = m.Bytes(), m.Kept()
	if m.boxes != nil {
		s.HeapBytes = m.boxes.held.Load() * int64(sizeOf[V]()+24)
	}
	s.TotalBytes = s.LeafBytes + s.HeapBytes
	if d, ok := m.keyMap.(onGPUMap); ok {
		s.DeviceBytes = d.deviceBytes()
		if err := d.down(); err != nil {
			s.Device, s.Reason = onCPU, "GPU failed: "+err.Error()
		}
	}
	return s
}

// Workers returns the most goroutines that a batch uses.
func (m *Map[V]) Workers() int { return m.workers }
