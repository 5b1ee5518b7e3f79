package attack

import (
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// operation is one line of a log: it draws its arguments, asks the index, and
// compares the answer with the model's. It must be safe for an index that
// returns anything, and panics only where the index does.
type operation[K pando.Key, V any] struct {
	name string
	do   func(s *subject[K, V]) error
}

// step draws an operation and carries it out.
func (s *subject[K, V]) step() error {
	op := pick(s.rng, s.kind.operations...)
	if !s.quiet {
		s.note("%s", op.name)
	}
	if err := op.do(s); err != nil {
		return fmt.Errorf("%s%w", op.name, err)
	}
	return nil
}

// singles ask for one key, or one entry.
func singles[K pando.Key, V any]() []operation[K, V] {
	return []operation[K, V]{
		{"Len", func(s *subject[K, V]) error {
			if n, stats := s.ix.Len(), s.ix.Stats().Len; n != len(s.model.Keys) || stats != n {
				return fmt.Errorf("() = %d, in Stats %d; want %d", n, stats, len(s.model.Keys))
			}
			s.same(1)
			return nil
		}},
		{"Get", func(s *subject[K, V]) error { return s.get(s.ix.Get, s.key()) }},
		{"Rank", (*subject[K, V]).rank},
		{"At", (*subject[K, V]).at},
		{"Min", func(s *subject[K, V]) error {
			var k K
			return s.entry(min(0, len(s.model.Keys)-1), func(K) (K, V, bool) { return s.ix.Min() }, k)
		}},
		{"Max", func(s *subject[K, V]) error {
			var k K
			return s.entry(len(s.model.Keys)-1, func(K) (K, V, bool) { return s.ix.Max() }, k)
		}},
		{"Floor", func(s *subject[K, V]) error { k := s.key(); return s.entry(s.model.After(k)-1, s.ix.Floor, k) }},
		{"Ceil", func(s *subject[K, V]) error { k := s.key(); return s.entry(s.model.Rank(k), s.ix.Ceil, k) }},
		{"Count", (*subject[K, V]).count},
		{"PrefixCount", (*subject[K, V]).prefixCount},
		{"Stats", func(s *subject[K, V]) error {
			if st := s.ix.Stats(); st.Reason == "" || st.TotalBytes < 0 || st.Workers < 1 {
				return fmt.Errorf("() = %+v", st)
			}
			return nil
		}},
		{"misuse of ", (*subject[K, V]).misuse},
		{"WriteTo", func(s *subject[K, V]) error {
			if n, err := s.ix.WriteTo(io.Discard); err != nil || n <= 0 || n%4096 != 0 {
				return fmt.Errorf(" wrote %d bytes, %w", n, err)
			}
			return nil
		}},
	}
}

// misuse calls a method as nobody should: it panics with a sentence that names
// the method.
func (s *subject[K, V]) misuse() error {
	one, two := make([]K, 1), make([]K, 2)
	calls := []facetest.Call{
		{Name: "At", Do: func() { s.ix.At(pick(s.rng, -1, math.MinInt, s.ix.Len(), math.MaxInt)) }},
		{Name: "GetBatch", Do: func() { s.ix.GetBatch(two, make([]V, 1), nil) }},
		{Name: "GetBatch", Do: func() { s.ix.GetBatch(two, make([]V, 2), []bool{true}) }},
		{Name: "RankBatch", Do: func() { s.ix.RankBatch(two, make([]int, 1)) }},
		{Name: "CountBatch", Do: func() { s.ix.CountBatch(two, two, make([]int, 1)) }},
		{Name: "CountBatch", Do: func() { s.ix.CountBatch(one, two, make([]int, 2)) }},
		{Name: "RangeBatch", Do: func() { s.ix.RangeBatch(two, one, 0) }},
	}
	if !s.isText() {
		calls = append(calls,
			facetest.Call{Name: "Prefix", Do: func() { s.ix.Prefix(one[0]) }},
			facetest.Call{Name: "PrefixCount", Do: func() { s.ix.PrefixCount(one[0]) }})
	}
	call := pick(s.rng, calls...)
	text := facetest.PanicOf(call.Do)
	if closedText(text) {
		panic(text)
	}
	if !strings.HasPrefix(text, "pando: "+call.Name) {
		return fmt.Errorf("%s panics with %q", call.Name, text)
	}
	s.same(1)
	return nil
}

// walks are what iterates.
func walks[K pando.Key, V any]() []operation[K, V] {
	return []operation[K, V]{
		{"All", func(s *subject[K, V]) error { return s.sequence(s.ix.All(), 0, len(s.model.Keys)) }},
		{"Backward", (*subject[K, V]).backward},
		{"Range", func(s *subject[K, V]) error {
			lo, hi := s.key(), s.key()
			first, end := s.model.Span(lo, hi, 0)
			if err := s.sequence(s.ix.Range(lo, hi), first, end); err != nil {
				return fmt.Errorf("(%v, %v)%w", lo, hi, err)
			}
			return nil
		}},
		{"Prefix", func(s *subject[K, V]) error {
			if !s.isText() {
				return nil
			}
			p := s.prefix()
			first, end := s.prefixed(p)
			if err := s.sequence(s.ix.Prefix(p), first, end); err != nil {
				return fmt.Errorf("(%q)%w", text(p), err)
			}
			return nil
		}},
		{"Batcher", (*subject[K, V]).batcher},
	}
}

// get checks what a Get returns for a key.
func (s *subject[K, V]) get(get func(K) (V, bool), k K) error {
	want, has := s.model.Get(k)
	if v, found := get(k); found != has || !s.model.Same(v, want) {
		return fmt.Errorf("(%v) = %v, %v; want %v, %v", k, v, found, want, has)
	}
	s.same(1)
	return nil
}

func (s *subject[K, V]) rank() error {
	k := s.key()
	if got, want := s.ix.Rank(k), s.model.Rank(k); got != want {
		return fmt.Errorf("(%v) = %d, want %d", k, got, want)
	}
	s.same(1)
	return nil
}

func (s *subject[K, V]) count() error {
	lo, hi := s.key(), s.key()
	first, end := s.model.Span(lo, hi, 0)
	if n := s.ix.Count(lo, hi); n != end-first {
		return fmt.Errorf("(%v, %v) = %d, want %d", lo, hi, n, end-first)
	}
	s.same(1)
	return nil
}

func (s *subject[K, V]) prefixCount() error {
	if !s.isText() {
		return nil
	}
	p := s.prefix()
	first, end := s.prefixed(p)
	if n := s.ix.PrefixCount(p); n != end-first {
		return fmt.Errorf("(%q) = %d, want %d", text(p), n, end-first)
	}
	s.same(1)
	return nil
}

// at asks for an entry: the first, the last, or any.
func (s *subject[K, V]) at() error {
	n := min(len(s.model.Keys), s.ix.Len())
	if n == 0 {
		return nil
	}
	i := pick(s.rng, 0, n-1, s.rng.IntN(n))
	if k, v := s.ix.At(i); !s.model.Is(i, k, v) {
		return fmt.Errorf("(%d) = %v, %v; want %v, %v", i, k, v, s.model.Keys[i], s.model.Vals[i])
	}
	s.same(1)
	return nil
}

// entry checks that ask returns entry i.
func (s *subject[K, V]) entry(i int, ask func(K) (K, V, bool), k K) error {
	if err := s.model.Entry(i, ask, k); err != nil {
		return fmt.Errorf("(%v) %w", k, err)
	}
	s.same(1)
	return nil
}

// sequence checks that seq yields entries [first, end), all of them or the
// first.
func (s *subject[K, V]) sequence(seq iter.Seq2[K, V], first, end int) error {
	stop := end - first + 1
	if oneIn(s.rng, 2) {
		stop = 1 + upTo(s.rng, end-first)
	}
	if err := s.model.Sequence(seq, first, end, stop); err != nil {
		return fmt.Errorf(": %w", err)
	}
	s.same(min(stop, end-first))
	return nil
}

// backward walks from the end, all the way or a part of it.
func (s *subject[K, V]) backward() error {
	i := len(s.model.Keys)
	stop := -1
	if oneIn(s.rng, 2) {
		stop = i - 1 - upTo(s.rng, i)
	}
	for k, v := range s.ix.Backward() {
		i--
		if i < 0 || !s.model.Is(i, k, v) {
			return fmt.Errorf(": entry %d is %v, %v", i, k, v)
		}
		s.same(1)
		if i == stop {
			return nil
		}
	}
	if i != 0 {
		return fmt.Errorf(" ends at entry %d", i)
	}
	return nil
}

// prefix draws what keys may begin with: a key, or a part of one.
func (s *subject[K, V]) prefix() K {
	k := reflect.ValueOf(s.key())
	n := k.Len()
	return k.Slice(0, pick(s.rng, n, s.rng.IntN(n+1))).Interface().(K)
}

// prefixed returns the entries of the model that begin with p.
func (s *subject[K, V]) prefixed(p K) (first, end int) {
	first = s.model.Rank(p)
	for end = first; end < len(s.model.Keys) && strings.HasPrefix(text(s.model.Keys[end]), text(p)); end++ {
	}
	return first, end
}

// text returns a key as a string.
func text[K pando.Key](k K) string { return reflect.ValueOf(k).String() }

// batcher asks through a Batcher, from several goroutines.
func (s *subject[K, V]) batcher() error {
	ix, ok := s.ix.(interface {
		Batcher(time.Duration, int) *pando.Batcher[K, V]
	})
	if !ok {
		return nil
	}
	b := ix.Batcher(pick(s.rng, 0, 1, time.Microsecond, time.Millisecond), pick(s.rng, 0, 1, 2, 7, 100))
	defer b.Close()
	keys := make([][]K, 1+s.rng.IntN(4))
	for i := range keys {
		for range 1 + s.rng.IntN(20) {
			keys[i] = append(keys[i], s.key())
		}
	}
	failed := make(chan error, len(keys))
	for _, own := range keys {
		go func() {
			failed <- passedOn(func() error {
				for _, k := range own {
					if err := s.get(b.Get, k); err != nil {
						return err
					}
				}
				return nil
			})
		}()
	}
	return firstOf(failed, len(keys))
}
