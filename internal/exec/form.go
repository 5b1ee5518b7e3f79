package exec

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// form is how the searches of a layout run on a GPU: the layout's half of a
// schedule, of which the schedule knows levels alone.
type form interface {
	// sources lists the kernels that the layout needs beside those of all.
	sources() []kernel.Source
	// place takes note of where the image would begin on the device. leaves is
	// Image.Tree there.
	place(leaves *kernel.Tree, base device.Ptr) error
	// favor asks that upper levels stay in the cache for a stream.
	favor(st device.Stream)
	// launch runs the kernels of an errand.
	launch(e *errand) error
}

// errand is a bucket of queries on a device, and what is to be done with it.
type errand struct {
	set    *kernel.Set
	st     device.Stream
	params *kernel.Params
	bits   int // of a key
	n      int
	keys   device.Ptr
	nodes  device.Ptr // room for a u32 for each query. Where begins is set:
	begins bool       // it is the node that the query has come to,
	from   int        // on this level,
	deep   int        // or, for so many of the first, on the next
	to     int        // the level where the search ends, its nodes the result; behind the last: answers
	want   want
	vals   int        // bits of a value
	out    device.Ptr // nodes, ranks, places or values
	found  device.Ptr // bits, with values
}

// want is what a search to the end gives.
type want uint8

const (
	wantRanks  want = iota
	wantPlaces      // or kernel.NotFound
	wantPairs       // values out of the leaves, and found bits
	wantVals        // values out of a column, and found bits
)

// launch runs what a bucket asks of the GPU.
func (j *search[K, C]) launch(s *slot, st device.Stream, n int) error {
	g := j.gpu
	s.errand = errand{
		set: g.set, st: st, params: &s.params,
		bits: 8 * width[C](), n: n, keys: s.devIn, nodes: s.devIn + device.Ptr(n*width[C]()),
		begins: j.begins(), from: j.plan.Upper, deep: s.deep, to: j.plan.Lower,
		want: j.wants(), vals: 8 * g.image.Bytes,
		out: s.devOut, found: s.devOut + device.Ptr(j.bitsAt(n)),
	}
	return g.form.launch(&s.errand)
}

// wants says what a GPU is to give that takes searches to their end.
func (j *search[K, C]) wants() want {
	switch {
	case j.ask == getPairs:
		return wantPairs
	case j.raw != nil:
		return wantVals
	case j.ask == findEach:
		return wantPlaces
	}
	return wantRanks
}

// formOf gives the form of an image.
func formOf(im *Image, keyBits int) form {
	switch {
	case len(im.Rows) > 0:
		return &blockedForm{image: im, bits: keyBits}
	case im.Pages != nil:
		return &packedForm{image: im}
	}
	return &plainForm{depth: im.Tree.Levels}
}

// enters gives a tree as the queries of an errand enter it.
func (e *errand) enters(t kernel.Tree) kernel.Tree {
	if e.begins {
		t.Start, t.From, t.Deep = e.nodes, uint32(e.from), uint32(e.deep)
	}
	return t
}

// down lets queries go down a tree to the level where they end.
func (e *errand) down(t kernel.Tree) error {
	t.Levels = uint32(e.to)
	return e.set.Down(e.st, e.params, &t, e.bits, e.keys, e.n, e.out)
}

// answer lets queries go down a tree to their entries.
func (e *errand) answer(t kernel.Tree) error {
	switch e.want {
	case wantPairs:
		return e.set.Pairs(e.st, e.params, &t, e.bits, e.keys, e.n, e.out, e.found)
	case wantVals:
		return e.set.Apart(e.st, e.params, &t, e.bits, e.vals, e.keys, e.n, e.out, e.found)
	case wantPlaces:
		return e.set.Find(e.st, e.params, &t, e.bits, e.keys, e.n, e.out)
	}
	return e.set.Rank(e.st, e.params, &t, e.bits, e.keys, e.n, e.out)
}

// plainForm is implicit's tree: one kernel for all levels.
type plainForm struct {
	depth int
	tree  *kernel.Tree
}

func (f *plainForm) sources() []kernel.Source { return nil }
func (f *plainForm) favor(st device.Stream)   { kernel.Favor(st, f.tree) }

func (f *plainForm) place(tree *kernel.Tree, _ device.Ptr) error {
	f.tree = tree
	return nil
}

