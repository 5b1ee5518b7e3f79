package peers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	tidwall "github.com/tidwall/btree"
)

// Builder is one way to make an index of all pairs.
type Builder[W data.Word] struct {
	Name string
	Peak float64 // as in Maker, but with the collector off
	Peer bool    // uses one thread, whatever was requested
	Make func(d *data.Dataset[W], threads int) (Made[W], error)
}

// Made is what a builder made.
type Made[W data.Word] struct {
	Entries int
	Get     func(W) (W, bool) // to check the result; may be nil
	Close   func()            // may be nil
	Inner   int64             // bytes of inner levels, where that is known
	All     Getter[W]         // get for many keys, where there is one
	Levels  []byte            // the inner levels, where they can be had
}

// Check looks some keys up in what was built.
func (m Made[W]) Check(s *contest.Session, d *data.Dataset[W]) error {
	if m.Entries != len(d.Keys) {
		return fmt.Errorf("built %d entries of %d", m.Entries, len(d.Keys))
	}
	if m.Get == nil {
		return nil
	}
	q := make([]W, contest.Kilo)
	d.Hits(data.RoundRand(s, 0), q)
	for _, k := range q {
		if v, ok := m.Get(k); !ok || v != data.ValueOf(k) {
			return fmt.Errorf("wrong answer for key %d: value %d, found %v", k, v, ok)
		}
	}
	return nil
}

// Getter looks many keys up, and returns how many are there.
type Getter[W data.Word] interface {
	Get(keys, vals []W, found []bool) (hits int)
}

// GetsBy is a function as a getter.
type GetsBy[W data.Word] func(keys, vals []W, found []bool) (hits int)

// Get calls the function.
func (f GetsBy[W]) Get(keys, vals []W, found []bool) (hits int) { return f(keys, vals, found) }

// TidwallByLoad fills tidwall/btree's Map with sorted pairs.
func TidwallByLoad[W data.Word](d *data.Dataset[W], _ int) (Made[W], error) {
	tree := loadTidwallMap(d)
	return Made[W]{Entries: tree.Len(), Get: tree.Get}, nil
}

// TidwallBySet fills tidwall/btree's Map with pairs in any order.
func TidwallBySet[W data.Word](d *data.Dataset[W], _ int) (Made[W], error) {
	tree := new(tidwall.Map[W, W])
	for i, k := range d.Keys {
		tree.Set(k, d.Vals[i])
	}
	return Made[W]{Entries: tree.Len(), Get: tree.Get}, nil
}

// BuildGoogle fills google/btree's BTreeG.
func BuildGoogle[W data.Word](d *data.Dataset[W], _ int) (Made[W], error) {
	tree := loadGoogle(d)
	return Made[W]{Entries: tree.Len(), Get: func(k W) (W, bool) {
		p, ok := tree.Get(pair[W]{key: k})
		return p.val, ok
	}}, nil
}

// BuildGoMap fills a map of Go.
func BuildGoMap[W data.Word](d *data.Dataset[W], _ int) (Made[W], error) {
	m := loadGoMap(d)
	return Made[W]{Entries: len(m), Get: func(k W) (W, bool) { v, ok := m[k]; return v, ok }}, nil
}

// SortPairs sorts pairs with Go's library.
func SortPairs[W data.Word](d *data.Dataset[W], _ int) (Made[W], error) {
	pairs := make([]pair[W], len(d.Keys))
	for i, k := range d.Keys {
		pairs[i] = pair[W]{k, d.Vals[i]}
	}
	slices.SortFunc(pairs, func(a, b pair[W]) int { return cmp.Compare(a.key, b.key) })
	return Made[W]{Entries: len(pairs), Get: func(k W) (v W, ok bool) {
		at, ok := slices.BinarySearchFunc(pairs, k, func(p pair[W], k W) int { return cmp.Compare(p.key, k) })
		if ok {
			v = pairs[at].val
		}
		return v, ok
	}}, nil
}

// CopyPairs copies keys and values: less than that nobody does.
func CopyPairs[W data.Word](d *data.Dataset[W], _ int) (Made[W], error) {
	keys, vals := slices.Clone(d.Keys), slices.Clone(d.Vals)
	return Made[W]{Entries: min(len(keys), len(vals))}, nil
}
