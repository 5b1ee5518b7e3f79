package work

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// TextLookups is a contest of batches of Get over strings.
type TextLookups struct {
	*data.TextQueries
	Vals  []uint64
	Found []bool
}

// NewTextLookups returns room for the queries of a session.
func NewTextLookups(s *contest.Session, t *data.Texts) *TextLookups {
	return &TextLookups{data.NewTextQueries(t, s.Queries), make([]uint64, s.Queries), make([]bool, s.Queries)}
}

// Subject returns a system that answers all queries with one call.
func (l *TextLookups) Subject(sys peers.TextSystem) *contest.Subject {
	var hits int
	return &contest.Subject{
		System: sys.Name(),
		Bytes:  sys.BytesPerEntry(),
		Do: func(ops int) error {
			hits = sys.Get(l.Q[:ops], l.Vals[:ops], l.Found[:ops])
			return nil
		},
		Check: func(ops int) error { return l.Check(ops, hits) },
	}
}

// Check compares every answer with the expected one, and wipes it.
func (l *TextLookups) Check(ops, hits int) error {
	for i, at := range l.At[:ops] {
		if want := data.ValueOf(uint64(at)); !l.Found[i] || l.Vals[i] != want {
			return fmt.Errorf("wrong answer for key %q: value %d, found %v; it should be %d, true",
				l.Q[i], l.Vals[i], l.Found[i], want)
		}
		l.Vals[i], l.Found[i] = ^uint64(0), false
	}
	if hits != ops {
		return fmt.Errorf("%d hits reported where there are %d", hits, ops)
	}
	return nil
}

// TextRanks is a contest of batches of Rank over strings, some of which may be
// equal.
type TextRanks struct {
	*data.TextQueries
	ranks []int
}

// NewTextRanks returns room for the queries of a session.
func NewTextRanks(s *contest.Session, t *data.Texts) *TextRanks {
	return &TextRanks{data.NewTextQueries(t, s.Queries), make([]int, s.Queries)}
}

// TextRanker counts the keys below each query.
type TextRanker interface{ Rank(q []string, ranks []int) }

// Subject returns a system that ranks all queries with one call.
func (r *TextRanks) Subject(name string, bytes float64, sys TextRanker) *contest.Subject {
	return &contest.Subject{
		System: name,
		Bytes:  bytes,
		Do:     func(ops int) error { sys.Rank(r.Q[:ops], r.ranks[:ops]); return nil },
		Check:  r.check,
	}
}

// check checks every answer and wipes it: the rank is that of the first of
// equal keys.
func (r *TextRanks) check(ops int) error {
	keys := r.T.Keys
	for i, at := range r.At[:ops] {
		want := int(at)
		for want > 0 && keys[want-1] == keys[at] {
			want--
		}
		if r.ranks[i] != want {
			return fmt.Errorf("wrong rank of key %q: %d; it should be %d", r.Q[i], r.ranks[i], want)
		}
		r.ranks[i] = -1
	}
	return nil
}
