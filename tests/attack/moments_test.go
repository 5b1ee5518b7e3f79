package attack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/pando-index/pando"
)

// moments has a writer go through the same few states of a Tree over and over
// while others ask for what was never there: a value that a key has only while
// another key is there, beside that key's absence; the losing value of equal keys
// in a batch; a key absent that one batch deletes and sets.
func (p crowd[K, V]) moments(c *testCase) error {
	f, _ := drawTree(c, p.isText())
	f.limit = 0
	defer f.force()()
	m := &momentary[K, V]{testCase: c, pair: p.pair, even: p.vals.Of(0), odd: p.vals.Of(1)}
	if p.vals.Same(m.even, m.odd) {
		return nil // no two states differ
	}
	tree, err := pando.NewTree[K, V](append(f.options(), p.codec...)...)
	if err != nil {
		return err
	}
	defer tree.Close()
	m.tree = tree
	m.lay(pick(c.rng, "neighbour above", "neighbour below", "equal keys", "deleted and set"))
	readers := 1 + c.rng.IntN(pick(c.rng, 4, 24))
	c.note("Tree of %s: %v; %s, %d readers", p.name(), f, m.what, readers)
	if err := tree.Set(m.key, m.even); err != nil {
		return err
	}
	results := make(chan error)
	steps := 500 + upTo(c.rng, 20_000)
	go func() { defer m.over.Store(true); results <- passedOn(func() error { return m.write(steps) }) }()
	crowd := c.apart(c.rng.Uint64())
	go func() { results <- passedOn(func() error { return m.crowd(crowd) }) }()
	for range readers {
		own := c.apart(c.rng.Uint64())
		go func() { results <- passedOn(func() error { return m.read(own) }) }()
	}
	return firstOf(results, readers+2)
}

// momentary is a tree that goes through few states.
type momentary[K pando.Key, V any] struct {
	*testCase
	pair[K, V]
	tree      *pando.Tree[K, V]
	what      string
	key       K   // always there; its value is odd for moments
	beside    K   // there as long as that, and longer
	far       K   // on the other side of beside
	others    []K // on the other side of key
	even, odd V
	over      atomic.Bool
}

// lay chooses keys.
func (m *momentary[K, V]) lay(what string) {
	m.what = what
	var all []K
	for i := 1000; i < 1100; i++ { // of integers, from 0 on
		all = append(all, m.keys.Num(i))
	}
	slices.SortFunc(all, cmp.Compare)
	all = slices.Compact(all)
	if what == "neighbour below" {
		slices.Reverse(all)
	}
	n := len(all) - 3
	m.others, m.key, m.beside, m.far = all[:n], all[n], all[n+1], all[n+2]
}

// write goes through the states.
func (m *momentary[K, V]) write(steps int) error {
	for range steps {
		if err := m.round(); err != nil {
			return err
		}
	}
	return nil
}

func (m *momentary[K, V]) round() error {
	t := m.tree
	switch m.what {
	case "equal keys":
		keys, vals := []K{m.key, m.beside, m.key}, []V{m.odd, m.odd, m.even}
		for range m.rng.IntN(2) * 40 {
			keys, vals = append(keys, pick(m.rng, m.others...)), append(vals, m.odd)
		}
		return t.SetBatch(keys, vals)
	case "deleted and set":
		ops, keys, vals := []pando.Op{pando.OpDelete, pando.OpDelete, pando.OpSet}, []K{m.key, m.beside, m.key}, []V{m.odd, m.odd, m.even}
		return t.Apply(ops, keys, vals, pick(m.rng, nil, make([]bool, 3)))
	}
	err := errors.Join(t.Set(m.beside, m.even), t.Set(m.key, m.odd), t.Set(m.key, m.even))
	t.Delete(m.beside)
	return err
}

// crowd changes the other keys, so that nodes change and their memory is used
// again.
func (m *momentary[K, V]) crowd(c *testCase) error {
	for !m.over.Load() {
		if k := pick(c.rng, m.others...); oneIn(c.rng, 2) {
			m.tree.Delete(k)
		} else if err := m.tree.Set(k, m.odd); err != nil {
			return err
		}
	}
	return nil
}

// read asks in every way until the writer is done.
func (m *momentary[K, V]) read(c *testCase) error {
	asks := []func() error{m.get, m.snapshot}
	if m.what == "neighbour above" || m.what == "neighbour below" {
		asks = []func() error{m.nearest, m.nearest, m.end, m.end, m.cursor, m.iterate, m.snapshot}
	}
	defer func() { m.compared.Add(c.compared.Load()) }()
	for !m.over.Load() {
		c.compared.Add(1)
		if err := pick(c.rng, asks...)(); err != nil {
			return err
		}
	}
	return nil
}

// is returns an error if an entry that was found cannot have been the nearest.
func (m *momentary[K, V]) is(method string, k K, v V, ok bool) error {
	switch {
	case !ok || k != m.key && k != m.beside:
		return fmt.Errorf("%s finds %v, %v: %v is always there", method, k, ok, m.key)
	case k == m.key && m.vals.Same(v, m.odd):
		return fmt.Errorf("%s finds %v with %v, which it has only while %v is there", method, k, v, m.beside)
	}
	return nil
}

func (m *momentary[K, V]) above() bool { return m.what == "neighbour above" }

func (m *momentary[K, V]) nearest() error {
	name, ask := "Ceil", m.tree.Ceil
	if m.above() {
		name, ask = "Floor", m.tree.Floor
	}
	k, v, ok := ask(m.far)
	return m.is(name, k, v, ok)
}

func (m *momentary[K, V]) end() error {
	name, ask := "Min", m.tree.Min
	if m.above() {
		name, ask = "Max", m.tree.Max
	}
	k, v, ok := ask()
	return m.is(name, k, v, ok)
}

func (m *momentary[K, V]) cursor() error {
	c := m.tree.Cursor()
	name, move := "Cursor.First", c.First
	if m.above() {
		name, move = "Cursor.Last", c.Last
	}
	if !move() {
		return m.is(name, m.far, m.even, false)
	}
	return m.is(name, c.Key(), c.Value(), true)
}

func (m *momentary[K, V]) iterate() error {
	name, all := "All", m.tree.All()
	if m.above() {
		name, all = "Backward", m.tree.Backward()
	}
	for k, v := range all {
		return m.is(name, k, v, true)
	}
	return m.is(name, m.far, m.even, false)
}

// get asks for the key by itself: in its place there is never anything else.
func (m *momentary[K, V]) get() error {
	v, ok := m.tree.Get(m.key)
	return m.isEven("Get", v, ok)
}

func (m *momentary[K, V]) isEven(method string, v V, ok bool) error {
	if !ok || !m.vals.Same(v, m.even) {
		return fmt.Errorf("%s finds %v, %v of a key that is %v after each batch", method, v, ok, m.even)
	}
	return nil
}

// snapshot looks at one moment.
func (m *momentary[K, V]) snapshot() error {
	s := m.tree.Snapshot()
	defer s.Close()
	v, ok := s.Get(m.key)
	if m.what == "equal keys" || m.what == "deleted and set" {
		return m.isEven("Snapshot", v, ok)
	}
	if !s.Has(m.beside) {
		return m.is("Snapshot", m.key, v, ok)
	}
	return nil
}
