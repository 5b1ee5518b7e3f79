package attack

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// index is what every kind of index can be asked.
type index[K pando.Key, V any] interface {
	Len() int
	Get(K) (V, bool)
	GetBatch([]K, []V, []bool) int
	Rank(K) int
	RankBatch([]K, []int)
	At(int) (K, V)
	Min() (K, V, bool)
	Max() (K, V, bool)
	Floor(K) (K, V, bool)
	Ceil(K) (K, V, bool)
	All() iter.Seq2[K, V]
	Backward() iter.Seq2[K, V]
	Range(lo, hi K) iter.Seq2[K, V]
	Count(lo, hi K) int
	CountBatch(lo, hi []K, counts []int)
	RangeBatch(lo, hi []K, limit int) *pando.Ranges[K, V]
	Prefix(K) iter.Seq2[K, V]
	PrefixCount(K) int
	WriteTo(io.Writer) (int64, error)
	Save(path string) error
	Stats() pando.Stats
	Close() error
}

// kind is a kind of index: how one is made, how it is opened, and what is done
// to it. A kind that changes has operations that change the model, too.
type kind[K pando.Key, V any] struct {
	name       string
	build      func(keys []K, vals []V, opts ...pando.Option) (index[K, V], error)
	open       func(path string, opts ...pando.Option) (index[K, V], error)
	operations []operation[K, V]
}

// frozenKind is the kind of Frozen.
func frozenKind[K pando.Key, V any]() kind[K, V] {
	return kind[K, V]{
		name: "Frozen",
		build: func(keys []K, vals []V, opts ...pando.Option) (index[K, V], error) {
			return orNone[K, V](pando.Freeze(keys, vals, opts...))
		},
		open: func(path string, opts ...pando.Option) (index[K, V], error) {
			return orNone[K, V](pando.Open[K, V](path, opts...))
		},
		operations: slices.Concat(singles[K, V](), walks[K, V](), batches[K, V](), vectors[K, V]()),
	}
}

// orNone returns an index, or nil and the error.
func orNone[K pando.Key, V any](ix *pando.Frozen[K, V], err error) (index[K, V], error) {
	if err != nil {
		return nil, err
	}
	return ix, nil
}

// made makes the index of a case as its configuration says. It returns nil
// where that cannot be, and the error is as it must be.
func (p pair[K, V]) made(c *testCase, k kind[K, V], f config, keys []K, vals []V) (index[K, V], error) {
	opts := append(f.building(), p.codec...)
	build := func() (index[K, V], error) { return k.build(keys, vals, opts...) }
	if f.source == "FreezeSeq" {
		build = func() (index[K, V], error) {
			return orNone[K, V](pando.FreezeSeq(func(yield func(K, V) bool) {
				for i := range keys {
					if !yield(keys[i], vals[i]) {
						return
					}
				}
			}, opts...))
		}
	}
	ix, err := build()
	if !p.serves(f.layout) {
		return nil, p.refused(ix, err)
	}
	enough := int64(8<<20 + 400*f.n) // for any of these indexes, on huge pages too
	if errors.Is(err, pando.ErrMemoryLimit) && f.limit > 0 && f.limit < enough {
		c.note("memory limit: %v", err)
		return nil, nil
	}
	if err != nil || f.source == "Freeze" || f.source == "FreezeSeq" {
		return ix, err
	}
	defer ix.Close()
	return reopened(c, k, f, ix, append(f.opening(), p.codec...))
}

// refused checks the error for a layout that cannot hold the types.
func (p pair[K, V]) refused(ix index[K, V], err error) error {
	if ix != nil {
		ix.Close()
	}
	if !errors.Is(err, pando.ErrLayout) {
		return fmt.Errorf("a layout that cannot be: %w", err)
	}
	return nil
}

// reopened saves an index and opens the file.
func reopened[K pando.Key, V any](c *testCase, k kind[K, V], f config, ix index[K, V], opts []pando.Option) (index[K, V], error) {
	path := filepath.Join(c.dir, "index.pando")
	if f.source == "written and opened" {
		if err := written(ix, path); err != nil {
			return nil, err
		}
	} else if err := ix.Save(path); err != nil {
		return nil, err
	}
	if f.source == "saved, opened and verified" {
		if err := pando.Verify(path); err != nil {
			return nil, err
		}
		opts = append(opts, pando.Verified())
	}
	return k.open(path, opts...)
}

// written writes an index to a file by WriteTo.
func written[K pando.Key, V any](ix index[K, V], path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	n, err := ix.WriteTo(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() != n {
		err = fmt.Errorf("WriteTo says that it has written %d bytes, the file has %d", n, info.Size())
	}
	return err
}

// subject is an index under attack beside its model, and what draws questions
// for it.
type subject[K pando.Key, V any] struct {
	*testCase
	pair[K, V]
	kind  kind[K, V]
	ix    index[K, V]
	model *facetest.Model[K, V]
	most  int  // keys of a batch
	tight bool // a memory limit may refuse a change
	quiet bool // no notes: there are too many goroutines
}

// same counts answers as compared.
func (s *subject[K, V]) same(n int) { s.compared.Add(int64(n)) }

// key draws a key to ask for: one that is there, one close to it, an end, or
// any.
func (s *subject[K, V]) key() K {
	rng, m := s.rng, s.model
	switch i := rng.IntN(8); {
	case i == 0:
		return s.keys.Bits(rng.Uint64())
	case i == 1:
		return pick(rng, s.keys.Ends...)
	case i == 2 || len(m.Keys) == 0:
		return s.keys.Num(rng.IntN(2*len(m.Keys)+10) - 5)
	case i < 5:
		return s.near(rng, pick(rng, m.Keys...))
	default:
		return pick(rng, m.Keys...)
	}
}

// batchEdges are lengths of batches around groups, buckets, and what is shared
// out to workers.
var batchEdges = []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049,
	4095, 4096, 4097, 8191, 8192, 8193, 16_383, 16_384, 16_385}

// batch draws the keys of a batch, now and then sorted ones.
func (s *subject[K, V]) batch() []K {
	n := upTo(s.rng, s.most)
	if oneIn(s.rng, 2) {
		n = min(pick(s.rng, batchEdges...), s.most)
	}
	keys := make([]K, n)
	for i := range keys {
		keys[i] = s.key()
	}
	if oneIn(s.rng, 4) {
		slices.SortFunc(keys, cmp.Compare[K])
	}
	return keys
}
