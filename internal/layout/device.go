package layout

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// OnDevice is a layout that a device can hold and search.
type OnDevice interface {
	Image() Image
}

// Image is a tree as it lies in memory, to be copied to a device byte for byte:
// all of it, or the levels from one on before another.
type Image struct {
	Memory []byte
	// Levels holds the byte where each level begins; the last is that of the
	// entries, which goes to the end.
	Levels  []int
	ValSize int  // bytes of a value in the tree; 0 for none
	Pairs   bool // values lie beside their keys
	// Resident is the copy. It knows where it lies, so that an Image serves one
	// device: a caller that needs another asks the layout again.
	Resident Resident
}

// Depth returns the number of levels above the entries.
func (im *Image) Depth() int { return len(im.Levels) - 1 }

// Level returns the byte where a level begins; behind the last, where all ends.
func (im *Image) Level(l int) int {
	if l >= len(im.Levels) {
		return len(im.Memory)
	}
	return im.Levels[l]
}

// Resident is a copy of a layout on a device: it knows which kernels search
// it. A schedule knows levels alone.
type Resident interface {
	// Kernels lists the sources that are needed beside those of all layouts.
	Kernels() []kernel.Source
	// Place takes note of where the image would begin on the device, if all of
	// it were there.
	Place(base device.Ptr) error
	// Favor asks that upper levels stay in the cache for a stream.
	Favor(st device.Stream)
	// Launch runs the kernels for a bucket.
	Launch(l *Launch) error
}

// EntryCopier is a Resident that copies runs of entries out of a tree of which
// the device holds everything.
type EntryCopier interface {
	CopyEntries(c *EntryCopy) error
}

// Vectored is a Resident that works on the values of a tree of which the device
// holds everything.
type Vectored interface {
	Vectors(v *VectorLaunch) error
}

// Signed is a Resident that searches all of a tree by signs, once they were made on the device.
type Signed interface {
	// SignBytes returns the device memory that signs take, 0 if the tree has none.
	SignBytes() int
	// Sign makes signs at a place of the device, where the tree is already. It returns false, and makes
	// no use of the place from then on, if they would not pay.
	Sign(set *kernel.Set, st device.Stream, at device.Ptr) (used bool, err error)
}

// VectorLaunch is a vector operation on values on a device.
type VectorLaunch struct {
	*kernel.Vectors
	Set    *kernel.Set // with the kernels for it
	Stream device.Stream
	Params *kernel.Params
}

// Launch is a bucket of queries on a device, and the work to do with it.
type Launch struct {
	Set    *kernel.Set
	Stream device.Stream
	Params *kernel.Params
	Bits   int // of a key
	N      int
	Keys   device.Ptr
	Nodes  device.Ptr // room for a u32 for each query. Where Begins is set:
	Begins bool       // it is the node that the query has come to,
	From   int        // on this level,
	Deep   int        // or, for this many of the first queries, on the next
	To     int        // the level where the search ends, its nodes the result; behind the last: answers
	Want   Want
	Vals   int        // bits of a value
	Out    device.Ptr // nodes, ranks or values
	Found  device.Ptr // bits, with values
}

// Want is the kind of result of a search to the end.
type Want uint8

const (
	WantRanks  Want = iota // entries below the key
	WantFinds              // the first entry equal to it, or kernel.NotFound
	WantPairs              // values out of the leaves, and found bits
	WantColumn             // values out of a column, and found bits
)

// EntryCopy is runs of entries to be copied out of a tree on a device: see
// kernel.Set.Entries.
type EntryCopy struct {
	Set            *kernel.Set
	Stream         device.Stream
	Params         *kernel.Params
	Bits, ValBits  int
	First, Offsets device.Ptr
	Runs, N        int
	Keys, Vals     device.Ptr
}

// Enter returns a tree as the queries of a launch enter it.
func (l *Launch) Enter(t kernel.Tree) kernel.Tree {
	if l.Begins {
		t.Start, t.From, t.Deep = l.Nodes, uint32(l.From), uint32(l.Deep)
	}
	return t
}

// Down lets queries go down a tree to the level where they end.
func (l *Launch) Down(t kernel.Tree) error {
	t.Levels = uint32(l.To)
	return l.Set.Down(l.Stream, l.Params, &t, l.Bits, l.Keys, l.N, l.Out)
}

// Answer lets queries go down a tree to their entries, by signs unless they are nil.
func (l *Launch) Answer(t kernel.Tree, g *kernel.Signs) error {
	switch l.Want {
	case WantPairs:
		return l.Set.Pairs(l.Stream, l.Params, &t, g, l.Bits, l.Keys, l.N, l.Out, l.Found)
	case WantColumn:
		return l.Set.Apart(l.Stream, l.Params, &t, g, l.Bits, l.Vals, l.Keys, l.N, l.Out, l.Found)
	case WantFinds:
		return l.Set.Find(l.Stream, l.Params, &t, g, l.Bits, l.Keys, l.N, l.Out)
	}
	return l.Set.Rank(l.Stream, l.Params, &t, g, l.Bits, l.Keys, l.N, l.Out)
}

// StringsOnDevice is a layout of strings that a device can hold and search by
// partial keys. The CPU goes on where partial keys do not settle a search.
type StringsOnDevice interface {
	// StringImage returns the memory to copy, or an error for a tree that a
	// kernel cannot search: one that is too large, or that a damaged file left
	// with links to the outside, which kernels do not check.
	StringImage() (StringImage, error)
	// Confirm takes searches to their end that have come to entries by partial
	// keys: ranks become the results of Find.
	Confirm(keys []string, ranks []int)
	// ConfirmRank is Confirm for the results of Rank.
	ConfirmRank(keys []string, ranks []int)
	// Loose reports whether a search by partial keys may miss a string that is
	// there, so that a miss must be settled by full keys.
	Loose() bool
}

// StringImage is a tree of strings as it lies in memory, to be copied to a
// device part by part.
type StringImage struct {
	Parts   [][]byte // the arrays that the device searches
	Strings []byte   // the strings themselves, which it can do without
	// Resident is the copy.
	Resident StringResident
}

// StringResident is a copy of a layout of strings on a device.
type StringResident interface {
	Kernels() kernel.Source
	// Place takes note of where the parts are; strings is 0 where they are not
	// there. Queries longer than longest are not compared on the device.
	Place(parts []device.Ptr, strings device.Ptr, longest int) error
	// Search sets out (u32) to the results of n queries, the bytes of query i
	// being those of keys from offsets[i] to offsets[i+1] (u32): the first entry
	// that is not below as far as partial keys tell, and kernel.WordsEqual or
	// kernel.WordsUnsure.
	Search(set *kernel.Set, st device.Stream, p *kernel.Params, keys, offsets device.Ptr, n int, out device.Ptr) error
}
