package twin

import (
	"errors"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
)

// StringBatch is operations as the caller has them, and where their answers go.
type StringBatch struct {
	Keys []string
	// Vals are the values to set, each as wide as the copy's values; empty where
	// values take no memory, or nothing is set.
	Vals  []byte
	Kinds []op.Kind // nil where all are of one kind
	Kind  op.Kind
	// Old and Found get the value before each operation, and whether there was one,
	// unless they are nil. Old may be the memory of Vals, and needs Found.
	Old   []byte
	Found []bool
	// Deleted, unless nil, is increased by the number of entries that were deleted; all
	// operations delete then.
	Deleted *int
}

// sets reports whether there may be values among the operations.
func (b *StringBatch) sets() bool { return b.Kinds != nil || b.Kind == op.Set }

// column returns the memory of values [lo, hi).
func column(vals []byte, width, lo, hi int) []byte {
	if len(vals) == 0 {
		return nil
	}
	return vals[lo*width : hi*width]
}

// sendPieces is how many pieces of a batch are packed before they travel, while the
// next ones are packed: 256K operations.
const sendPieces = 128

// packPiece is how many operations a worker packs at a time, usually. A run has at least
// one piece: also with the longest keys it has to be within cuart.MostBytes.
const packPiece = 2 << 10

const _ = uint(cuart.MostBytes - packPiece*(cuart.MaxKey+1))

// measured is the keys of a batch, a piece at a time.
type measured struct {
	bytes []int  // that travel
	long  []bool // whether one is too long for the GPU
	width []int  // bytes of each key that travel, where they are as many of all; else 0
}

// measure sees how long keys are.
func (f *Strings) measure(b *StringBatch) *measured {
	n := (len(b.Keys) + f.piece - 1) / f.piece
	m := &measured{make([]int, n), make([]bool, n), make([]int, n)}
	par.Run(f.opts.Workers, n, par.Func(func(p int) {
		keys := b.Keys[p*f.piece : min((p+1)*f.piece, len(b.Keys))]
		bytes, long, width := 0, false, f.port.Takes(keys[0])
		for _, k := range keys {
			takes := f.port.Takes(k)
			if bytes += takes; takes != width {
				width = 0
			}
			long = long || len(k) > f.tree.Longest()
		}
		m.bytes[p], m.long[p], m.width[p] = bytes, long, width
	}))
	return m
}

// stringPart is operations [lo, hi) of a batch, which are one run.
type stringPart struct {
	lo, hi int
	pieces []int // bytes of each
	bytes  int   // of all
	width  int   // of each key, whose offsets need not travel; 0 where they do
	layout runLayout
}

// cut returns the next part of a batch, from operation lo on, which begins a piece:
// a quarter of the log at most, but for a single piece.
func (f *Strings) cut(b *StringBatch, m *measured, lo int) *stringPart {
	width := 0
	if b.sets() {
		width = f.ValBytes()
	}
	first := lo / f.piece
	p := &stringPart{lo: lo, hi: lo, width: m.width[first]}
	for i := first; i < len(m.bytes); i++ {
		hi, bytes := min((i+1)*f.piece, len(b.Keys)), p.bytes+m.bytes[i]
		l := layOut(hi-lo, width, b.Kinds != nil, bytes)
		if i > first && (hi-lo > cuart.MostChanges || bytes > cuart.MostBytes || lockedBytes(l.end) > f.opts.Log/4) {
			break
		}
		p.hi, p.bytes, p.layout = hi, bytes, l
		if p.width != m.width[i] {
			p.width = 0
		}
		p.pieces = m.bytes[first : i+1]
	}
	return p
}

// pack sets a run to operations of a batch, and queues copies of them to the device,
// some while others are packed.
func (f *Strings) pack(b *StringBatch, p *stringPart, r *stringRun) (*cuart.Ops, error) {
	to, err := f.port.Cargo(p.layout.slots)
	if err != nil {
		return nil, err
	}
	starts, at := make([]uint32, len(p.pieces)+1), uint32(0)
	for i, bytes := range p.pieces {
		starts[i] = at
		at += uint32(bytes)
	}
	starts[len(p.pieces)] = at
	r.offsets[r.n] = at
	for first := 0; first < len(p.pieces); first += sendPieces {
		last := min(first+sendPieces, len(p.pieces))
		par.Run(f.opts.Workers, last-first, par.Func(func(i int) { f.packPiece(b, p, r, first+i, starts[first+i]) }))
		if err := f.copyPieces(p, r, first, last, starts, to); err != nil {
			return nil, err
		}
	}
	ops := &cuart.Ops{Kind: b.Kind, Keys: kernel.StringKeys{Bytes: to + device.Ptr(p.layout.bytes), Width: uint32(p.width), N: uint32(r.n)}}
	if p.width == 0 {
		ops.Keys.Offsets = to
	}
	if r.vals != nil {
		ops.Vals = to + device.Ptr(p.layout.vals)
	}
	if r.kinds != nil {
		ops.Kinds = to + device.Ptr(p.layout.kinds)
	}
	return ops, nil
}

