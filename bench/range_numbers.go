package main

import (
	"github.com/pando-index/pando"
	"github.com/tidwall/btree"
)

// The loops of range-iter are written out for each type and each way: only so are they
// what a caller's would be. Behind an interface or a type parameter the compiler does
// not see that an iterator does not escape, and each range costs four allocations.

// iterateNumbers measures ranges of numbers.
func iterateNumbers(s *session, t *iterated[uint64]) error {
	ix, err := pando.Freeze(t.keys, t.vals, pando.On(pando.CPU))
	if err != nil {
		return err
	}
	defer ix.Close()
	tree, err := pando.TreeOf(t.keys, t.vals, pando.On(pando.CPU))
	if err != nil {
		return err
	}
	defer tree.Close()
	readers := append(frozenNumbers(ix), treeNumbers(tree)...)
	return t.compete(s, append(readers, tidwallNumbers(loadIterated(t))...))
}

func frozenNumbers(ix *pando.Frozen[uint64, uint64]) []reader[uint64] {
	c := ix.Cursor()
	return []reader[uint64]{
		{namePando + ", Range", func(lo, hi uint64) (out ranged) {
			for k, v := range ix.Range(lo, hi) {
				out.add(v, k)
			}
			return out
		}},
		{namePando + ", Scan", func(lo, hi uint64) (out ranged) {
			for k, v := range ix.Scan(pando.From(lo), pando.To(hi)) {
				out.add(v, k)
			}
			return out
		}},
		{namePando + ", Cursor", func(lo, hi uint64) (out ranged) {
			for ok := c.Seek(lo); ok; ok = c.Next() {
				k := c.Key()
				if k > hi {
					break
				}
				out.add(c.Value(), k)
			}
			return out
		}},
		{namePando + ", Rank and At", func(lo, hi uint64) (out ranged) {
			for i := ix.Rank(lo); i < ix.Len(); i++ {
				k, v := ix.At(i)
				if k > hi {
					break
				}
				out.add(v, k)
			}
			return out
		}},
	}
}

func treeNumbers(ix *pando.Tree[uint64, uint64]) []reader[uint64] {
	c := ix.Cursor()
	return []reader[uint64]{
		{namePandoTree + ", Range", func(lo, hi uint64) (out ranged) {
			for k, v := range ix.Range(lo, hi) {
				out.add(v, k)
			}
			return out
		}},
		{namePandoTree + ", Scan", func(lo, hi uint64) (out ranged) {
			for k, v := range ix.Scan(pando.From(lo), pando.To(hi)) {
				out.add(v, k)
			}
			return out
		}},
		{namePandoTree + ", Cursor", func(lo, hi uint64) (out ranged) {
			for ok := c.Seek(lo); ok; ok = c.Next() {
				k := c.Key()
				if k > hi {
					break
				}
				out.add(c.Value(), k)
			}
			return out
		}},
	}
}

func tidwallNumbers(tree *btree.Map[uint64, uint64]) []reader[uint64] {
	return []reader[uint64]{
		{nameTidwallMap + ", Ascend", func(lo, hi uint64) (out ranged) {
			tree.Ascend(lo, func(k uint64, v uint64) bool {
				if k > hi {
					return false
				}
				out.add(v, k)
				return true
			})
			return out
		}},
		{nameTidwallMap + ", Iter", func(lo, hi uint64) (out ranged) {
			it := tree.Iter()
			for ok := it.Seek(lo); ok && it.Key() <= hi; ok = it.Next() {
				out.add(it.Value(), it.Key())
			}
			return out
		}},
	}
}
