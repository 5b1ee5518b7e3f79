package blocked

import (
	"fmt"
	"slices"
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
	if err := t.fitsDevice(); err != nil {
		return kernel.Text{}, err
	}
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

// fitsDevice says whether a kernel can search the list: entries have numbers
// it can tell apart.
func (t *Text) fitsDevice() error {
	if t.n > kernel.MaxText {
		return fmt.Errorf("%w: %d strings, the most is %d", kernel.ErrTooLarge, t.n, kernel.MaxText)
	}
	return nil
}

// Sound says whether nothing in the list points outside of it: kernels, unlike
// searches on the CPU, do not look, and a damaged file may hold anything.
func (t *Text) Sound() error {
	if err := t.fitsDevice(); err != nil {
		return err
	}
	for i, l := range t.links {
		if at := int(l &^ linkNode); l&linkNode != 0 && at >= len(t.nodes) || l&linkNode == 0 && at >= t.count {
			return fmt.Errorf("link %d of the directory leads nowhere", i)
		}
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; uint64(n.Words)+uint64(n.Count) > uint64(len(t.words)) {
			return fmt.Errorf("node %d of the directory has words %d to %d of %d", i, n.Words, uint64(n.Words)+uint64(n.Count), len(t.words))
		}
	}
	for p := range t.count {
		pg := t.page(p)
		if pg.Base > uint64(len(t.bytes)) || uint64(pg.End) > uint64(len(t.bytes))-pg.Base ||
			!slices.IsSorted(pg.offsets[:]) || pg.offsets[pageEntries-1] > pg.End {
			return fmt.Errorf("page %d has strings outside of the list", p)
		}
	}
	return nil
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