// packPiece packs a piece of a part, whose bytes begin at start.
func (f *Strings) packPiece(b *StringBatch, p *stringPart, r *stringRun, piece int, start uint32) {
	lo := piece * f.piece
	hi, width := min(lo+f.piece, r.n), f.ValBytes()
	for i := lo; i < hi; i++ {
		key := b.Keys[p.lo+i]
		r.offsets[i] = start
		start += uint32(copy(r.bytes[start:], key[:f.port.Takes(key)]))
	}
	if r.vals != nil {
		if to := r.vals[lo*width : hi*width]; len(b.Vals) > 0 {
			copy(to, column(b.Vals, width, p.lo+lo, p.lo+hi))
		} else {
			clear(to)
		}
	}
	if r.kinds != nil {
		copy(r.kinds[lo:hi], b.Kinds[p.lo+lo:])
	}
}

// copyPieces queues copies of pieces [first, last): one where that is all there is.
func (f *Strings) copyPieces(p *stringPart, r *stringRun, first, last int, starts []uint32, to device.Ptr) error {
	lo, hi, width := first*f.piece, min(last*f.piece, r.n), f.ValBytes()
	var spans [][2]int
	switch all := first == 0 && last == len(p.pieces); {
	case all && p.width > 0:
		spans = [][2]int{{p.layout.vals, p.layout.bytes + p.bytes}}
	case all:
		spans = [][2]int{{0, p.layout.bytes + p.bytes}}
	default:
		spans = [][2]int{{p.layout.bytes + int(starts[first]), p.layout.bytes + int(starts[last])}}
		if p.width == 0 {
			offsets := [2]int{4 * lo, 4 * hi}
			if last == len(p.pieces) { // else the one behind is packed with the next
				offsets[1] += 4
			}
			spans = append(spans, offsets)
		}
		if r.vals != nil {
			spans = append(spans, [2]int{p.layout.vals + lo*width, p.layout.vals + hi*width})
		}
		if r.kinds != nil {
			spans = append(spans, [2]int{p.layout.kinds + lo, p.layout.kinds + hi})
		}
	}
	st := f.tree.Stream()
	for _, s := range spans {
		if s[0] == s[1] { // all keys are empty
			continue
		}
		if err := st.CopyIn(to+device.Ptr(s[0]), r.memory[s[0]:s[1]]); err != nil {
			return err
		}
	}
	return nil
}

// do does operations that are on the device, and fetches their order, and their
// results if the caller asks for them.
func (f *Strings) do(b *StringBatch, r *stringRun, ops *cuart.Ops) error {
	d, width := f.port, f.ValBytes()
	if b.Found != nil {
		if err := d.Results(r.n); err != nil {
			return err
		}
		ops.Old, ops.Had = d.Old.At, d.Had.At
	}
	ops.Fetch = func(slots, places device.Ptr) error {
		st := f.tree.Stream()
		err := errors.Join(st.CopyOut(arena.Bytes(r.slots), slots), st.CopyOut(arena.Bytes(r.ops), places))
		if b.Found != nil {
			err = errors.Join(err, st.CopyOut(d.Had.Host[:r.n], d.Had.At))
		}
		if b.Old != nil {
			err = errors.Join(err, st.CopyOut(d.Old.Host[:r.n*width], d.Old.At))
		}
		return err
	}
	if err := f.tree.Apply(ops); err != nil {
		return err
	}
	r.place = f.tree.Place()
	return nil
}

// handOut hands out the results of a part's operations.
func (f *Strings) handOut(b *StringBatch, p *stringPart) {
	if b.Found == nil {
		return
	}
	n, width, found := p.hi-p.lo, f.ValBytes(), arena.Bytes(b.Found)
	par.Run(f.opts.Workers, len(p.pieces), par.Func(func(i int) {
		lo, hi := i*f.piece, min((i+1)*f.piece, n)
		copy(found[p.lo+lo:p.lo+hi], f.port.Had.Host[lo:hi])
		copy(column(b.Old, width, p.lo+lo, p.lo+hi), f.port.Old.Host[lo*width:])
	}))
}
