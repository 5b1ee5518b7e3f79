package live

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/blob"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/twin"
)

// HeldValues returns the number of values that are not in the tree of a map, and false if all
// of them are.
func HeldValues(m *Map) (n int64, apart bool) {
	if m.apart == nil {
		return 0, false
	}
	return m.apart.count(), true
}

// HeldKeys returns the number of keys that only one goroutine may change, as writers see
// it, and as it is.
func HeldKeys(m *Map) (seen, n int) {
	m.holds.mu.Lock()
	defer m.holds.mu.Unlock()
	return int(m.holds.n.Load()), len(m.holds.all)
}

// GenerationsOf returns the generations of the tree of a map, as the map asks for them.
func GenerationsOf(m *Map) Generations {
	if m.gens == nil {
		return m.tree.(Boxer).Generations()
	}
	return m.gens
}

// Between is a layer between a map and its tree.
type Between struct {
	Current func() bool      // false: the generation that is asked for has ended
	Update  func(gen uint64) // is called between the look at a key and the function of an update
	Twice   bool             // batches of lookups have to be repeated
	Half    bool             // batches of changes fail when they are half done
	Delete  func() error     // what a deletion returns instead of being done, unless it is nil
}

// PutBetween puts something between a map and its tree.
func PutBetween(m *Map, b Between) {
	m.tree = between{m.tree, b}
	if m.gens != nil {
		m.gens = betweenGenerations{m.gens, b}
	}
}

type between struct {
	Tree
	b Between
}

type betweenGenerations struct {
	Generations
	b Between
}

func (g betweenGenerations) Current(gen uint64) bool {
	return (g.b.Current == nil || g.b.Current()) && g.Generations.Current(gen)
}

func (m between) Update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return m.Tree.Update(key, func(old uint64, had bool, gen uint64) (uint64, bool) {
		if m.b.Update != nil {
			m.b.Update(gen)
		}
		return f(old, had, gen)
	})
}

func (m between) refuses() error {
	if m.b.Delete == nil {
		return nil
	}
	return m.b.Delete()
}

func (m between) Delete(key order.Probe) (uint64, bool, error) {
	if err := m.refuses(); err != nil {
		return 0, false, err
	}
	return m.Tree.Delete(key)
}

func (m between) DeleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	if err := m.refuses(); err != nil {
		return 0, err
	}
	return m.Tree.DeleteRange(lo, hi, gone)
}

func (m between) Apply(b *changes) error {
	if b.kinds == nil && b.kind == op.Delete || slices.Contains(b.kinds, op.Delete) {
		if err := m.refuses(); err != nil {
			return err
		}
	}
	if err := m.Tree.Apply(b); err != nil || !m.b.Half {
		return err
	}
	b.half = true
	return op.ErrLimit
}

func (m between) GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) int {
	if m.b.Twice {
		m.Tree.GetBatch(keys, vals, size, found, use)
	}
	return m.Tree.GetBatch(keys, vals, size, found, use)
}

// Unranked has a snapshot of a radix tree panic when it is asked for a rank.
func Unranked(f *Freezing) { f.at = unranked{f.at.(*textMoment)} }

type unranked struct{ *textMoment }

func (unranked) Seek(order.Probe) (int, bool) { panic("seek counts all entries") }
func (unranked) Rank(order.Probe, bool) int   { panic("rank counts all entries") }

// TwinMap is a map of a tree and its twin on a GPU. It is an interface inside, since a
// package that imports a type compiles all its parts, too.
type TwinMap struct {
	m interface {
		OnGPU
		Tree
		settle(changes bool) bool
	}
}

// NewTwinMap returns such a map of n entries, which load sets as it does for bplus.Load.
func NewTwinMap(n int, load func(lo int, keys, vals []uint64), dev device.Device, opts twin.Options) (m TwinMap, err error) {
	tree, err := bplus.Load(n, load, 0, 1)
	if err != nil {
		return m, err
	}
	t, err := twin.New(tree, dev, opts)
	return TwinMap{newTwinned(newCodes(tree, 1), t)}, err
}

// Down returns why the GPU is not used any more.
func (m TwinMap) Down() error { return m.m.Down() }

// Settle measures from which size on batches are faster on the GPU.
func (m TwinMap) Settle() bool { return m.m.settle(true) }

// Get returns the value of a key.
func (m TwinMap) Get(key uint64) (uint64, bool) { return m.m.Get(order.Probe{Code: key}) }

// GetBatch looks keys up: vals is the memory of the results.
func (m TwinMap) GetBatch(keys []uint64, vals []byte, found []bool) int {
	return m.m.GetBatch(order.KeysOf(keys), vals, 8, found, nil)
}

// Close gives everything back.
func (m TwinMap) Close() { m.m.Close() }

// StoreOf returns the store of a map whose values lie off the heap.
func StoreOf(m *Map) *blob.Store { return m.apart.(*stored).store }

// WordOf returns the word of a key's value.
func WordOf(m *Map, key order.Probe) uint64 {
	word, _ := m.tree.Get(key)
	return word
}

// CheckValues returns an error for the first value that a map has and its store has not. Nobody
// may write meanwhile.
func CheckValues(m *Map) error {
	s, n := StoreOf(m), int64(0)
	c := m.tree.Cursor()
	defer c.Done()
	c.Move(index.NoEdge, false)
	for {
		k, word, ok := c.Next()
		if !ok {
			break
		}
		r := blob.Ref(word)
		if !s.Holds(r) {
			return fmt.Errorf("the store has no value %#x of key %v", word, k)
		}
		if !r.Short() {
			n++
		}
	}
	if held := s.Count(); held != n {
		return fmt.Errorf("%d values are stored, and %d are in the tree", held, n)
	}
	return s.Check()
}
