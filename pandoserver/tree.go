package pandoserver

import (
	"iter"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandostore"
)

// This file is the one place that knows how values of bytes get into and out of trees.

// Tree returns a tree in memory as a Source.
func Tree(t *pando.Tree[string, []byte]) Changer {
	return &changing{reader: &reading[[]byte]{t}, c: t, remove: func(keys []string, found []bool) error {
		t.DeleteBatch(keys, found)
		return nil
	}, removeRange: func(lo, hi string) (int, error) { return t.DeleteRange(lo, hi), nil }}
}

// Store returns a store as a Source. What a client is told to be done is on disk.
func Store(s *pandostore.Store[string, []byte]) Changer {
	return &stored{changing{reader: &reading[[]byte]{s}, c: s, remove: func(keys []string, found []bool) error {
		_, err := s.DeleteBatch(keys, found)
		return err
	}, removeRange: s.DeleteRange}, s}
}

// stored is a store, which has a place to save to.
type stored struct {
	changing
	s *pandostore.Store[string, []byte]
}

func (s *stored) Checkpoint() error { return s.s.Checkpoint() }

func (s *stored) Log() pandostore.Log { return s.s.Log() }

// Sequential says that the log has one batch behind the other.
func (s *stored) Sequential() {}

// Index returns an index as a Source that is only read, a file that pando.Open has opened,
// say. Values are strings or bytes.
func Index[V ~string | ~[]byte](ix pando.Index[string, V]) Source { return &reading[V]{ix} }

type reading[V ~string | ~[]byte] struct{ ix pando.Index[string, V] }

func (r *reading[V]) Len() int { return r.ix.Len() }

func (r *reading[V]) Stats() pando.Stats { return r.ix.Stats() }

func (r *reading[V]) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	if len(keys) == 1 { // a batch of one has to be set up, too
		v, ok := r.ix.Get(keys[0])
		vals[0], found[0] = []byte(v), ok
		if ok {
			hits = 1
		}
		return hits
	}
	if vals, ok := any(vals).([]V); ok {
		return r.ix.GetBatch(keys, vals, found)
	}
	own := make([]V, len(keys))
	hits = r.ix.GetBatch(keys, own, found)
	for i, v := range own {
		vals[i] = []byte(v)
	}
	return hits
}

func (r *reading[V]) HasBatch(keys []string, found []bool) (hits int) {
	for i, key := range keys {
		if found[i] = r.ix.Has(key); found[i] {
			hits++
		}
	}
	return hits
}

func (r *reading[V]) Count(b Bounds) int {
	from, to := 0, r.ix.Len()
	if b.From != Open {
		from = r.below(b.Lo, b.From == Without)
	}
	if b.To != Open {
		to = r.below(b.Hi, b.To == With)
	}
	return max(0, to-from)
}

// below returns how many keys are below key, or up to it.
func (r *reading[V]) below(key string, with bool) int {
	n := r.ix.Rank(key)
	if with && r.ix.Has(key) {
		n++
	}
	return n
}

func (r *reading[V]) At(i int) (key string, val []byte, ok bool) {
	if i < 0 || i >= r.ix.Len() {
		return "", nil, false
	}
	defer func() { // entries may go between Len and At
		if v := recover(); v != nil {
			if i < r.ix.Len() {
				panic(v)
			}
			key, val, ok = "", nil, false
		}
	}()
	key, v := r.ix.At(i)
	return key, []byte(v), true
}

func (r *reading[V]) Scan(b Bounds) iter.Seq2[string, []byte] {
	opts := make([]pando.ScanOption, 0, 3)
	switch b.From {
	case With:
		opts = append(opts, pando.From(b.Lo))
	case Without:
		opts = append(opts, pando.After(b.Lo))
	}
	switch b.To {
	case With:
		opts = append(opts, pando.To(b.Hi))
	case Without:
		opts = append(opts, pando.Before(b.Hi))
	}
	if b.Descending {
		opts = append(opts, pando.Reverse())
	}
	return func(yield func(string, []byte) bool) {
		for k, v := range r.ix.Scan(opts...) {
			if !yield(k, []byte(v)) {
				return
			}
		}
	}
}

// reader has the methods of reading.
type reader interface {
	Source
	Asker
	Measured
}

// changer has the methods to change that a Tree and a Store have with the same types.
type changer interface {
	SetBatch(keys []string, vals [][]byte) error
	Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error
	Update(key string, f func(old []byte, had bool) (val []byte, keep bool)) error
}

// changing is a tree or a store. Both copy the values that they are given, which lie in the buffer of a connection.
type changing struct {
	reader
	c           changer
	remove      func(keys []string, found []bool) error
	removeRange func(lo, hi string) (int, error)
}

func (c *changing) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	sets, deletes := 0, 0
	for _, o := range ops {
		switch o {
		case pando.OpSet:
			sets++
		case pando.OpDelete:
			deletes++
		}
	}
	switch {
	case sets == len(ops) && found == nil:
		return c.c.SetBatch(keys, vals)
	case deletes == len(ops) && vals == nil:
		return c.remove(keys, found)
	}
	return c.c.Apply(ops, keys, vals, found)
}

func (c *changing) Update(key string, f func(old []byte, had bool) (val []byte, keep bool)) error {
	return c.c.Update(key, f)
}

// DeleteRange deletes from the first to the last key that are within bounds now.
func (c *changing) DeleteRange(b Bounds) (int, error) {
	b.Descending = false
	lo, some := "", false
	for k := range c.Scan(b) {
		lo, some = k, true
		break
	}
	if !some {
		return 0, nil
	}
	b.Descending = true
	hi := lo
	for k := range c.Scan(b) {
		hi = k
		break
	}
	return c.removeRange(lo, hi)
}
