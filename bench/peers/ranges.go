package peers

import "github.com/tidwall/btree"

// Reader is one way to read a range: it returns the number of its entries, the sum of
// their values, and that of their keys' sizes.
type Reader[K any] struct {
	Name string
	Read func(lo, hi K) Ranged
}

// Ranged is what was read.
type Ranged struct {
	Entries      int
	Vals, Keys64 uint64
}

// Add adds an entry.
func (r *Ranged) Add(val, size uint64) {
	r.Entries++
	r.Vals += val
	r.Keys64 += size
}

// TidwallNumbers returns the ways to read ranges of tidwall/btree's Map, for numbers.
func TidwallNumbers(keys, vals []uint64) []Reader[uint64] {
	tree := new(btree.Map[uint64, uint64])
	for i, k := range keys {
		tree.Load(k, vals[i])
	}
	return []Reader[uint64]{
		{NameTidwallMap + ", Ascend", func(lo, hi uint64) (out Ranged) {
			tree.Ascend(lo, func(k uint64, v uint64) bool {
				if k > hi {
					return false
				}
				out.Add(v, k)
				return true
			})
			return out
		}},
		{NameTidwallMap + ", Iter", func(lo, hi uint64) (out Ranged) {
			it := tree.Iter()
			for ok := it.Seek(lo); ok && it.Key() <= hi; ok = it.Next() {
				out.Add(it.Value(), it.Key())
			}
			return out
		}},
	}
}

// TidwallTexts returns the ways to read ranges of tidwall/btree's Map, for strings.
func TidwallTexts(keys []string, vals []uint64) []Reader[string] {
	tree := new(btree.Map[string, uint64])
	for i, k := range keys {
		tree.Load(k, vals[i])
	}
	return []Reader[string]{
		{NameTidwallMap + ", Ascend", func(lo, hi string) (out Ranged) {
			tree.Ascend(lo, func(k string, v uint64) bool {
				if k > hi {
					return false
				}
				out.Add(v, uint64(len(k)))
				return true
			})
			return out
		}},
		{NameTidwallMap + ", Iter", func(lo, hi string) (out Ranged) {
			it := tree.Iter()
			for ok := it.Seek(lo); ok && it.Key() <= hi; ok = it.Next() {
				out.Add(it.Value(), uint64(len(it.Key())))
			}
			return out
		}},
	}
}
