package cuart

import (
	"errors"
	"sync/atomic"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/par"
)

// Port is where strings of host memory meet a tree. Its searches may be called at the
// same time as each other.
type Port struct {
	tree    *Tree
	workers int
	// Tile lets a tile of four lanes take a key, or else a thread.
	Tile bool
	// Bucket is the most strings that travel together of those that a device reads
	// where they are; 0 is a default. For experiments.
	Bucket int
	flow.Schedule[bucket]
	jobs par.Pool[finding]
	down atomic.Pointer[error]

	cargos    [2]cargo // of changes: one travels while the operations of the other are done
	ferry     ferry
	leastPart int  // operations that travel alone at least
	Old, Had  Span // results of changes, as Results makes them
}

// bucket is strings under way.
type bucket struct{ packing.Bucket }

// Strings that a device reads where they are travel up to sharedStrings together, and
// sharedBytes: the host does not gather them, and a bucket costs some 20 to 50 µs in
// the driver, whatever its size (docs/gpu.md). On an H200, 256K strings of 8 bytes
// are faster than more or fewer. There are sharedLanes slots for them.
const (
	sharedStrings = 256 << 10
	sharedBytes   = 16 << 20
	sharedLanes   = 2 * flow.MaxFlight
)

// NewPort returns a port of a tree, with the given number of workers.
func NewPort(t *Tree, workers int) *Port {
	p := &Port{tree: t, workers: max(1, workers), Tile: true, jobs: par.NewPool[finding](), leastPart: leastPart}
	p.Slots.Init(t.dev, flow.MaxLanes, func(device.Stream) {})
	p.Schedule.Down = func() bool { return p.down.Load() != nil }
	p.Schedule.Fail = func(err error) { p.down.CompareAndSwap(nil, &err) }
	return p
}

// Down returns the device's error, or nil.
func (p *Port) Down() error {
	if e := p.down.Load(); e != nil {
		return *e
	}
	return nil
}

// Queries is strings to be looked up.
type Queries struct {
	Keys packing.Strings
	// Take gets the results of strings from lo on: their values, as the tree has them,
	// and a bit each, the lowest first. lo is a multiple of 8. Several goroutines call
	// it.
	Take func(lo int, vals, found []byte)
	// Into, unless nil, is page-locked memory for all values: they are copied there by
	// the device, and Take finds them there.
	Into []byte
	// CPU answers strings [lo, hi) that have found no room in a bucket, or are longer
	// than the tree's.
	CPU func(lo, hi int)
}

// Find looks strings up. Where the device fails, the CPU answers; Down says so. The
// tree must not change meanwhile.
func (p *Port) Find(q Queries) {
	n := q.Keys.Len()
	if n == 0 {
		return
	}
	j := par.Get(p.jobs)
	j.Queries, j.port = q, p
	workers := min(max(n/packing.MinStrings, 1), p.workers)
	limits, lanes := packing.Gathered, workers
	if q.Keys.Shared() {
		limits = packing.Limits{Strings: sharedStrings, Bytes: sharedBytes}
		if p.Bucket > 0 {
			limits.Strings = p.Bucket
		}
		lanes = min(lanes, sharedLanes)
	}
	limits.Longest = p.tree.longest
	j.pack.Begin(q.Keys, false, limits)
	j.pack.Even = true
	j.flow.Run(&p.Schedule, j, flow.Batch{
		Workers: workers, Overlap: flow.DoubleBuffered, Lanes: lanes,
		In: j.pack.In(), Out: p.bitsAt(j.pack.Room) + (j.pack.Room+31)/32*4,
	})
	j.Queries, j.port, j.pack = Queries{}, nil, packing.Packer{} // the caller's slices are not a pool's to keep
	par.Put(p.jobs, j)
}

// bitsAt returns where bits of n strings begin: behind their values.
func (p *Port) bitsAt(n int) int { return device.Aligned(n * p.tree.run.Bits / 8) }

// finding is strings being looked up.
type finding struct {
	Queries
	port *Port
	flow flow.Flow[bucket]
	pack packing.Packer
}

func (j *finding) Cut(s *flow.Slot[bucket]) (pieces int, ok bool) {
	pieces, ok = j.pack.Cut(&s.Bucket.Bucket)
	s.Queries = s.Bucket.Hi - s.Bucket.Lo
	return pieces, ok
}

