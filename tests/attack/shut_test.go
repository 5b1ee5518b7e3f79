package attack

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// shutting lets goroutines use a Tree, each for ever, until another closes it. In
// half of the cases they only ask, and every answer is right, or is the panic of a
// tree that was closed. In the others they call any method while the tree changes:
// each call ends, and says in the end that the tree was closed.
func (p crowd[K, V]) shutting(c *testCase) error {
	f, _ := drawTree(c, p.isText())
	f.limit, f.n = 0, min(f.n, 3000)
	defer f.force()()
	keys, vals := p.drawEntries(c, &f)
	calm := oneIn(c.rng, 2)
	c.note("Tree of %s: %v; only asked: %v", p.name(), f, calm)
	tree, err := pando.TreeOf(keys, vals, append(f.options(), p.codec...)...)
	if err != nil {
		return err
	}
	defer tree.Close()
	model := lastOfEach(slices.Clone(keys), slices.Clone(vals), p.vals.Same)
	s := subject[K, V]{testCase: c, pair: p.pair, kind: frozenKind[K, V](), ix: tree, model: model, most: 3000, quiet: true}
	results, goroutines := make(chan error), 1+c.rng.IntN(8)
	for range goroutines {
		own := s
		own.testCase = c.apart(c.rng.Uint64())
		go func() {
			results <- passedOn(func() error {
				if calm {
					return own.untilClosed()
				}
				return own.usedUntilClosed(tree)
			})
		}()
	}
	time.Sleep(time.Duration(c.rng.IntN(1000)) * time.Duration(pick(c.rng, 0, 1, 1, 3)) * time.Microsecond)
	closers := 1 + c.rng.IntN(2)
	for range closers {
		go func() { results <- passedOn(func() error { return c.closed(tree) }) }()
	}
	return firstOf(results, goroutines+closers)
}

// usedUntilClosed calls methods of a tree until one says that it is closed.
func (s *subject[K, V]) usedUntilClosed(t *pando.Tree[K, V]) error {
	all := slices.Concat(readsOf[K, V](), writesOf[K, V]())
	one := s.key() // which all change
	for {
		op := pick(s.rng, all...)
		s.same(1)
		for _, do := range []func() error{func() error { return t.Set(one, s.value()) }, func() error { return op.do(s, t) }} {
			if closed, err := endsOpen(do); closed || err != nil {
				s.parent.compared.Add(s.compared.Load())
				if err != nil {
					err = fmt.Errorf("%s: %w", op.name, err)
				}
				return err
			}
		}
	}
}

// endsOpen calls a method, and reports whether it says that the tree is closed.
// At may say that there are fewer entries.
func endsOpen(do func() error) (closed bool, err error) {
	defer func() {
		v := recover()
		text := fmt.Sprint(v)
		switch {
		case v == nil || strings.HasPrefix(text, "pando: At("):
		case closedText(text):
			closed = true
		default:
			panic(v)
		}
	}()
	err = do()
	if errors.Is(err, pando.ErrClosed) {
		return true, nil
	}
	return false, err
}

// use is a method of a Tree that is called beside others: nothing is known of what
// it answers.
type use[K pando.Key, V any] struct {
	name string
	do   func(s *subject[K, V], t *pando.Tree[K, V]) error
}

// silent is a method that returns no error.
func silent[K pando.Key, V any](name string, do func(s *subject[K, V], t *pando.Tree[K, V])) use[K, V] {
	return use[K, V]{name, func(s *subject[K, V], t *pando.Tree[K, V]) error { do(s, t); return nil }}
}

// mostSeen is the number of entries after which an iteration beside others ends,
// and the number of keys of a batch.
const mostSeen = 100

func (s *subject[K, V]) few() (keys []K, vals []V) {
	keys, vals = s.changed()
	n := min(len(keys), mostSeen)
	return keys[:n], vals[:n]
}

