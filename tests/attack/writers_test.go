package attack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// writers lets goroutines change a Tree at the same time, each the keys of its own and
// with a model of its own, while another takes snapshots and copies, and goes through
// them. In the end the tree is all models together.
func (p pair[K, V]) writers(c *testCase) error {
	f, opts := drawTree(c, p.isText())
	f.n = min(f.n, 2000)
	defer f.force()()
	keys, vals := p.drawEntries(c, &f)
	c.note("Tree of %s: %v", p.name(), f)
	tree, err := pando.NewTree[K, V](append(opts, p.codec...)...)
	if errors.Is(err, pando.ErrMemoryLimit) && f.limit > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer tree.Close()
	crowd := 2 + c.rng.IntN(5)
	parts, model := make([][]int, crowd), lastOfEach(slices.Clone(keys), slices.Clone(vals), p.vals.Same)
	for i := range model.Keys { // neighbours belong to different goroutines
		parts[i%crowd] = append(parts[i%crowd], i)
	}
	steps := 20 + upTo(c.rng, 200)
	results, crews := make(chan error), make([]*writer[K, V], crowd)
	for i, part := range parts {
		w := &writer[K, V]{testCase: c.apart(c.rng.Uint64()), tree: tree, tight: f.limit > 0, have: map[int]V{}, same: p.vals.Same, of: p.vals.Of}
		for _, at := range part {
			w.keys = append(w.keys, model.Keys[at])
		}
		crews[i] = w
		go func() { results <- passedOn(func() error { return w.work(steps) }) }()
	}
	reader := c.apart(c.rng.Uint64())
	go func() { results <- passedOn(func() error { return readBeside(reader, tree, f.limit > 0, steps/10) }) }()
	if err := firstOf(results, crowd+1); err != nil {
		return err
	}
	return together(c, tree, crews, p.vals.Same)
}

// together compares the tree with what all writers have left in it.
func together[K pando.Key, V any](c *testCase, tree *pando.Tree[K, V], crews []*writer[K, V], same func(a, b V) bool) error {
	var keys []K
	var vals []V
	for _, w := range crews {
		for i, v := range w.have {
			keys, vals = append(keys, w.keys[i]), append(vals, v)
		}
		c.compared.Add(w.compared.Load())
	}
	m := facetest.NewModel(keys, vals, same)
	if n := tree.Len(); n != len(m.Keys) {
		return fmt.Errorf("%d entries in the end, want %d", n, len(m.Keys))
	}
	return m.Sequence(tree.All(), 0, len(m.Keys), len(m.Keys)+1)
}

// writer is a goroutine with keys of its own.
type writer[K pando.Key, V any] struct {
	*testCase
	tree  *pando.Tree[K, V]
	keys  []K
	have  map[int]V // values of keys by their number
	tight bool
	same  func(a, b V) bool
	of    func(int) V
}

// work does so many operations.
func (w *writer[K, V]) work(steps int) error {
	for range steps {
		if len(w.keys) == 0 {
			return nil
		}
		i, v := w.rng.IntN(len(w.keys)), w.of(w.rng.IntN(1<<16))
		if err := w.step(w.rng.IntN(6), i, v); err != nil {
			return fmt.Errorf("key %v: %w", w.keys[i], err)
		}
		w.compared.Add(1)
	}
	return nil
}

func (w *writer[K, V]) step(what, i int, v V) error {
	k, t := w.keys[i], w.tree
	was, has := w.have[i]
	switch what {
	case 0, 1:
		old, had, err := t.Swap(k, v)
		if w.tight && errors.Is(err, pando.ErrMemoryLimit) {
			return nil
		}
		w.have[i] = v
		return w.compare("Swap", old, had, was, has, err)
	case 2:
		old, had := t.Delete(k)
		delete(w.have, i)
		return w.compare("Delete", old, had, was, has, nil)
	case 3:
		return w.batch()
	case 4:
		err := t.Update(k, func(V, bool) (V, bool) { return v, true })
		if w.tight && errors.Is(err, pando.ErrMemoryLimit) {
			return nil
		}
		w.have[i] = v
		return err
	default:
		got, had := t.Get(k)
		return w.compare("Get", got, had, was, has, nil)
	}
}

func (w *writer[K, V]) compare(name string, got V, had bool, want V, has bool, err error) error {
	if err != nil || had != has || !w.same(got, want) {
		return fmt.Errorf("%s finds %v, %v, %w; want %v, %v", name, got, had, err, want, has)
	}
	return nil
}

// batch sets many values at once.
func (w *writer[K, V]) batch() error {
	numbers := w.rng.Perm(len(w.keys))[:w.rng.IntN(min(len(w.keys), 200)+1)]
	keys, vals := make([]K, len(numbers)), make([]V, len(numbers))
	for i, at := range numbers {
		keys[i], vals[i] = w.keys[at], w.of(w.rng.IntN(1<<16))
	}
	err := w.tree.SetBatch(keys, vals)
	if w.tight && errors.Is(err, pando.ErrMemoryLimit) {
		return nil
	}
	for i, at := range numbers {
		w.have[at] = vals[i]
	}
	return err
}

// readBeside goes through the tree and its snapshots while others change it: keys
// ascend, and a snapshot is the same each time.
func readBeside[K pando.Key, V any](c *testCase, tree *pando.Tree[K, V], tight bool, rounds int) error {
	for range rounds {
		var ix index[K, V] = tree
		if !tight && oneIn(c.rng, 2) {
			s := tree.Snapshot()
			defer s.Close()
			ix = s
		}
		for again := range 2 {
			n, err := ascends(ix)
			if err != nil {
				return err
			}
			if want := ix.Len(); ix != index[K, V](tree) && n != want {
				return fmt.Errorf("a snapshot of %d entries yields %d, time %d", want, n, again)
			}
		}
	}
	return nil
}

// ascends returns the number of entries, whose keys must ascend.
func ascends[K pando.Key, V any](ix index[K, V]) (n int, err error) {
	var last K
	for k := range ix.All() {
		if n > 0 && cmp.Compare(last, k) >= 0 {
			return n, fmt.Errorf("key %v comes after %v", k, last)
		}
		last = k
		n++
	}
	return n, nil
}
