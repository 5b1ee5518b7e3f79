package ranges

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

// The loops of range-iter are written out for each type and each way: only so are they
// what a caller's would be. Behind an interface or a type parameter the compiler does
// not see that an iterator does not escape, and each range costs four allocations.

// iterateNumbers measures ranges of numbers.
func iterateNumbers(s *contest.Session, t *iterated[uint64]) error {
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
	return t.compete(s, append(readers, peers.TidwallNumbers(t.keys, t.vals)...))
}

func frozenNumbers(ix *pando.Frozen[uint64, uint64]) []peers.Reader[uint64] {
	c := ix.Cursor()
	return []peers.Reader[uint64]{
		{Name: contest.Pando + ", Range", Read: func(lo, hi uint64) (out peers.Ranged) {
			for k, v := range ix.Range(lo, hi) {
				out.Add(v, k)
			}
			return out
		}},
		{Name: contest.Pando + ", Scan", Read: func(lo, hi uint64) (out peers.Ranged) {
			for k, v := range ix.Scan(pando.From(lo), pando.To(hi)) {
				out.Add(v, k)
			}
			return out
		}},
		{Name: contest.Pando + ", Cursor", Read: func(lo, hi uint64) (out peers.Ranged) {
			for ok := c.Seek(lo); ok; ok = c.Next() {
				k := c.Key()
				if k > hi {
					break
				}
				out.Add(c.Value(), k)
			}
			return out
		}},
		{Name: contest.Pando + ", Rank and At", Read: func(lo, hi uint64) (out peers.Ranged) {
			for i := ix.Rank(lo); i < ix.Len(); i++ {
				k, v := ix.At(i)
				if k > hi {
					break
				}
				out.Add(v, k)
			}
			return out
		}},
	}
}

func treeNumbers(ix *pando.Tree[uint64, uint64]) []peers.Reader[uint64] {
	c := ix.Cursor()
	return []peers.Reader[uint64]{
		{Name: ours.NameTree + ", Range", Read: func(lo, hi uint64) (out peers.Ranged) {
			for k, v := range ix.Range(lo, hi) {
				out.Add(v, k)
			}
			return out
		}},
		{Name: ours.NameTree + ", Scan", Read: func(lo, hi uint64) (out peers.Ranged) {
			for k, v := range ix.Scan(pando.From(lo), pando.To(hi)) {
				out.Add(v, k)
			}
			return out
		}},
		{Name: ours.NameTree + ", Cursor", Read: func(lo, hi uint64) (out peers.Ranged) {
			for ok := c.Seek(lo); ok; ok = c.Next() {
				k := c.Key()
				if k > hi {
					break
				}
				out.Add(c.Value(), k)
			}
			return out
		}},
	}
}
