package cuart

import (
	"errors"

	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/par"
)

// Desk is where strings of host memory meet a tree. Its searches may be called at the
// same time as each other.
type Desk struct {
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

	bytes, offsets, vals, kinds span // of a batch of changes
	old, had                    span // what they have found
}

// bucket is strings under way.
type bucket struct{ packing.Bucket }

// Strings that a device reads where they are travel up to sharedStrings together, and
// sharedBytes: nobody has to gather them, and a bucket costs some 20 to 50 µs in the
// driver, whatever its size (docs/gpu.md). On an H200 256K of 8 bytes are faster than
// more of them and fewer. There are so many slots for them.
const (
	sharedStrings = 256 << 10
	sharedBytes   = 16 << 20
	sharedLanes   = 2 * flow.MaxFlight
)

// NewDesk returns a desk before a tree, with so many workers.
func NewDesk(t *Tree, workers int) *Desk {
	d := &Desk{tree: t, workers: max(1, workers), Tile: true, jobs: par.NewPool[finding]()}
	d.Slots.Init(t.dev, flow.MaxLanes, func(device.Stream) {})
	d.Schedule.Down = func() bool { return d.down.Load() != nil }
	d.Schedule.Fail = func(err error) { d.down.CompareAndSwap(nil, &err) }
	return d
}

// Down returns what went wrong, or nil.
func (d *Desk) Down() error {
	if e := d.down.Load(); e != nil {
		return *e
	}
	return nil
}