func (j *finding) Fill(s *flow.Slot[bucket], _ int) { j.pack.Pack(&s.Bucket.Bucket, s.In) }

func (j *finding) Send(s *flow.Slot[bucket], st device.Stream) error {
	b, p := &s.Bucket, j.port
	if b.Packed == 0 {
		return nil
	}
	at, err := j.pack.CopyIn(&b.Bucket, st, s.DevIn, s.In)
	if err != nil {
		return err
	}
	n, bits := b.Packed, p.bitsAt(b.Packed)
	keys := kernel.StringKeys{Bytes: at, Offsets: s.DevIn, N: uint32(n)}
	if b.Width > 0 {
		keys.Offsets, keys.Width = 0, uint32(b.Width)
	}
	if err := p.tree.Find(st, keys, p.Tile, s.DevOut, s.DevOut+device.Ptr(bits)); err != nil {
		return err
	}
	end := bits + (n+31)/32*4
	if j.Into == nil {
		return st.CopyOut(s.Out[:end], s.DevOut)
	}
	if err := st.CopyOut(j.column(s, 0, n), s.DevOut); err != nil {
		return err
	}
	return st.CopyOut(s.Out[bits:end], s.DevOut+device.Ptr(bits))
}

// column returns where values of strings [lo, hi) of a bucket come to.
func (j *finding) column(s *flow.Slot[bucket], lo, hi int) []byte {
	width := j.port.tree.run.Bits / 8
	if first := s.Bucket.Lo; j.Into != nil {
		return j.Into[(first+lo)*width : (first+hi)*width]
	}
	return s.Out[lo*width : hi*width]
}

// endPiece is the number of answers that a worker hands out at a time.
const endPiece = 16 << 10

func (j *finding) Ends(s *flow.Slot[bucket]) int { return (s.Queries + endPiece - 1) / endPiece }

// Finish hands answers out. Those of strings that are too long are the CPU's.
func (j *finding) Finish(s *flow.Slot[bucket], piece int) {
	b, p := &s.Bucket, j.port
	lo, hi := piece*endPiece, min((piece+1)*endPiece, s.Queries)
	known := min(max(b.Packed, lo), hi)
	if s.Err != nil {
		known = lo
	}
	if lo < known {
		bits := s.Out[p.bitsAt(b.Packed):]
		long := j.long(b, lo, known)
		for _, i := range long { // another string was looked for
			bits[i/8] &^= 1 << (i % 8)
		}
		j.Take(b.Lo+lo, j.column(s, lo, known), bits[lo/8:(known+7)/8])
		for _, i := range long {
			j.CPU(b.Lo+i, b.Lo+i+1)
		}
	}
	if known < hi {
		j.CPU(b.Lo+known, b.Lo+hi)
	}
}

// long returns which strings of a bucket are too long.
func (j *finding) long(b *bucket, lo, hi int) (all []int) {
	longest := j.port.tree.longest
	if b.Longest <= longest {
		return nil
	}
	for i := lo; i < hi; i++ {
		if len(j.Keys.At(b.Lo+i)) > longest {
			all = append(all, i)
		}
	}
	return all
}

func (j *finding) Done(*flow.Slot[bucket])      {}
func (j *finding) Rest()                        { j.CPU(j.pack.Next, j.pack.Last) }
func (j *finding) Spare() (lo, hi int, ok bool) { return 0, 0, false }
func (j *finding) Answer(lo, hi int)            {}

// Cargo returns device memory for the operations of a batch, until the next is asked for.
func (p *Port) Cargo(bytes int) (device.Ptr, error) {
	to := &p.cargos[0].bytes
	err := to.ensure(p.tree.dev, bytes, false)
	return to.At, err
}

// Results makes room for the results of n changes.
func (p *Port) Results(n int) error {
	dev := p.tree.dev
	return errors.Join(p.Old.ensure(dev, n*p.tree.ValBytes(), true), p.Had.ensure(dev, n, true))
}

// Close gives the port's memory back, but for slots, which are the device's.
func (p *Port) Close() error {
	p.Slots.Close()
	dev := p.tree.dev
	err := errors.Join(p.ferry.close(), p.Old.free(dev), p.Had.free(dev))
	for i := range p.cargos {
		err = errors.Join(err, p.cargos[i].free(dev))
	}
	return err
}
