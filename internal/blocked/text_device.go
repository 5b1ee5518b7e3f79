package blocked

import (
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/simd"
)

// DeviceParts gives the memory that a device needs to search: the root's tree,
// directory and pages; and the strings, which it may do without.
func (t *Text) DeviceParts() [4][]byte {
	leaves := t.root.Segments()[1]
	root := unsafe.Slice((*byte)(t.root.Base), int(t.root.Leaves)*8+len(leaves))
	return [4][]byte{root, t.memory, t.pages, t.bytes}
}

// OnDevice describes the list to a device that holds copies of its parts; at 0
// where it does not.
func (t *Text) OnDevice(at [4]device.Ptr) (kernel.Text, error) {
	nodes := at[1] + device.Ptr(unsafe.Sizeof(counts{}))
	words := nodes + device.Ptr(len(t.nodes)*nodeBytes)
	d := kernel.Text{
		Root: at[0], Nodes: nodes, Words: words, Links: words + device.Ptr(8*len(t.words)), Pages: at[2], Bytes: at[3],
		Distinct: uint32(len(t.links) - len(t.words)), LastPage: uint32(max(t.count, 1) - 1), Entries: uint32(t.n),
	}
	if t.plain {
		d.Plain = 1
	}
	return d, d.SetRoot(&t.root.Tree)
}

// Loose says that a search by partial keys may miss a string that is there, so
// that a miss must be settled by full keys.
func (t *Text) Loose() bool { return t.loose }

// Confirm takes searches to their end that have come to entries by partial
// keys: ranks become places, or -1, as Find gives them.
func (t *Text) Confirm(keys []string, ranks []int) {
	t.confirm(keys, ranks, t.found)
}

// ConfirmRank is Confirm for ranks.
func (t *Text) ConfirmRank(keys []string, ranks []int) {
	t.confirm(keys, ranks, t.ranked)
}

func (t *Text) confirm(keys []string, ranks []int, end func(key string, partial uint32, r int) int) {
	g := groups.Get().(*textGroup)
	base := unsafe.Pointer(unsafe.SliceData(t.pages))
	if t.n == 0 {
		for i := range keys {
			ranks[i] = end(keys[i], 0, 0)
		}
		keys = nil
	}
	for len(keys) > 0 {
		n := min(len(keys), groupKeys)
		for i, r := range ranks[:n] {
			g.ranks[i] = min(r, t.n-1) / pageEntries
		}
		simd.Extract(base, pageBytes, g.ranks[:n], keys[:n], g.partial[:n])
		t.fetchKeys(g, keys[:n], ranks)
		for i, key := range keys[:n] {
			ranks[i] = end(key, g.partial[i], ranks[i])
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	groups.Put(g)
}
