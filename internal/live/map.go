package live

import (
	"errors"
	"sync"
	"time"

	"github.com/pando-index/pando/internal/blob"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Map is keys and their values, one a key, to be read and changed by any number of
// goroutines at once.
type Map struct {
	tree    Tree
	apart   apart        // values that do not lie in the tree; nil where they do, or take no memory
	gens    Generations  // of the tree, where values lie apart; nil while it is loaded
	clock   *epoch.Clock // that of gens
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
	short   shortReader         // nil where the tree is none, or the values lie apart
	ones    par.Pool[[2]uint64] // for oneGone
	tidying tidying
	line    sync.Mutex   // held by a change that waits for room
	taking  sync.RWMutex // see take

	setLimit func(bytes int64) // of the tree; nil if it knows none
}

// bind makes a limit count that was not to count so far.
func (m *Map) bind() {
	if m.setLimit != nil {
		m.setLimit(m.cfg.Limit)
	}
	if s, ok := m.apart.(*stored); ok {
		s.store.SetLimit(m.cfg.Limit)
	}
}

// LoadMap returns a map of n entries. span sets keys and vals to those from lo on,
// which must ascend; several goroutines call it. keys are of the map's type.
func LoadMap(key index.KeyType, val *index.ValueType, n int, span func(lo int, keys order.Keys, vals index.Column), cfg index.Config, codec *index.Codec) (*Map, error) {
	k, err := kindOf(key.Type, &cfg)
	if err != nil {
		return nil, err
	}
	m := &Map{kind: k, key: key, codec: codec, workers: par.Workers(cfg.Workers), cfg: cfg, val: val, size: val.KeptSize(), walks: par.NewPool[walk](), ones: par.NewPool[[2]uint64]()}
	switch {
	case val.Stored():
		m.keep()
	case m.size == 0 && val.Size() > 0:
		m.apart = &boxes{val: val}
	}
	if m.tree, err = k.load(&loading{Map: m, n: n, span: span}); err == nil {
		err = m.join()
	}
	if err != nil {
		if m.apart != nil {
			m.apart.over()
		}
		return nil, mutableError(err)
	}
	if err := m.attach(); err != nil {
		return m, err
	}
	if m.apart == nil {
		m.short, _ = m.tree.(shortReader)
	}
	return m, nil
}

// join has the tree and the values that lie apart from it know each other.
func (m *Map) join() error {
	if m.apart == nil {
		return nil
	}
	m.gens = m.tree.(Boxer).Generations()
	m.clock = m.gens.Itself()
	m.gens.OnFree(m.apart.free)
	m.gens.OnOver(m.apart.over)
	err := m.joinStore()
	if err != nil {
		m.tree.Close()
	}
	return err
}

// attach gives the tree a GPU, if that is asked for. Only trees that hold the values have
// one.
func (m *Map) attach() (err error) {
	t, can := m.tree.(Attacher)
	switch {
	case !can:
		return nil
	case m.apart != nil:
		m.where, m.why = index.OnCPU, reasonOnCPU
		return nil
	}
	if m.tree, m.where, m.why, err = t.Attach(m.cfg, m.size); err != nil {
		m.tree.Close()
	}
	return err
}

const reasonOnCPU = "numbers in a radix tree, and a tree whose values are not of 4 or 8 bytes, are on the CPU"

// loadEach sets dst to the words that the tree holds for values. An error is the map's, for
// when all are loaded.
func loadEach[C order.Code](l *loading, dst []C, vals index.Column) {
	m := l.Map
	if m.apart == nil {
		loadVals(dst, m.val.Bytes(vals), m.size)
		return
	}
	words := make([]uint64, len(dst))
	if err := m.apart.putAll(words, vals, nil, m.epoch()); err != nil {
		l.fail(err)
	}
	for i, w := range words {
		dst[i] = C(w)
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
	if errors.Is(err, blob.ErrTooLong) {
		return index.Problem(index.ErrTooLong, "%w", err)
	}
	return err
}

// failed gives an error of a change a cause, and the figures of a limit.
func (m *Map) failed(err error) error {
	if errors.Is(err, op.ErrLimit) {
		what, n := "nodes", m.tree.Bytes()
		if s, ok := m.apart.(*stored); ok {
			what, n = "nodes and values", n+s.bytes()
		}
		return index.Problem(index.ErrMemoryLimit, "the %s of the tree take %d bytes, the limit is %d, and this change needs more: raise MemoryLimit, or delete entries", what, n, m.cfg.Limit)
	}
	return mutableError(err)
}

// epoch returns the epoch for a value that is about to come into the tree.
func (m *Map) epoch() uint64 {
	if m.gens == nil {
		return 1 // the first
	}
	return m.gens.Epoch()
}

// bits returns a value as the tree holds it: its own bits, or the word of what is put apart.
func (m *Map) bits(v index.Value) (uint64, error) {
	if m.apart == nil {
		return v.Bits, nil
	}
	return m.apart.put(v, m.epoch())
}

// value returns the value of bits or of a word that the tree holds. The word may be an old
// one; then the value is any.
func (m *Map) value(bits uint64) index.Value {
	if m.apart == nil {
		return index.Value{Bits: bits}
	}
	return m.apart.get(bits)
}

// storeAll sets vals to the values of bits or words that the tree holds.
func (m *Map) storeAll(vals index.Column, bits []uint64) {
	if m.apart == nil {
		storeVals(m.val.Bytes(vals), m.size, bits)
		return
	}
	m.apart.getAll(vals, bits, nil)
}

// gone takes words of values that are no longer in the tree, and memory for as many numbers.
func (m *Map) gone(words, born []uint64) {
	if m.apart == nil || len(words) == 0 {
		return
	}
	words = m.apart.out(words)
	born = born[:len(words)]
	clear(born)
	if m.gens.Newest() != 0 { // else all are free soon, and a snapshot that is taken now keeps them
		for i, w := range words {
			born[i] = m.apart.born(w)
		}
	}
	m.gens.Retire(words, born)
}

// oneGone is gone for one word, without an allocation.
func (m *Map) oneGone(word uint64) {
	if m.apart == nil {
		return
	}
	p := par.Get(m.ones)
	p[0] = word
	m.gone(p[:1], p[1:])
	par.Put(m.ones, p)
}

// Get returns the value of a key, and reports whether there is one.
func (m *Map) Get(key order.Probe) (v index.Value, ok bool) {
	if m.apart == nil {
		bits, ok := m.tree.Get(key)
		return m.value(bits), ok
	}
	if ok = m.read(key, func(word uint64) { v = m.apart.get(word) }); !ok {
		v = index.Value{} // one that was read before is gone
	}
	return v, ok
}

// read hands the word of a key to use, which reads the value that lies apart, and reports
// whether there is one. What use has read last is the value.
func (m *Map) read(key order.Probe, use func(word uint64)) (ok bool) {
	var p epoch.Patience
	for {
		gen := p.Begin(m.clock)
		word, ok := m.tree.Get(key)
		early := mutant.On && mutant.Is("live: generation after the copy") && m.gens.Current(gen)
		if ok {
			stall.At("live: word read")
			use(word)
		}
		if early || m.gens.Current(gen) || m.tree.Closed() {
			p.Done()
			return ok
		}
	}
}

// Set sets the value of a key.
func (m *Map) Set(key order.Probe, val index.Value) error {
	was, had, err := m.exchange(key, val)
	if err == nil && had {
		m.oneGone(was)
	}
	return err
}

// exchange sets the value of a key, and returns what the tree has held for the one it had.
func (m *Map) exchange(key order.Probe, val index.Value) (was uint64, had bool, err error) {
	m.awaitKey(key)
	return m.exchangeNow(key, val)
}

func (m *Map) exchangeNow(key order.Probe, val index.Value) (was uint64, had bool, err error) {
	if was, had, err = m.tryExchange(key, val); err == nil {
		return was, had, nil
	}
	err = m.again(err, func() (err error) {
		was, had, err = m.tryExchange(key, val)
		return err
	})
	return was, had, m.failed(err)
}

func (m *Map) tryExchange(key order.Probe, val index.Value) (was uint64, had bool, err error) {
	bits, err := m.bits(val)
	if err != nil {
		return 0, false, err
	}
	stall.At("live: value put")
	if was, had, err = m.tree.Set(key, bits); err != nil {
		m.unused(bits)
	}
	return was, had, err
}

// again makes a change again that has failed, if a limit has refused it and room is made:
// values that were exchanged count until no reader can have them, which is a matter of
// milliseconds. Changes that wait for room stand in line, so that none takes it away from
// another again and again: who is not in line is there soon.
func (m *Map) again(err error, change func() error) error {
	s, ok := m.apart.(*stored)
	if !ok || !errors.Is(err, op.ErrLimit) {
		return err
	}
	m.line.Lock()
	defer m.line.Unlock()
	for try := 0; ; try++ {
		before, gen := s.bytes(), m.clock.Gen()
		if err = change(); !errors.Is(err, op.ErrLimit) || try == mostTries || !m.madeRoom(s, before, try) {
			return err
		}
		if m.clock.Held() && m.clock.Gen() == gen {
			try-- // a slow reader holds the generation, and nothing is free before it is done
		}
		stall.At("live: waits for room")
		time.Sleep(time.Millisecond) // the least time that a generation takes
	}
}

// madeRoom reports whether a change that a limit has refused is worth another try. before is
// the bytes of values before it was made.
func (m *Map) madeRoom(s *stored, before int64, try int) bool {
	if s.store.Kept() == 0 {
		return s.bytes() < before // others were, and are free since
	}
	if m.gens.Reclaim() || s.bytes() < before {
		return true
	}
	return try == 0 // else all that is kept is snapshots': what is on its way to Retire has come by now
}

// mostTries is how often a change that a limit has refused is tried again: some generations,
// even where one that cannot end, since the scheduler has stopped a writer, is among them.
const mostTries = 64

// Swap sets the value of a key, and returns the one it had.
func (m *Map) Swap(key order.Probe, val index.Value) (old index.Value, had bool, err error) {
	m.awaitKey(key)
	m.take()
	defer m.took()
	was, had, err := m.exchangeNow(key, val)
	if err != nil {
		return old, false, err
	}
	return m.taken(was, had), had, nil
}

// unused takes back what was put apart for a value that never came into the tree.
func (m *Map) unused(words ...uint64) {
	if m.apart != nil {
		m.apart.unput(words)
	}
}

// taken returns a value that was taken out of the tree by the caller, between take and took:
// nobody else frees it.
func (m *Map) taken(bits uint64, had bool) (v index.Value) {
	if had {
		stall.At("live: value taken out")
		v = m.value(bits)
		m.oneGone(bits)
	}
	return v
}

// Delete deletes a key, and returns the value it had.
func (m *Map) Delete(key order.Probe) (old index.Value, had bool, err error) {
	m.awaitKey(key)
	m.take()
	defer m.took()
	was, had, err := m.tree.Delete(key)
	if err != nil {
		return old, false, m.failed(err)
	}
	return m.taken(was, had), had, nil
}

// Pop deletes the least entry, or the greatest, and returns it.
func (m *Map) Pop(greatest bool) (key order.Probe, val index.Value, ok bool, err error) {
	m.awaitAny()
	m.take()
	defer m.took()
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
	if m.apart == nil {
		n, err := m.tree.DeleteRange(lo, hi, nil)
		return n, m.failed(err)
	}
	var words []uint64
	n, err := m.tree.DeleteRange(lo, hi, func(bits uint64) { words = append(words, bits) })
	m.gone(words, make([]uint64, len(words)))
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
	if m.apart == nil {
		k, bits, ok := m.tree.At(i)
		return k, m.value(bits), ok
	}
	var p epoch.Patience
	for {
		gen := p.Begin(m.clock)
		k, word, ok := m.tree.At(i)
		var v index.Value
		if ok {
			stall.At("live: word read")
			v = m.value(word)
		}
		if m.gens.Current(gen) || m.tree.Closed() {
			p.Done()
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
	if c.m.apart == nil {
		k, bits, ok := c.c.Next()
		if !ok {
			return key, val, false
		}
		return k, c.m.value(bits), true
	}
	key, ok = c.next(func(word uint64) { val = c.m.apart.get(word) })
	return key, val, ok
}

// next is Next where values lie apart: use reads the value of a word. What it has read last is
// that of the entry.
func (c Cursor) next(use func(word uint64)) (key order.Probe, ok bool) {
	var p epoch.Patience
	defer p.Done()
	for {
		gen := p.Begin(c.m.clock)
		k, word, ok := c.c.Next()
		if !ok {
			return key, false
		}
		stall.At("live: word read")
		use(word)
		if c.m.gens.Current(gen) {
			return k, true
		}
		c.c.Undo() // not to the key that was found: one before it may have come since
	}
}

// Stats describes the map.
func (m *Map) Stats() index.Stats {
	s := index.Stats{Len: m.Len(), Device: m.where, Reason: m.why, Path: simd.Active().String(), Layout: string(m.kind.name), Workers: m.workers, Pages: m.cfg.Pages, Fanout: m.kind.fanout}
	s.LeafBytes, s.KeptBytes = m.tree.Bytes(), m.tree.Kept()
	s.TotalBytes = s.LeafBytes
	if m.apart != nil {
		m.apart.report(&s)
	}
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

// take keeps Close from freeing values that lie apart and that a change takes out of the
// tree, until took is called: else a change that was made could not return the value that was
// there. Nothing that waits for a function of the caller may come between the two.
func (m *Map) take() {
	if m.apart != nil {
		m.taking.RLock()
	}
}

func (m *Map) took() {
	if m.apart != nil {
		m.taking.RUnlock()
	}
}

// Close gives the memory back that no snapshot needs.
func (m *Map) Close() {
	if !(mutant.On && mutant.Is("live: close waits")) {
		if !m.taking.TryLock() {
			stall.At("live: close waits")
			m.taking.Lock()
		}
		defer m.taking.Unlock()
	}
	m.tree.Close()
}

// Workers returns the most goroutines that a batch uses.
func (m *Map) Workers() int { return m.workers }
