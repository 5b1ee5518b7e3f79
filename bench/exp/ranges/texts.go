package ranges

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/peers"
)

// iterateTexts measures ranges of strings. Pando's strings are copies, which stay good
// for as long as the caller has them; tidwall's are those that it was given.
func iterateTexts(s *contest.Session, t *iterated[string]) error {
	ix, err := pando.Freeze(t.keys, t.vals, pando.On(pando.CPU))
	if err != nil {
		return err
	}
	defer ix.Close()
	return t.compete(s, append(frozenTextRanges(ix), peers.TidwallTexts(t.keys, t.vals)...))
}

func frozenTextRanges(ix *pando.Frozen[string, uint64]) []peers.Reader[string] {
	c, buf := ix.Cursor(), []byte(nil)
	return []peers.Reader[string]{
		{Name: contest.Pando + ", Range", Read: func(lo, hi string) (out peers.Ranged) {
			for k, v := range ix.Range(lo, hi) {
				out.Add(v, uint64(len(k)))
			}
			return out
		}},
		{Name: contest.Pando + ", Scan", Read: func(lo, hi string) (out peers.Ranged) {
			for k, v := range ix.Scan(pando.From(lo), pando.To(hi)) {
				out.Add(v, uint64(len(k)))
			}
			return out
		}},
		{Name: contest.Pando + ", Cursor with AppendKey", Read: func(lo, hi string) (out peers.Ranged) {
			for ok := c.Seek(lo); ok; ok = c.Next() {
				if buf = c.AppendKey(buf[:0]); string(buf) > hi {
					break
				}
				out.Add(c.Value(), uint64(len(buf)))
			}
			return out
		}},
		{Name: contest.Pando + ", Rank and At", Read: func(lo, hi string) (out peers.Ranged) {
			for i := ix.Rank(lo); i < ix.Len(); i++ {
				k, v := ix.At(i)
				if k > hi {
					break
				}
				out.Add(v, uint64(len(k)))
			}
			return out
		}},
	}
}
