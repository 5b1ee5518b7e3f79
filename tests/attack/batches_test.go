package attack

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	core "github.com/pando-index/pando/internal/index"
)

// batches ask for many keys at once.
func batches[K pando.Key, V any]() []operation[K, V] {
	return []operation[K, V]{
		{"GetBatch", func(s *subject[K, V]) error {
			keys := s.batch()
			return s.getBatch(keys, make([]V, len(keys)+s.rng.IntN(3)))
		}},
		{"GetBatch", func(s *subject[K, V]) error {
			keys := s.batch()
			return s.getBatch(keys, make([]V, len(keys)))
		}},
		{"GetBatch in place", (*subject[K, V]).inPlace},
		{"GetBatch in Buffers", (*subject[K, V]).buffered},
		{"RankBatch", (*subject[K, V]).rankBatch},
		{"RankBatch", (*subject[K, V]).rankBatch},
		{"CountBatch", (*subject[K, V]).countBatch},
		{"RangeBatch", (*subject[K, V]).rangeBatch},
		{"GetBatchBytes", (*subject[K, V]).getBytes},
		{"GetBatchAppend", (*subject[K, V]).getAppend},
		{"Save", (*subject[K, V]).save},
	}
}

// getBatch looks up keys into vals, which may be longer, with found or without.
func (s *subject[K, V]) getBatch(keys []K, vals []V) error {
	n := len(keys)
	var found []bool
	if oneIn(s.rng, 2) {
		found = make([]bool, n+s.rng.IntN(3))
	}
	for i := range found {
		found[i] = oneIn(s.rng, 2)
	}
	var mark V
	if len(s.model.Vals) > 0 {
		mark = s.model.Vals[len(s.model.Vals)-1]
	}
	inPlace := fmt.Sprintf("%p", keys) == fmt.Sprintf("%p", vals)
	if !inPlace {
		for i := range vals {
			vals[i] = mark
		}
	}
	behind := slices.Clone(vals[n:])
	last := slices.Clone(found[min(n, len(found)):])
	asked := slices.Clone(keys)
	hits := s.ix.GetBatch(keys, vals, found)
	if err := s.checkFound(asked, vals, found, hits); err != nil {
		return fmt.Errorf(" of %d keys: %w", n, err)
	}
	switch {
	case !inPlace && !facetest.SameKeys(asked, keys):
		return fmt.Errorf(" of %d keys has changed them", n)
	case !slices.EqualFunc(behind, vals[n:], s.model.Same) || !slices.Equal(last, found[min(n, len(found)):]):
		return fmt.Errorf(" of %d keys has written behind its results", n)
	}
	return nil
}

// checkFound compares what was found for keys.
func (s *subject[K, V]) checkFound(keys []K, vals []V, found []bool, hits int) error {
	want := 0
	for i, k := range keys {
		v, has := s.model.Get(k)
		if has {
			want++
		}
		if !s.model.Same(vals[i], v) || found != nil && found[i] != has {
			return fmt.Errorf("value %d, of %v, is %v; want %v, %v", i, k, vals[i], v, has)
		}
	}
	if hits != want {
		return fmt.Errorf("%d hits, want %d", hits, want)
	}
	s.same(len(keys))
	return nil
}

// inPlace lets values take the place of their keys, where both are of one type.
func (s *subject[K, V]) inPlace() error {
	keys := s.batch()
	vals, ok := any(keys).([]V)
	if !ok {
		return nil
	}
	return s.getBatch(keys, vals)
}

// buffered looks up keys that a GPU reads by itself, or into such values.
func (s *subject[K, V]) buffered() error {
	v := reflect.TypeFor[V]()
	if s.isText() || v.Size() == 0 || !core.PointerFree(v) {
		return nil
	}
	asked := s.batch()
	keys, err := pando.NewBuffer[K](len(asked))
	if err != nil {
		return s.unlessPlanned(err)
	}
	defer keys.Close()
	vals, err := pando.NewBuffer[V](len(asked))
	if err != nil {
		return s.unlessPlanned(err)
	}
	defer vals.Close()
	copy(keys.Slice(), asked)
	if oneIn(s.rng, 2) {
		asked = keys.Slice()
	}
	return s.getBatch(asked, vals.Slice())
}

// unlessPlanned returns an error, but not one of a device that is to fail.
func (s *subject[K, V]) unlessPlanned(err error) error {
	if s.gpu.plan.At > 0 {
		return nil
	}
	return err
}

func (s *subject[K, V]) rankBatch() error {
	keys := s.batch()
	ranks := make([]int, len(keys)+1)
	ranks[len(keys)] = -7
	s.ix.RankBatch(keys, ranks)
	for i, k := range keys {
		if want := s.model.Rank(k); ranks[i] != want {
			return fmt.Errorf(" of %d keys: rank %d, of %v, is %d, want %d", len(keys), i, k, ranks[i], want)
		}
	}
	if ranks[len(keys)] != -7 {
		return fmt.Errorf(" of %d keys has written behind its results", len(keys))
	}
	s.same(len(keys))
	return nil
}

// bounds draws ranges: short and long ones, single keys, and the wrong way
// round.
func (s *subject[K, V]) bounds() (lo, hi []K) {
	lo = s.batch()
	hi = slices.Clone(lo)
	for i := range hi {
		switch s.rng.IntN(4) {
		case 0:
		case 1:
			hi[i] = s.near(s.rng, lo[i])
		default:
			hi[i] = s.key()
		}
	}
	return lo, hi
}