// Queries is strings to be looked up.
type Queries struct {
	Keys packing.Strings
	// Take gets what strings from lo on have: their values, as the tree has them,
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
func (d *Desk) Find(q Queries) {
	n := q.Keys.Len()
	if n == 0 {
		return
	}
	j := d.jobs.Get()
	j.Queries, j.desk = q, d
	workers := min(max(n/packing.MinStrings, 1), d.workers)
	limits, lanes := packing.Gathered, workers
	if q.Keys.Shared() {
		limits = packing.Limits{Strings: sharedStrings, Bytes: sharedBytes}
		if d.Bucket > 0 {
			limits.Strings = d.Bucket
		}
		lanes = min(lanes, sharedLanes)
	}
	limits.Longest = d.tree.longest
	j.pack.Begin(q.Keys, false, limits)
	j.pack.Even = true
	j.flow.Run(&d.Schedule, j, flow.Batch{
		Workers: workers, Overlap: flow.DoubleBuffered, Lanes: lanes,
		In: j.pack.In(), Out: d.bitsAt(j.pack.Room) + (j.pack.Room+31)/32*4,
	})
	j.Queries, j.desk, j.pack = Queries{}, nil, packing.Packer{} // the caller's slices are not a pool's to keep
	d.jobs.Put(j)
}

// bitsAt returns where bits of n strings begin: behind their values.
func (d *Desk) bitsAt(n int) int { return device.Aligned(n * d.tree.run.Bits / 8) }

// finding is strings being looked up.
type finding struct {
	Queries
	desk *Desk
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
	b, d := &s.Bucket, j.desk
	if b.Packed == 0 {
		return nil
	}
	at, err := j.pack.CopyIn(&b.Bucket, st, s.DevIn, s.In)
	if err != nil {
		return err
	}
	n, bits := b.Packed, d.bitsAt(b.Packed)
	keys := kernel.StringKeys{Bytes: at, Offsets: s.DevIn, N: uint32(n)}
	if b.Width > 0 {
		keys.Offsets, keys.Width = 0, uint32(b.Width)
	}
	if err := d.tree.Find(st, keys, d.Tile, s.DevOut, s.DevOut+device.Ptr(bits)); err != nil {
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
	width := j.desk.tree.run.Bits / 8
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
	b, d := &s.Bucket, j.desk
	lo, hi := piece*endPiece, min((piece+1)*endPiece, s.Queries)
	known := min(max(b.Packed, lo), hi)
	if s.Err != nil {
		known = lo
	}
	if lo < known {
		bits := s.Out[d.bitsAt(b.Packed):]
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
	longest := j.desk.tree.longest
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

// span is memory of both sides.
type span struct {
	host []byte
	at   device.Ptr
	room int
}

// ensure makes a span so many bytes long, on the host too where that is asked for.
func (s *span) ensure(dev device.Device, bytes int, host bool) (err error) {
	if bytes > s.room {
		if err := s.free(dev); err != nil {
			return err
		}
		bytes += bytes / 4
		if s.at, err = dev.Alloc(device.Aligned(bytes)); err != nil {
			return err
		}
		s.room = bytes
	}
	if host && s.host == nil {
		s.host, err = dev.HostAlloc(device.Aligned(s.room))
	}
	return err
}

func (s *span) free(dev device.Device) (err error) {
	if s.at != 0 {
		err = dev.Free(s.at)
	}
	if s.host != nil {
		err = errors.Join(err, dev.HostFree(s.host))
	}
	*s = span{}
	return err
}

// Changes is operations of host memory, in the order in which they are to be done.
type Changes struct {
	Keys  packing.Strings
	Vals  []byte  // as the tree has values; nil where nothing is set
	Kinds []uint8 // nil where all are of one kind
	Kind  uint32
}

// mostChanges is the number of operations that are done at a time, and mostBytes that
// of their strings: so much page-locked memory is there for them.
const (
	mostChanges = 4 << 20
	mostBytes   = 256 << 20
)

// Apply does operations, a few million at a time: all of them, or those before an
// error. Nobody may search meanwhile.
func (d *Desk) Apply(c *Changes) error {
	n := c.Keys.Len()
	for lo := 0; lo < n; {
		hi := d.fitting(&c.Keys, lo, min(lo+mostChanges, n))
		if err := d.applyPart(c, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// fitting returns the end of operations from lo on whose strings find room, hi at
// most.
func (d *Desk) fitting(keys *packing.Strings, lo, hi int) int {
	if keys.Offsets != nil {
		for hi-lo > 1 && int(keys.Offsets[hi]-keys.Offsets[lo]) > mostBytes {
			hi = lo + (hi-lo)/2
		}
		return hi
	}
	for i, bytes := lo, 0; i < hi; i++ {
		if bytes += min(len(keys.At(i)), d.tree.longest+1); bytes > mostBytes && i > lo {
			return i
		}
	}
	return hi
}

// applyPart does operations [lo, hi).
func (d *Desk) applyPart(c *Changes, lo, hi int) error {
	ops := &Ops{Kind: c.Kind}
	if err := d.sendKeys(&c.Keys, lo, hi, ops); err != nil {
		return err
	}
	width, n := d.tree.run.Bits/8, hi-lo
	var err error
	if c.Vals != nil {
		ops.Vals, err = d.send(&d.vals, c.Vals[lo*width:hi*width])
	}
	if err == nil && c.Kinds != nil {
		ops.Kinds, err = d.send(&d.kinds, c.Kinds[lo:hi])
	}
	if err != nil {
		return errors.Join(err, d.tree.run.Stream.Synchronize())
	}
	ops.Keys.N = uint32(n)
	return d.tree.Apply(ops) // which waits for all copies
}

// sendKeys queues copies of strings.
func (d *Desk) sendKeys(keys *packing.Strings, lo, hi int, ops *Ops) (err error) {
	st := d.tree.run.Stream
	if keys.Offsets != nil {
		from, to := keys.Offsets[lo], keys.Offsets[hi]
		if ops.Keys.Bytes, err = d.send(&d.bytes, keys.Data[from:to]); err != nil {
			return err
		}
		ops.Keys.Bytes -= device.Ptr(from) // offsets count from the first string of the batch
		ops.Keys.Offsets, err = d.send(&d.offsets, arena.Bytes(keys.Offsets[lo:hi+1]))
		return err
	}
	total := 0
	for i := lo; i < hi; i++ {
		total += d.takes(keys.At(i))
	}
	if err := errors.Join(d.bytes.ensure(d.tree.dev, total+8, true), d.offsets.ensure(d.tree.dev, 4*(hi-lo+1), true)); err != nil {
		return err
	}
	d.gather(keys, lo, hi)
	ops.Keys.Bytes, ops.Keys.Offsets = d.bytes.at, d.offsets.at
	if total > 0 {
		err = st.CopyIn(d.bytes.at, d.bytes.host[:total])
	}
	return errors.Join(err, st.CopyIn(d.offsets.at, d.offsets.host[:4*(hi-lo+1)]))
}

// takes returns the bytes of a string that travel: of one that is too long as many as
// tell so.
func (d *Desk) takes(key string) int { return min(len(key), d.tree.longest+1) }

// gather packs strings, a part by each worker.
func (d *Desk) gather(keys *packing.Strings, lo, hi int) {
	const piece = 8 << 10
	offsets := arena.As[uint32](d.offsets.host)
	at := uint32(0)
	for i := lo; i < hi; i++ {
		offsets[i-lo] = at
		at += uint32(d.takes(keys.At(i)))
	}
	offsets[hi-lo] = at
	par.Run(d.workers, (hi-lo+piece-1)/piece, par.Func(func(p int) {
		for i := lo + p*piece; i < min(lo+(p+1)*piece, hi); i++ {
			key := keys.At(i)
			copy(d.bytes.host[offsets[i-lo]:offsets[i-lo+1]], key)
		}
	}))
}

// send queues a copy of host memory, by way of page-locked memory where it is not.
func (d *Desk) send(s *span, from []byte) (device.Ptr, error) {
	direct := device.Shared(from)
	if err := s.ensure(d.tree.dev, len(from)+8, !direct); err != nil || len(from) == 0 {
		return s.at, err
	}
	if !direct {
		copy(s.host, from)
		from = s.host[:len(from)]
	}
	return s.at, d.tree.run.Stream.CopyIn(s.at, from)
}

// Close gives the desk's memory back, but for slots, which are the device's.
func (d *Desk) Close() (err error) {
	d.Slots.Close()
	for _, s := range []*span{&d.bytes, &d.offsets, &d.vals, &d.kinds, &d.old, &d.had} {
		err = errors.Join(err, s.free(d.tree.dev))
	}
	return err
}