func (f *plainForm) launch(e *errand) error {
	if e.to <= f.depth {
		return e.down(e.enters(*f.tree))
	}
	return e.answer(e.enters(*f.tree))
}

// blockedForm is rows of pages above implicit's leaves: a kernel goes through
// the rows, another looks at the leaves.
type blockedForm struct {
	image  *Image
	bits   int
	leaves *kernel.Tree
	rows   kernel.Blocked
}

func (f *blockedForm) sources() []kernel.Source { return []kernel.Source{kernel.BlockedSource} }
func (f *blockedForm) favor(st device.Stream)   { kernel.FavorBlocked(st, &f.rows) }

func (f *blockedForm) place(leaves *kernel.Tree, base device.Ptr) (err error) {
	f.leaves = leaves
	f.rows, err = kernel.NewBlocked(f.image.Rows, f.bits, f.image.Tree, base)
	return err
}

func (f *blockedForm) launch(e *errand) error {
	depth := len(f.image.Rows)
	if e.to <= depth {
		return f.down(e, e.to, e.out)
	}
	if !e.begins || e.from < depth {
		if err := f.down(e, depth, e.nodes); err != nil {
			return err
		}
	}
	t := *f.leaves
	t.Start = e.nodes
	return e.answer(t)
}

// down takes queries to a row, or behind the last to their leaves.
func (f *blockedForm) down(e *errand, to int, nodes device.Ptr) error {
	t := f.rows
	t.To = uint32(to)
	if e.begins {
		t.Start, t.From, t.Deep = e.nodes, uint32(e.from), uint32(e.deep)
	}
	return e.set.BlockedDown(e.st, e.params, &t, e.bits, e.keys, e.n, nodes)
}

// packedForm is pages below an implicit tree of their greatest keys: ranks in
// that tree are the numbers of pages.
type packedForm struct {
	image  *Image
	top    *kernel.Tree
	pages  kernel.Packed
	column device.Ptr
}

func (f *packedForm) sources() []kernel.Source { return []kernel.Source{kernel.BlockedSource} }
func (f *packedForm) favor(st device.Stream)   { kernel.Favor(st, f.top) }

func (f *packedForm) place(top *kernel.Tree, base device.Ptr) (err error) {
	p := f.image.Pages
	f.top, f.column = top, top.Vals
	f.pages, err = kernel.NewPacked(base+device.Ptr(p.Table), base+device.Ptr(p.Words), p.Count, p.End, p.Entries)
	return err
}

func (f *packedForm) launch(e *errand) error {
	depth := f.image.depth()
	switch {
	case e.to < depth:
		return e.down(e.enters(*f.top))
	case e.to == depth:
		return f.enter(e, e.out)
	}
	if err := f.enter(e, e.nodes); err != nil {
		return err
	}
	if e.want == wantRanks {
		return e.set.PackedRank(e.st, e.params, &f.pages, e.bits, e.keys, e.n, e.nodes, e.out)
	}
	places := e.out
	if e.want == wantVals {
		places = e.nodes
	}
	err := e.set.PackedFind(e.st, e.params, &f.pages, e.bits, e.keys, e.n, e.nodes, places)
	if err != nil || e.want == wantPlaces {
		return err
	}
	return e.set.Gather(e.st, e.params, e.vals, f.column, e.n, places, e.out, e.found)
}

// enter takes queries to their pages. Those that have come there already are
// the first of the errand, or all.
func (f *packedForm) enter(e *errand, pages device.Ptr) error {
	depth, there := f.image.depth(), 0
	rest := *e
	if e.begins && e.from+1 >= depth {
		if there = e.deep; e.from == depth {
			there = e.n
		}
		rest.deep = 0
	}
	if there > 0 && pages != e.nodes {
		if err := e.st.CopyDevice(pages, e.nodes, 4*there); err != nil {
			return err
		}
	}
	if there == e.n {
		return nil
	}
	rest.nodes += device.Ptr(4 * there)
	t := rest.enters(*f.top)
	t.Count = f.pages.Last // ranks are cut to it
	return e.set.Rank(e.st, e.params, &t, e.bits, e.keys+device.Ptr(there*e.bits/8), e.n-there, pages+device.Ptr(4*there))
}
