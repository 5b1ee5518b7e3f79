// Package gen makes tables of keys and values with the distributions that
// papers on indexes use. A row is a function of its number and a seed, so that
// tables of any size are made without being held in memory.
package gen

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pando-index/pando/internal/table"
)

// Spec describes the pairs to make.
type Spec struct {
	Rows   int64
	Limit  int64 // write only this many of them; 0 means all
	Dist   string
	Keys   string
	Value  string // a type of package table, or "none"
	Skew   float64
	Seed   uint64
	Sorted bool
}

// batchRows is the number of rows in a batch.
const batchRows = 32 << 10

// Source makes a Spec's rows. It is a table.Source.
type Source struct {
	spec    Spec
	kind    kind
	number  func(i uint64) uint64 // the i-th number of the distribution
	shuffle permutation           // of rows, if they are not to be in order
	schema  []table.Field
	valued  bool
	sorted  []uint64     // numbers in order, if they must be sorted first
	words   []string     // keys in order, if not even numbers determine it
	next    int64        // row
	done    atomic.Int64 // rows, for Progress, which runs beside Next
}

// New checks a Spec and returns its source. If Sorted is requested for a
// distribution without an order of its own, all keys are made and sorted now.
func New(spec Spec) (*Source, error) {
	k, ok := kinds[spec.Keys]
	if !ok {
		return nil, fmt.Errorf("no keys of kind %q; take one of %s", spec.Keys, strings.Join(KeyKinds(), ", "))
	}
	d, ok := dists[spec.Dist]
	if !ok {
		return nil, fmt.Errorf("no distribution %q; take one of %s", spec.Dist, strings.Join(Dists(), ", "))
	}
	if spec.Rows < 1 {
		return nil, fmt.Errorf("%d rows; take at least one", spec.Rows)
	}
	if k.space > 0 && d.distinct && uint64(spec.Rows) > k.space {
		return nil, fmt.Errorf("there are only %d keys of kind %s, too few for %d distinct ones; take fewer rows, or --dist uniform", k.space, spec.Keys, spec.Rows)
	}
	s := &Source{spec: spec, kind: k, number: d.make(spec, k.space), schema: []table.Field{{Name: "key", Type: k.typ}}}
	if err := s.setValue(); err != nil {
		return nil, err
	}
	if s.spec.Limit <= 0 || s.spec.Limit > spec.Rows {
		s.spec.Limit = spec.Rows
	}
	s.settleOrder(d.distinct)
	return s, nil
}

// setValue adds the column of values.
func (s *Source) setValue() error {
	if s.spec.Value == "none" {
		return nil
	}
	t, err := table.ParseType(s.spec.Value)
	if err != nil {
		return fmt.Errorf("%w, or none", err)
	}
	s.valued = true
	s.schema = append(s.schema, table.Field{Name: "value", Type: t})
	return nil
}

// settleOrder makes rows come in the requested order. inOrder tells that the
// distribution's numbers already are in order.
func (s *Source) settleOrder(inOrder bool) {
	n := uint64(s.spec.Rows)
	switch {
	case !s.spec.Sorted && inOrder:
		s.shuffle = newPermutation(n, s.spec.Seed)
	case s.spec.Sorted && !s.kind.ordered:
		s.words = make([]string, n)
		for i := range s.words {
			s.words[i] = s.kind.text(s.number(uint64(i)))
		}
		slices.Sort(s.words)
	case s.spec.Sorted && !inOrder:
		s.sorted = make([]uint64, n)
		for i := range s.sorted {
			s.sorted[i] = s.number(uint64(i))
		}
		slices.Sort(s.sorted)
	}
}

// Schema returns the columns: key, and value if there is one.
func (s *Source) Schema() []table.Field { return s.schema }

// Progress returns rows, since bytes are not known.
func (s *Source) Progress() (done, total int64) { return s.done.Load(), s.spec.Limit }

// Close does nothing.
func (s *Source) Close() error { return nil }

// Next makes the next rows.
func (s *Source) Next(b *table.Batch) error {
	b.Reset(s.schema)
	for b.Rows < batchRows && s.next < s.spec.Limit {
		row := uint64(s.next)
		if s.shuffle.n > 0 {
			row = s.shuffle.at(row)
		}
		s.addKey(&b.Columns[0], row)
		if s.valued {
			addValue(&b.Columns[1], row, s.spec.Seed)
		}
		s.next++
		b.Rows++
	}
	if b.Rows == 0 {
		return io.EOF
	}
	s.done.Store(s.next)
	return nil
}

// addKey appends the key of a row.
func (s *Source) addKey(c *table.Column, row uint64) {
	if s.words != nil {
		c.String = append(c.String, s.words[row])
		return
	}
	n := uint64(0)
	if s.sorted != nil {
		n = s.sorted[row]
	} else {
		n = s.number(row)
	}
	switch c.Type {
	case table.Int64:
		c.Int64 = append(c.Int64, int64(n))
	case table.Uint64:
		c.Uint64 = append(c.Uint64, n)
	case table.Int32:
		c.Int32 = append(c.Int32, int32(n))
	case table.Uint32:
		c.Uint32 = append(c.Uint32, uint32(n))
	case table.Float64:
		c.Float64 = append(c.Float64, float64(n)/1024)
	case table.Float32:
		c.Float32 = append(c.Float32, float32(n)/1024)
	default:
		c.String = append(c.String, s.kind.text(n))
	}
}

// addValue appends a value: integers are the number of the row, floats are
// prices with two decimals, strings are names.
func addValue(c *table.Column, row, seed uint64) {
	switch c.Type {
	case table.Int64:
		c.Int64 = append(c.Int64, int64(row))
	case table.Uint64:
		c.Uint64 = append(c.Uint64, row)
	case table.Int32:
		c.Int32 = append(c.Int32, int32(row))
	case table.Uint32:
		c.Uint32 = append(c.Uint32, uint32(row))
	case table.Float64:
		c.Float64 = append(c.Float64, float64(hash(seed+1, row)%100000)/100)
	case table.Float32:
		c.Float32 = append(c.Float32, float32(hash(seed+1, row)%100000)/100)
	default:
		h := hash(seed+1, row)
		c.String = append(c.String, syllables(h)+" "+strconv.FormatUint(h%1000, 10))
	}
}
