package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// mostChanged bounds the keys of a batch of changes: the model is a sorted slice.
const mostChanged = 600

// changed draws the keys and values of a batch of changes.
func (s *subject[K, V]) changed() ([]K, []V) {
	keys := s.batch()
	keys = keys[:min(len(keys), mostChanged)]
	vals := make([]V, len(keys))
	for i := range vals {
		vals[i] = s.value()
	}
	return keys, vals
}

func (s *subject[K, V]) setBatch(t *pando.Tree[K, V]) error {
	keys, vals := s.changed()
	if err := t.SetBatch(keys, vals); s.refusal(err) {
		return s.whole(t) // all of it or nothing
	} else if err != nil {
		return fmt.Errorf(" of %d keys: %w", len(keys), err)
	}
	for i, k := range keys {
		s.put(k, vals[i])
	}
	return nil
}

// whole compares all entries.
func (s *subject[K, V]) whole(ix index[K, V]) error {
	if n := ix.Len(); n != len(s.model.Keys) {
		return fmt.Errorf(": %d entries, want %d", n, len(s.model.Keys))
	}
	return s.sequence(ix.All(), 0, len(s.model.Keys))
}

func (s *subject[K, V]) deleteBatch(t *pando.Tree[K, V]) error {
	keys, _ := s.changed()
	keys = keys[:min(len(keys), 100)]
	var found []bool
	if oneIn(s.rng, 2) {
		found = make([]bool, len(keys))
	}
	n, want := t.DeleteBatch(keys, found), 0
	for i, k := range keys {
		_, has := s.drop(k)
		if found != nil && found[i] != has {
			return fmt.Errorf(" of %d keys: %v was there: %v, want %v", len(keys), k, found[i], has)
		}
		if has {
			want++
		}
	}
	if n != want {
		return fmt.Errorf(" of %d keys = %d, want %d", len(keys), n, want)
	}
	return nil
}

// apply does operations of all kinds, as if one after the other.
func (s *subject[K, V]) apply(t *pando.Tree[K, V]) error {
	keys, vals := s.changed()
	ops := make([]pando.Op, len(keys))
	for i := range ops {
		ops[i] = pick(s.rng, pando.OpGet, pando.OpSet, pando.OpSet, pando.OpDelete)
	}
	var found []bool
	if oneIn(s.rng, 2) {
		found = make([]bool, len(keys))
	}
	sets := append([]V(nil), vals...)
	if err := t.Apply(ops, keys, vals, found); s.refusal(err) {
		return s.whole(t)
	} else if err != nil {
		return fmt.Errorf(" of %d operations: %w", len(ops), err)
	}
	for i, k := range keys {
		was, had := s.model.Get(k)
		if found != nil && (found[i] != had || !s.model.Same(vals[i], was)) {
			return fmt.Errorf(" of %d operations: number %d, of %v, has found %v, %v; want %v, %v", len(ops), i, k, vals[i], found[i], was, had)
		}
		switch ops[i] {
		case pando.OpSet:
			s.put(k, sets[i])
		case pando.OpDelete:
			s.drop(k)
		}
	}
	return nil
}

// frozen asks a Frozen that was made of the tree, after the tree has changed.
func (s *subject[K, V]) frozen(f *pando.Frozen[K, V], t *pando.Tree[K, V]) error {
	defer f.Close()
	other := *s
	other.ix = f
	other.model = &facetest.Model[K, V]{Keys: append([]K(nil), s.model.Keys...), Vals: append([]V(nil), s.model.Vals...), Same: s.model.Same}
	if err := errors.Join(s.set(t), s.deleteRange(t)); err != nil {
		return fmt.Errorf(", and a change after it%w", err)
	}
	other.kind = frozenKind[K, V]()
	for range 4 {
		if err := other.step(); err != nil {
			return fmt.Errorf(": %w", err)
		}
	}
	return other.whole(f)
}

func (s *subject[K, V]) snapshot(t *pando.Tree[K, V]) error {
	if s.tight { // which may refuse it, and a Snapshot cannot say so
		return nil
	}
	return s.frozen(t.Snapshot(), t)
}

func (s *subject[K, V]) freeze(t *pando.Tree[K, V]) error {
	opts := append([]pando.Option{pando.On(pando.CPU), pando.Layout(pick(s.rng, facetest.Layouts[K](s.vals)...))}, s.codec...)
	f, err := t.Freeze(opts...)
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	return s.frozen(f, t)
}

// openTree saves the tree, and goes on with what is opened.
func (s *subject[K, V]) openTree(t *pando.Tree[K, V]) error {
	if s.tight || !oneIn(s.rng, 3) {
		return nil
	}
	dir, err := os.MkdirTemp(s.dir, "tree")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tree.pando")
	if err := t.Save(path); err != nil {
		return fmt.Errorf(": Save: %w", err)
	}
	opts := append([]pando.Option{pando.On(pando.CPU)}, s.codec...)
	if !s.isText() && oneIn(s.rng, 2) {
		opts = append(opts, pando.Layout(pando.Radix))
	}
	again, err := pando.OpenTree[K, V](path, opts...)
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	s.ix = again
	return errors.Join(t.Close(), s.whole(again))
}