// readsOf are the methods that ask.
func readsOf[K pando.Key, V any]() []use[K, V] {
	type sub = *subject[K, V]
	type tree = *pando.Tree[K, V]
	return append(walksOf[K, V](),
		silent("Len", func(s sub, t tree) { t.Len() }),
		silent("Get", func(s sub, t tree) { t.Get(s.key()) }),
		silent("Has", func(s sub, t tree) { t.Has(s.key()) }),
		silent("GetBatch", func(s sub, t tree) {
			keys, vals := s.few()
			t.GetBatch(keys, vals, make([]bool, len(keys)))
		}),
		silent("Rank", func(s sub, t tree) { t.Rank(s.key()) }),
		silent("RankBatch", func(s sub, t tree) {
			keys, _ := s.few()
			t.RankBatch(keys, make([]int, len(keys)))
		}),
		silent("At", func(s sub, t tree) { t.At(s.rng.IntN(len(s.model.Keys) + 1)) }),
		silent("Min", func(s sub, t tree) { t.Min() }),
		silent("Max", func(s sub, t tree) { t.Max() }),
		silent("Floor", func(s sub, t tree) { t.Floor(s.key()) }),
		silent("Ceil", func(s sub, t tree) { t.Ceil(s.key()) }),
		silent("Count", func(s sub, t tree) { t.Count(s.key(), s.key()) }),
		silent("CountBatch", func(s sub, t tree) {
			lo, _ := s.few()
			hi := slices.Clone(lo)
			slices.Reverse(hi)
			t.CountBatch(lo, hi, make([]int, len(lo)))
		}),
		silent("RangeBatch", func(s sub, t tree) {
			lo, _ := s.few()
			t.RangeBatch(lo, lo, 3)
		}),
		silent("Stats", func(s sub, t tree) { t.Stats() }),
		silent("String", func(s sub, t tree) { _ = t.String() }),
		silent("Snapshot", func(s sub, t tree) {
			f := t.Snapshot()
			defer f.Close()
			f.Get(s.key())
		}),
		use[K, V]{"Freeze", func(s sub, t tree) error {
			f, err := t.Freeze(pando.On(pando.CPU))
			if err == nil {
				err = f.Close()
			}
			return err
		}},
		use[K, V]{"WriteTo", func(s sub, t tree) error { _, err := t.WriteTo(io.Discard); return err }},
	)
}

// walksOf are the methods that iterate.
func walksOf[K pando.Key, V any]() []use[K, V] {
	type sub = *subject[K, V]
	type tree = *pando.Tree[K, V]
	all := []use[K, V]{
		silent("All", func(s sub, t tree) { first(t.All()) }),
		silent("Backward", func(s sub, t tree) { first(t.Backward()) }),
		silent("Range", func(s sub, t tree) { first(t.Range(s.key(), s.key())) }),
		silent("Scan", func(s sub, t tree) { first(t.Scan(pando.From(s.key()), pando.Reverse())) }),
		silent("Cursor", func(s sub, t tree) {
			c := t.Cursor()
			for ok, n := c.Seek(s.key()), 0; ok && n < mostSeen; n++ {
				if ok = c.Next(); oneIn(s.rng, 3) {
					ok = c.Prev()
				}
			}
		}),
	}
	if facetest.CodeBytes[K]() == 0 {
		all = append(all, silent("Prefix", func(s sub, t tree) { first(t.Prefix(s.key())) }),
			silent("PrefixCount", func(s sub, t tree) { t.PrefixCount(s.key()) }))
	}
	return all
}

// first goes through the first entries.
func first[K, V any](all func(yield func(K, V) bool)) {
	n := 0
	for range all {
		if n++; n == mostSeen {
			break
		}
	}
}

// writesOf are the methods that change.
func writesOf[K pando.Key, V any]() []use[K, V] {
	type sub = *subject[K, V]
	type tree = *pando.Tree[K, V]
	return []use[K, V]{
		{"Set", func(s sub, t tree) error { return t.Set(s.key(), s.value()) }},
		{"Swap", func(s sub, t tree) error { _, _, err := t.Swap(s.key(), s.value()); return err }},
		{"Update", func(s sub, t tree) error {
			v, keep := s.value(), oneIn(s.rng, 2)
			return t.Update(s.key(), func(V, bool) (V, bool) { return v, keep })
		}},
		silent("Delete", func(s sub, t tree) { t.Delete(s.key()) }),
		silent("DeleteRange", func(s sub, t tree) { k := s.key(); t.DeleteRange(k, s.near(s.rng, k)) }),
		silent("PopMin", func(s sub, t tree) { t.PopMin() }),
		silent("PopMax", func(s sub, t tree) { t.PopMax() }),
		{"SetBatch", func(s sub, t tree) error { return t.SetBatch(s.few()) }},
		silent("DeleteBatch", func(s sub, t tree) {
			keys, _ := s.few()
			t.DeleteBatch(keys, nil)
		}),
		{"Apply", func(s sub, t tree) error {
			keys, vals := s.few()
			ops := make([]pando.Op, len(keys))
			for i := range ops {
				ops[i] = pando.Op(s.rng.IntN(3))
			}
			return t.Apply(ops, keys, vals, make([]bool, len(keys)))
		}},
	}
}
