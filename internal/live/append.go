package live

import (
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blob"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/stall"
)

// Values that are bytes of any number can be appended to a slice of the caller's, as
// those of an index can.

// append appends a value to dst. The word may be an old one, or any: then the bytes are any.
func (s *stored) append(dst []byte, word uint64) []byte {
	if r := blob.Ref(word); s.store.Plausible(r) {
		return r.Append(dst)
	}
	return dst
}

// appendAll appends the values of words to dst, but none where found is false. It sets ends to
// where each ends.
func (s *stored) appendAll(dst []byte, words []uint64, found []bool, ends []int64) []byte {
	for lo := 0; lo < len(words); lo += fetchAhead {
		hi := min(lo+fetchAhead, len(words))
		blob.Fetch(words[lo:hi])
		for i := lo; i < hi; i++ {
			if found[i] {
				dst = s.append(dst, words[i])
			}
			ends[i] = int64(len(dst))
		}
	}
	return dst
}

// within reports whether strings lie in the room that dst has for more. They may have to be
// looked up again when values were written there.
func within(dst []byte, texts string) bool {
	room, at := uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(unsafe.Pointer(unsafe.StringData(texts)))
	return len(texts) > 0 && at < room+uintptr(cap(dst)) && room+uintptr(len(dst)) < at+uintptr(len(texts))
}

// AppendGet appends the value of a key to dst, and reports whether there is one. Values must
// be Bare, as for the methods below.
func (m *Map) AppendGet(dst []byte, key order.Probe) ([]byte, bool) {
	if within(dst, key.Text) {
		key.Text = strings.Clone(key.Text)
	}
	s, out := m.apart.(*stored), dst
	ok := m.read(key, func(word uint64) { out = s.append(out[:len(dst)], word) })
	if !ok {
		out = dst // one that was read before is gone
	}
	return out, ok
}

// appending is memory for a piece of a batch.
type appending struct {
	words [appendPiece]uint64
	found [appendPiece]bool
}

// appendPiece is the number of keys that are looked up before their values are read: few, since
// both must be done within a generation.
const appendPiece = shortcut.Keys

var appendings = par.NewPool[appending]()

// AppendBatch appends the values of keys to dst, as that of an index.Index does.
func (m *Map) AppendBatch(dst []byte, keys order.Keys, offsets []int64, found []bool) (out []byte, hits int) {
	return m.appendBatch(dst, keys, offsets, found, func(keys order.Keys, words []uint64, found []bool, read func()) int {
		var p epoch.Patience
		for {
			gen := p.Begin(m.clock)
			hits := m.tree.GetBatch(keys, arena.Bytes(words), 8, found, nil)
			stall.At("live: words read")
			read()
			if m.gens.Current(gen) || m.tree.Closed() {
				p.Done()
				return hits
			}
		}
	})
}

// appendBatch appends values whose words get looks up. It calls read, once or more, for them
// to be read: where that has taken memory once, it takes the same again.
func (m *Map) appendBatch(dst []byte, keys order.Keys, offsets []int64, found []bool, get func(keys order.Keys, words []uint64, found []bool, read func()) int) (out []byte, hits int) {
	s := m.apart.(*stored)
	var sum atomic.Int64
	out = index.AppendParts(m.workers, keys.Len(), dst, offsets, func(lo, hi int, dst []byte) []byte {
		room := par.Get(appendings)
		for ; lo < hi; lo += appendPiece {
			end := min(lo+appendPiece, hi)
			words, here := room.words[:end-lo], room.found[:end-lo]
			if found != nil {
				here = found[lo:end]
			}
			before := len(dst)
			sum.Add(int64(get(keys.Slice(lo, end), words, here, func() {
				dst = s.appendAll(dst[:before], words, here, offsets[lo+1:end+1])
			})))
		}
		par.Put(appendings, room)
		return dst
	})
	return out, int(sum.Load())
}

