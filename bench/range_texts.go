package main

import (
	"github.com/pando-index/pando"
	"github.com/tidwall/btree"
)

// iterateTexts measures ranges of strings. Pando's strings are copies, which stay good
// for as long as the caller has them; tidwall's are those that it was given.
func iterateTexts(s *session, t *iterated[string]) error {
	ix, err := pando.Freeze(t.keys, t.vals, pando.On(pando.CPU))
	if err != nil {
		return err
	}
	defer ix.Close()
	return t.compete(s, append(frozenTextRanges(ix), tidwallTexts(loadIterated(t))...))
}

// loadIterated puts the entries into tidwall/btree's Map.
func loadIterated[K pando.Key](t *iterated[K]) *btree.Map[K, uint64] {
	tree := new(btree.Map[K, uint64])
	for i, k := range t.keys {
		tree.Load(k, t.vals[i])
	}
	return tree
}

func frozenTextRanges(ix *pando.Frozen[string, uint64]) []reader[string] {
	c, buf := ix.Cursor(), []byte(nil)
	return []reader[string]{
		{namePando + ", Range", func(lo, hi string) (out ranged) {
			for k, v := range ix.Range(lo, hi) {
				out.add(v, uint64(len(k)))
			}
			return out
		}},
		{namePando + ", Scan", func(lo, hi string) (out ranged) {
			for k, v := range ix.Scan(pando.From(lo), pando.To(hi)) {
				out.add(v, uint64(len(k)))
			}
			return out
		}},
		{namePando + ", Cursor with AppendKey", func(lo, hi string) (out ranged) {
			for ok := c.Seek(lo); ok; ok = c.Next() {
				if buf = c.AppendKey(buf[:0]); string(buf) > hi {
					break
				}
				out.add(c.Value(), uint64(len(buf)))
			}
			return out
		}},
		{namePando + ", Rank and At", func(lo, hi string) (out ranged) {
			for i := ix.Rank(lo); i < ix.Len(); i++ {
				k, v := ix.At(i)
				if k > hi {
					break
				}
				out.add(v, uint64(len(k)))
			}
			return out
		}},
	}
}

func tidwallTexts(tree *btree.Map[string, uint64]) []reader[string] {
	return []reader[string]{
		{nameTidwallMap + ", Ascend", func(lo, hi string) (out ranged) {
			tree.Ascend(lo, func(k string, v uint64) bool {
				if k > hi {
					return false
				}
				out.add(v, uint64(len(k)))
				return true
			})
			return out
		}},
		{nameTidwallMap + ", Iter", func(lo, hi string) (out ranged) {
			it := tree.Iter()
			for ok := it.Seek(lo); ok && it.Key() <= hi; ok = it.Next() {
				out.add(it.Value(), uint64(len(it.Key())))
			}
			return out
		}},
	}
}
