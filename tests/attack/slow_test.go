package attack

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
)

// mostRuns is how often the function of an Update may run while nobody changes its
// key, whatever others do to the tree.
const mostRuns = 20

// slow gives Update functions that take milliseconds, beside writers of other keys,
// close and far, and snapshots: each Update ends, and its function has not run too
// often. Some functions ask the tree themselves: they get an answer, or a panic
// that says what is wrong.
func (p crowd[K, V]) slow(c *testCase) error {
	f, _ := drawTree(c, p.isText())
	f.limit = 0
	defer f.force()()
	tree, err := pando.NewTree[K, V](append(f.options(), p.codec...)...)
	if err != nil {
		return err
	}
	defer tree.Close()
	u := &updating[K, V]{pair: p.pair, tree: tree, key: p.keys.Num(1050), takes: time.Duration(1+c.rng.IntN(5)) * time.Millisecond, asks: pick(c.rng, "", "", "Get", "Set", "Snapshot")}
	for i := range 100 { // of integers, 0 to 99
		if k := p.keys.Num(1000 + i); k != u.key {
			u.others = append(u.others, k)
		}
	}
	writers, snapshots := 1+c.rng.IntN(3), oneIn(c.rng, 2)
	c.note("Tree of %s: %v; %d writers, snapshots: %v, %v a run, which asks %q", p.name(), f, writers, snapshots, u.takes, u.asks)
	results := make(chan error)
	go func() {
		defer u.over.Store(true)
		results <- passedOn(func() error { return u.update(c) })
	}()
	for range writers {
		own := c.apart(c.rng.Uint64())
		go func() { results <- passedOn(func() error { return u.write(own) }) }()
	}
	if snapshots {
		writers++
		go func() { results <- passedOn(u.snapshots) }()
	}
	return firstOf(results, writers+1)
}

// updating is a tree with a key that is updated slowly.
type updating[K pando.Key, V any] struct {
	pair[K, V]
	tree   *pando.Tree[K, V]
	key    K
	others []K
	takes  time.Duration
	asks   string
	over   atomic.Bool
}

// update updates the key a few times, and checks what its function is given.
func (u *updating[K, V]) update(c *testCase) error {
	want, has := *new(V), false
	for i := range 3 {
		runs, val, wrong := 0, u.vals.Of(i), ""
		panicked, err := u.panics(func() error {
			return u.tree.Update(u.key, func(old V, had bool) (V, bool) {
				if runs++; had != has || !u.vals.Same(old, want) {
					wrong = fmt.Sprintf("the function is given %v, %v; want %v, %v", old, had, want, has)
				}
				if runs > mostRuns {
					u.over.Store(true) // the others stop, so that it ends
					return val, true
				}
				time.Sleep(u.takes)
				u.ask(val)
				return val, true
			})
		})
		c.compared.Add(1)
		switch {
		case err != nil:
			return err
		case wrong != "":
			return fmt.Errorf("Update: %s", wrong)
		case runs > mostRuns:
			return fmt.Errorf("Update: a function of %v ran more than %d times, and nobody else changed its key", u.takes, mostRuns)
		case !panicked:
			want, has = val, true
		}
		if v, had := u.tree.Get(u.key); had != has || !u.vals.Same(v, want) {
			return fmt.Errorf("Get after Update finds %v, %v; want %v, %v", v, had, want, has)
		}
	}
	return nil
}

// ask uses the tree within a function.
func (u *updating[K, V]) ask(val V) {
	switch u.asks {
	case "Get":
		u.tree.Get(u.others[0])
	case "Set":
		if err := u.tree.Set(u.others[0], val); err != nil {
			panic(err)
		}
	case "Snapshot":
		u.tree.Snapshot().Close()
	}
}

// panics reports whether an Update whose function uses the tree panics, and with
// a sentence.
func (u *updating[K, V]) panics(do func() error) (panicked bool, err error) {
	defer func() {
		v := recover()
		if v != nil && (u.asks == "" || !strings.HasPrefix(fmt.Sprint(v), "pando: ")) {
			panic(v)
		}
		panicked = v != nil
	}()
	return false, do()
}

// write changes other keys until all updates are done.
func (u *updating[K, V]) write(c *testCase) error {
	for !u.over.Load() {
		k := pick(c.rng, u.others...)
		if oneIn(c.rng, 8) {
			k = u.keys.Bits(c.rng.Uint64())
		}
		if k == u.key {
			continue
		}
		if oneIn(c.rng, 3) {
			u.tree.Delete(k)
		} else if err := u.tree.Set(k, u.vals.Of(c.rng.IntN(100))); err != nil {
			return err
		}
	}
	return nil
}

// snapshots takes one each millisecond.
func (u *updating[K, V]) snapshots() error {
	for !u.over.Load() {
		s := u.tree.Snapshot()
		time.Sleep(time.Millisecond)
		s.Close()
	}
	return nil
}
