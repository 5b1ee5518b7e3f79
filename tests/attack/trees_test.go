package attack

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/simd"
)

// treeKind is the kind of Tree. Its files are opened as a Frozen, which does not change;
// the operation OpenTree opens them as what they were.
func treeKind[K pando.Key, V any]() kind[K, V] {
	k := frozenKind[K, V]()
	k.name = "Tree"
	k.build = func(keys []K, vals []V, opts ...pando.Option) (index[K, V], error) {
		t, err := pando.TreeOf(keys, vals, opts...)
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	reads := k.operations
	for range 3 { // so that a third of all operations change something
		k.operations = slices.Concat(k.operations, edits[K, V]())
	}
	k.operations = slices.Concat(k.operations, reads)
	return k
}

// trees changes a Tree, and compares what it answers with a model that changes, too.
func (p pair[K, V]) trees(c *testCase) error {
	f, opts := drawTree(c, p.isText())
	defer f.force()()
	keys, vals := p.drawEntries(c, &f)
	c.note("Tree of %s: %v", p.name(), f)
	k := treeKind[K, V]()
	ix, err := k.build(keys, vals, append(opts, p.codec...)...)
	if errors.Is(err, pando.ErrMemoryLimit) && f.limit > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	s := &subject[K, V]{testCase: c, pair: p, kind: k, ix: ix, model: lastOfEach(keys, vals, p.vals.Same), most: 3000, tight: f.limit > 0}
	defer func() { s.ix.Close() }()
	for range 5 + upTo(c.rng, 120) {
		if err := s.step(); err != nil {
			return err
		}
	}
	if err := s.sequence(s.ix.All(), 0, len(s.model.Keys)); err != nil {
		return fmt.Errorf("at the end, All%w", err)
	}
	return c.closed(s.ix)
}

// drawTree draws how a Tree is made: on the CPU, numbers in either layout.
func drawTree(c *testCase, text bool) (config, []pando.Option) {
	rng := c.rng
	f := config{
		path: pick(rng, simd.Paths()...), on: pando.CPU, workers: pick(rng, 1, 2, 3),
		order: pick(rng, "as they come", "sorted", "backwards", "shuffled"), sample: 64, n: min(drawLen(rng, false), 5000),
	}
	if !text && oneIn(rng, 2) {
		f.layout = pando.Radix
	}
	if oneIn(rng, 5) { // more, less, or about as much as is needed
		f.limit = 1 + int64(upTo(rng, 64<<10+120*f.n))
	}
	c.use()
	return f, f.options()
}

// lastOfEach returns the model of a map: of equal keys the last counts.
func lastOfEach[K pando.Key, V any](keys []K, vals []V, same func(a, b V) bool) *facetest.Model[K, V] {
	m := facetest.NewModel(keys, vals, same)
	kept := 0
	for i := range m.Keys {
		if i+1 == len(m.Keys) || m.After(m.Keys[i]) == i+1 {
			m.Keys[kept], m.Vals[kept] = m.Keys[i], m.Vals[i]
			kept++
		}
	}
	m.Keys, m.Vals = m.Keys[:kept], m.Vals[:kept]
	return m
}

// put sets the value of a key in the model.
func (s *subject[K, V]) put(k K, v V) {
	m, i := s.model, s.model.Rank(k)
	if m.After(k) > i {
		m.Vals[i] = v
		return
	}
	m.Keys, m.Vals = slices.Insert(m.Keys, i, k), slices.Insert(m.Vals, i, v)
}

// cut deletes entries [first, end) of the model.
func (s *subject[K, V]) cut(first, end int) {
	s.model.Keys, s.model.Vals = slices.Delete(s.model.Keys, first, end), slices.Delete(s.model.Vals, first, end)
}

// drop deletes a key from the model, and returns what it had.
func (s *subject[K, V]) drop(k K) (v V, had bool) {
	if v, had = s.model.Get(k); had {
		i := s.model.Rank(k)
		s.cut(i, i+1)
	}
	return v, had
}

// value draws a value.
func (s *subject[K, V]) value() V { return s.vals.Of(s.rng.IntN(1 << 16)) }

// refusal reports whether a change was refused for want of memory, as it may be.
func (s *subject[K, V]) refusal(err error) bool {
	return s.tight && errors.Is(err, pando.ErrMemoryLimit)
}

// edit is an operation of a Tree; on anything else it does nothing.
func edit[K pando.Key, V any](name string, do func(s *subject[K, V], t *pando.Tree[K, V]) error) operation[K, V] {
	return operation[K, V]{name, func(s *subject[K, V]) error {
		t, ok := s.ix.(*pando.Tree[K, V])
		if !ok {
			return nil
		}
		s.same(1)
		return do(s, t)
	}}
}

// edits are what changes a Tree, and what is made of it.
func edits[K pando.Key, V any]() []operation[K, V] {
	return []operation[K, V]{
		edit("Set", (*subject[K, V]).set),
		edit("Swap", (*subject[K, V]).swap),
		edit("Update", (*subject[K, V]).update),
		edit("Delete", func(s *subject[K, V], t *pando.Tree[K, V]) error {
			k := s.key()
			want, has := s.drop(k)
			if v, had := t.Delete(k); had != has || !s.model.Same(v, want) {
				return fmt.Errorf("(%v) = %v, %v; want %v, %v", k, v, had, want, has)
			}
			return nil
		}),
		edit("DeleteRange", (*subject[K, V]).deleteRange),
		edit("PopMin", func(s *subject[K, V], t *pando.Tree[K, V]) error { return s.pop(t.PopMin, 0) }),
		edit("PopMax", func(s *subject[K, V], t *pando.Tree[K, V]) error { return s.pop(t.PopMax, len(s.model.Keys)-1) }),
		edit("SetBatch", (*subject[K, V]).setBatch),
		edit("DeleteBatch", (*subject[K, V]).deleteBatch),
		edit("Apply", (*subject[K, V]).apply),
		edit("Snapshot", (*subject[K, V]).snapshot),
		edit("Freeze", (*subject[K, V]).freeze),
		edit("OpenTree", (*subject[K, V]).openTree),
	}
}

func (s *subject[K, V]) set(t *pando.Tree[K, V]) error {
	k, v := s.key(), s.value()
	err := t.Set(k, v)
	if err == nil {
		s.put(k, v)
	} else if !s.refusal(err) {
		return fmt.Errorf("(%v): %w", k, err)
	}
	return s.get(t.Get, k)
}

func (s *subject[K, V]) swap(t *pando.Tree[K, V]) error {
	k, v := s.key(), s.value()
	want, has := s.model.Get(k)
	old, had, err := t.Swap(k, v)
	if s.refusal(err) {
		return s.get(t.Get, k)
	}
	if err != nil || had != has || !s.model.Same(old, want) {
		return fmt.Errorf("(%v) = %v, %v, %w; want %v, %v", k, old, had, err, want, has)
	}
	s.put(k, v)
	return nil
}

func (s *subject[K, V]) update(t *pando.Tree[K, V]) error {
	k, v, keep := s.key(), s.value(), !oneIn(s.rng, 3)
	want, has := s.model.Get(k)
	wrong := ""
	err := t.Update(k, func(old V, had bool) (V, bool) {
		if had != has || !s.model.Same(old, want) {
			wrong = fmt.Sprintf("(%v) finds %v, %v; want %v, %v", k, old, had, want, has)
		}
		return v, keep
	})
	switch {
	case wrong != "":
		return errors.New(wrong)
	case s.refusal(err):
	case err != nil:
		return fmt.Errorf("(%v): %w", k, err)
	case keep:
		s.put(k, v)
	default:
		s.drop(k)
	}
	return s.get(t.Get, k)
}

func (s *subject[K, V]) deleteRange(t *pando.Tree[K, V]) error {
	lo := s.key()
	hi := s.near(s.rng, lo)
	if oneIn(s.rng, 8) {
		hi = s.key()
	}
	first, end := s.model.Span(lo, hi, 0)
	if n := t.DeleteRange(lo, hi); n != end-first {
		return fmt.Errorf("(%v, %v) = %d, want %d", lo, hi, n, end-first)
	}
	s.cut(first, end)
	return nil
}

// pop checks that the entry at an end comes out.
func (s *subject[K, V]) pop(pop func() (K, V, bool), i int) error {
	k, v, ok := pop()
	if ok != (len(s.model.Keys) > 0) || ok && !s.model.Is(i, k, v) {
		return fmt.Errorf("() = %v, %v, %v", k, v, ok)
	}
	if ok {
		s.cut(i, i+1)
	}
	return nil
}