func (s *subject[K, V]) countBatch() error {
	lo, hi := s.bounds()
	counts := make([]int, len(lo)+1)
	counts[len(lo)] = -7
	s.ix.CountBatch(lo, hi, counts)
	for i := range lo {
		if first, end := s.model.Span(lo[i], hi[i], 0); counts[i] != end-first {
			return fmt.Errorf(" of %d ranges: %d entries from %v to %v, want %d", len(lo), counts[i], lo[i], hi[i], end-first)
		}
	}
	if counts[len(lo)] != -7 {
		return fmt.Errorf(" of %d ranges has written behind its results", len(lo))
	}
	s.same(len(lo))
	return nil
}

// mostFound bounds the entries that a RangeBatch returns.
const mostFound = 100_000

func (s *subject[K, V]) rangeBatch() error {
	lo, hi := s.bounds()
	limit := pick(s.rng, -1, 0, 0, 1, 3, 100, math.MaxInt)
	for i, total := 0, 0; i < len(lo); i++ {
		first, end := s.model.Span(lo[i], hi[i], limit)
		if total += end - first; total > mostFound {
			lo, hi = lo[:i], hi[:i]
			break
		}
	}
	r := s.ix.RangeBatch(lo, hi, limit)
	if r.Len() != len(lo) {
		return fmt.Errorf(" of %d ranges, limit %d, has %d results", len(lo), limit, r.Len())
	}
	total := 0
	for i := range lo {
		first, end := s.model.Span(lo[i], hi[i], limit)
		keys, vals := r.At(i)
		total += len(keys)
		if !facetest.SameKeys(keys, s.model.Keys[first:end]) || !slices.EqualFunc(vals, s.model.Vals[first:end], s.model.Same) {
			return fmt.Errorf(" of %d ranges, limit %d: %v to %v has %d keys, %d values, or others; want %d", len(lo), limit, lo[i], hi[i], len(keys), len(vals), end-first)
		}
	}
	if len(r.Keys) != total || len(r.Vals) != total {
		return fmt.Errorf(" has %d keys and %d values, %d of them used", len(r.Keys), len(r.Vals), total)
	}
	s.same(total + len(lo))
	return nil
}

// getBytes looks up strings that lie one behind the other.
func (s *subject[K, V]) getBytes() error {
	ix, ok := s.ix.(interface {
		GetBatchBytes([]byte, []int32, []V, []bool) int
	})
	if !s.isText() || !ok {
		return nil
	}
	keys := s.batch()
	data := make([]byte, s.rng.IntN(3))
	offsets := []int32{int32(len(data))}
	for _, k := range keys {
		data = append(data, text(k)...)
		offsets = append(offsets, int32(len(data)))
	}
	data = slices.Clip(data) // nothing is behind the last string
	vals := make([]V, len(keys))
	var found []bool
	if oneIn(s.rng, 2) {
		found = make([]bool, len(keys))
	}
	hits := ix.GetBatchBytes(data, offsets, vals, found)
	if err := s.checkFound(keys, vals, found, hits); err != nil {
		return fmt.Errorf(" of %d keys: %w", len(keys), err)
	}
	return nil
}

// getAppend looks up values that are appended to one slice, where they are strings or slices of
// bytes.
func (s *subject[K, V]) getAppend() error {
	ix, ok := s.ix.(interface {
		GetAppend(K, []byte) ([]byte, bool)
		GetBatchAppend([]K, []byte, []int64, []bool) ([]byte, int)
	})
	kind := reflect.TypeFor[V]()
	if !ok || kind.Kind() != reflect.String && kind != reflect.TypeFor[[]byte]() {
		return nil
	}
	keys := s.batch()
	dst := make([]byte, s.rng.IntN(3), 3+upTo(s.rng, 1000))
	offsets, found := make([]int64, len(keys)+1), make([]bool, len(keys))
	data, hits := ix.GetBatchAppend(keys, dst, offsets, found)
	vals := make([]V, len(keys))
	for i := range keys {
		if part := data[offsets[i]:offsets[i+1]]; found[i] {
			reflect.ValueOf(&vals[i]).Elem().Set(reflect.ValueOf(part).Convert(kind))
		} else if len(part) > 0 {
			return fmt.Errorf(" of %d keys: number %d is not there, and has %d bytes", len(keys), i, len(part))
		}
	}
	if err := s.checkFound(keys, vals, found, hits); err != nil {
		return fmt.Errorf(" of %d keys: %w", len(keys), err)
	}
	if len(keys) > 0 {
		one, ok := ix.GetAppend(keys[0], dst)
		if ok != found[0] || string(one[len(dst):]) != string(data[offsets[0]:offsets[1]]) {
			return fmt.Errorf(": GetAppend has %d bytes, %v; the batch has %d, %v", len(one)-len(dst), ok, offsets[1]-offsets[0], found[0])
		}
	}
	return nil
}

// save saves the index, and asks what is opened again.
func (s *subject[K, V]) save() error {
	if !oneIn(s.rng, 3) {
		return nil
	}
	dir, err := os.MkdirTemp(s.dir, "saved")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "index.pando")
	if err := s.ix.Save(path); err != nil {
		return fmt.Errorf(" fails: %w", err)
	}
	if err := pando.Verify(path); err != nil {
		return fmt.Errorf(" has made no good file: %w", err)
	}
	again, err := s.kind.open(path, append(s.codec, pando.On(pando.CPU))...)
	if err != nil {
		return fmt.Errorf(", opened again: %w", err)
	}
	defer again.Close()
	other := *s
	other.ix = again
	for range 5 {
		if err := other.step(); err != nil {
			return fmt.Errorf(", opened again: %w", err)
		}
	}
	return nil
}
