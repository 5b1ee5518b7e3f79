package index

import (
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Values that are bytes of any number can be appended to a slice of the caller's, so that
// none has to be allocated.

// BytesHolder is a Holder whose values may be bytes of any number.
type BytesHolder interface {
	// AppendGet appends the value of the first entry equal to key to dst, and reports whether
	// there is one.
	AppendGet(dst []byte, key order.Probe) ([]byte, bool)
	// AppendVal appends the value of entry i to dst.
	AppendVal(dst []byte, i int) []byte
	// AppendBatch is that of Index.
	AppendBatch(dst []byte, keys order.Keys, offsets []int64, found []bool) (out []byte, hits int)
}

// AppendGet appends the value of the first entry equal to key to dst, and reports whether
// there is one. Values must be Bare, as for the methods below.
func (ix *Index) AppendGet(dst []byte, key order.Probe) ([]byte, bool) {
	if ix.holder != nil {
		return ix.holder.(BytesHolder).AppendGet(dst, key)
	}
	i, found := ix.Engine.Seek(key)
	if found && i < ix.n { // always, unless the index is being closed
		dst = append(dst, ix.values.view(i)...)
	}
	return dst, found
}

// AppendVal appends the value of entry i to dst.
func (ix *Index) AppendVal(dst []byte, i int) []byte {
	if ix.holder != nil {
		return ix.holder.(BytesHolder).AppendVal(dst, i)
	}
	return append(dst, ix.values.view(i)...)
}

// AppendBatch appends the values of keys to dst, one behind the other: that of keys[i] is
// out[offsets[i]:offsets[i+1]], which has no bytes if there is none. found[i], where found is
// not nil, says which. It returns the number of keys found.
func (ix *Index) AppendBatch(dst []byte, keys order.Keys, offsets []int64, found []bool) (out []byte, hits int) {
	if ix.holder != nil {
		return ix.holder.(BytesHolder).AppendBatch(dst, keys, offsets, found)
	}
	ranks := ix.ranks(keys.Len())
	hits = ix.finder.FindEach(keys, (*noted)(ranks))
	return ix.appendRanks(dst, ranks, offsets, found), hits
}

// AppendPacked is AppendBatch for strings that lie one behind the other, as GetPacked has
// them.
func (ix *Index) AppendPacked(dst, data []byte, ends []int32, offsets []int64, found []bool) (out []byte, hits int) {
	e, ok := ix.Engine.(packedFinder)
	if !ok {
		return ix.AppendBatch(dst, order.KeysAs(ix.key.Type, Unpacked(data, ends)), offsets, found)
	}
	ranks := ix.ranks(len(ends) - 1)
	hits = e.findEach(exec.StringBatch{Data: data, Offsets: ends}, (*noted)(ranks))
	return ix.appendRanks(dst, ranks, offsets, found), hits
}

// noted is a sink that notes ranks.
type noted []int

func (n *noted) Take(lo int, ranks []int) (hits int) {
	copy((*n)[lo:], ranks)
	for _, r := range ranks {
		if r >= 0 {
			hits++
		}
	}
	return hits
}

// appendRanks appends the values of entries, -1 for none, to dst.
func (ix *Index) appendRanks(dst []byte, ranks *[]int, offsets []int64, found []bool) []byte {
	dst = AppendParts(ix.workers, len(*ranks), dst, offsets, func(lo, hi int, dst []byte) []byte {
		return ix.values.appendSome(dst, (*ranks)[lo:hi], ix.n, offsets[lo+1:hi+1])
	})
	setFound(found, 0, *ranks)
	par.Put(ix.scratch, ranks)
	return dst
}

// fetchAhead is the number of values that are asked for before the first is read.
const fetchAhead = 64

// appendSome appends the values of entries, of which there are n, to dst. It sets ends to where
// each ends.
func (s *Values) appendSome(dst []byte, ranks []int, n int, ends []int64) []byte {
	for lo := 0; lo < len(ranks); lo += fetchAhead {
		hi := min(lo+fetchAhead, len(ranks))
		s.fetch(ranks[lo:hi], n)
		for i := lo; i < hi; i++ {
			if r := ranks[i]; uint(r) < uint(n) { // below 0: not found; above: being closed
				dst = append(dst, s.view(r)...)
			}
			ends[i] = int64(len(dst))
		}
	}
	return dst
}

// fetch asks for the first bytes of values of any number of bytes that lie one behind the
// other. There are n entries.
func (s *Values) fetch(ranks []int, n int) {
	if s.list == nil {
		return
	}
	ends, _ := s.list.Segments()
	simd.FetchEach(unsafe.Pointer(unsafe.SliceData(ends)), ranks, 8)
	for _, r := range ranks {
		if uint(r) < uint(n) {
			if v := s.list.View(r); len(v) > 0 {
				simd.Fetch(unsafe.Pointer(unsafe.StringData(v)), 1)
			}
		}
	}
}

// view returns the bytes of value i, where they lie.
func (s *Values) view(i int) string {
	if s.list != nil {
		return s.list.View(i)
	}
	b := s.View(s.at(i))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// leastPart is the fewest values that a goroutine is worth.
const leastPart = 4096

// AppendParts has the values of n keys appended to dst, by several goroutines where that
// pays. part appends those of keys [lo, hi), and sets offsets[i+1] to where value i ends in
// the slice that it was given.
func AppendParts(workers, n int, dst []byte, offsets []int64, part func(lo, hi int, dst []byte) []byte) []byte {
	offsets[0] = int64(len(dst))
	parts := min(workers, n/leastPart)
	if parts <= 1 {
		return part(0, n, dst)
	}
	outs := make([][]byte, parts)
	outs[0] = dst
	par.Run(workers, parts, par.Func(func(p int) { outs[p] = part(p*n/parts, (p+1)*n/parts, outs[p]) }))
	begins, total := make([]int, parts), 0
	for p, out := range outs {
		begins[p] = total
		total += len(out)
	}
	dst = slices.Grow(outs[0], total-len(outs[0]))[:total]
	par.Run(workers, parts-1, par.Func(func(p int) {
		p++
		copy(dst[begins[p]:], outs[p])
		for i := p * n / parts; i < (p+1)*n/parts; i++ {
			offsets[i+1] += int64(begins[p])
		}
	}))
	return dst
}

// GetAppend appends the value of a key to dst, and reports whether there is one.
func (h *Handle) GetAppend(dst []byte, key order.Probe) ([]byte, bool) {
	ix := h.Open()
	ix.values.MustBeBytes("GetAppend")
	dst, found := ix.AppendGet(dst, key)
	h.Done(ix)
	return dst, found
}

// GetBatchAppend appends the values of keys to dst.
func (h *Handle) GetBatchAppend(dst []byte, keys order.Keys, offsets []int64, found []bool) ([]byte, int) {
	const method = "GetBatchAppend"
	ix := h.Open()
	ix.values.MustBeBytes(method)
	offsets, found = Packed(method, offsets, found, keys.Len())
	dst, hits := ix.AppendBatch(dst, keys, offsets, found)
	h.Done(ix)
	return dst, hits
}

// GetPackedAppend is GetBatchAppend for strings that lie one behind the other.
func (h *Handle) GetPackedAppend(dst, data []byte, ends []int32, offsets []int64, found []bool) ([]byte, int) {
	const method = "GetBatchBytesAppend"
	h.Key.MustBeText(method)
	ix := h.Open()
	ix.values.MustBeBytes(method)
	offsets, found = Packed(method, offsets, found, MustSpan(data, ends, ix.workers))
	dst, hits := ix.AppendPacked(dst, data, ends, offsets, found)
	h.Done(ix)
	return dst, hits
}

// AppendValue appends the value of the entry to dst.
func (c *Place) AppendValue(dst []byte) []byte {
	h, ix, i := c.Entry("AppendValue")
	ix.values.MustBeBytes("Cursor.AppendValue")
	dst = ix.AppendVal(dst, i)
	h.Done(ix)
	return dst
}