// AppendPacked is AppendBatch for strings that lie one behind the other.
func (m *Map) AppendPacked(dst, data []byte, ends []int32, offsets []int64, found []bool) ([]byte, int) {
	if within(dst, unsafe.String(unsafe.SliceData(data), len(data))) {
		data = slices.Clone(data)
	}
	return m.AppendBatch(dst, order.KeysAs(m.key.Type, index.Unpacked(data, ends)), offsets, found)
}

// NextAppend is Next for a value that is appended to dst.
func (c Cursor) NextAppend(dst []byte) (key order.Probe, out []byte, ok bool) {
	s := c.m.apart.(*stored)
	out = dst
	key, ok = c.next(func(word uint64) { out = s.append(out[:len(dst)], word) })
	return key, out, ok
}

// AppendGet appends the value of a key to dst.
func (s *snapshot) AppendGet(dst []byte, key order.Probe) ([]byte, bool) {
	word, found := s.Moment.Get(key)
	if found {
		dst = s.m.apart.(*stored).append(dst, word)
	}
	return dst, found
}

// AppendVal appends value i to dst.
func (s *snapshot) AppendVal(dst []byte, i int) []byte {
	var word [1]uint64
	mustSolo(s.Entries(i, 1, order.Keys{}, word[:]))
	return s.m.apart.(*stored).append(dst, word[0])
}

// AppendBatch appends the values of keys to dst.
func (s *snapshot) AppendBatch(dst []byte, keys order.Keys, offsets []int64, found []bool) ([]byte, int) {
	return s.m.appendBatch(dst, keys, offsets, found, func(keys order.Keys, words []uint64, found []bool, read func()) int {
		hits := s.GetBatch(keys, words, found)
		read()
		return hits
	})
}

var _ index.BytesHolder = (*snapshot)(nil)

// GetAppend appends the value of a key to dst, and reports whether there is one.
func (h *Handle) GetAppend(dst []byte, key order.Probe) ([]byte, bool) {
	h.Val.MustBeBytes("GetAppend")
	dst, ok := h.Open().AppendGet(dst, key)
	h.done()
	return dst, ok
}

// GetBatchAppend appends the values of keys to dst.
func (h *Handle) GetBatchAppend(dst []byte, keys order.Keys, offsets []int64, found []bool) ([]byte, int) {
	const method = "GetBatchAppend"
	h.Val.MustBeBytes(method)
	m := h.Open()
	offsets, found = index.Packed(method, offsets, found, keys.Len())
	dst, hits := m.AppendBatch(dst, keys, offsets, found)
	h.done()
	return dst, hits
}

// GetPackedAppend is GetBatchAppend for strings that lie one behind the other.
func (h *Handle) GetPackedAppend(dst, data []byte, ends []int32, offsets []int64, found []bool) ([]byte, int) {
	const method = "GetBatchBytesAppend"
	h.Key.MustBeText(method)
	h.Val.MustBeBytes(method)
	m := h.Open()
	offsets, found = index.Packed(method, offsets, found, index.MustSpan(data, ends, m.workers))
	dst, hits := m.AppendPacked(dst, data, ends, offsets, found)
	h.done()
	return dst, hits
}

// SetPacked sets the values of many keys, both of which lie one behind the other.
func (h *Handle) SetPacked(data []byte, ends []int32, vals []byte, offsets []int64) error {
	const method = "SetBatchPacked"
	keys := h.Key.Texts(method, data, ends, h.m.workers)
	h.Val.MustSpanValues(method, vals, offsets, keys.Len())
	return index.Public(h.m.Apply(keys, nil, op.Set, h.Val.Unpacked(vals, offsets), nil, false))
}

// AppendValue appends the value of the entry to dst.
func (c *Place) AppendValue(dst []byte) []byte {
	index.MustBeOn(c.side == onKey, "AppendValue")
	c.h.Val.MustBeBytes("Cursor.AppendValue")
	return append(dst, c.bytes...)
}
