package vector

import (
	"errors"
	"math"
	"math/bits"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/simd"
)

// Range is N entries, the first of them First in key order.
type Range struct{ First, N int }

// OnDevice sums up, and counts, ranges of values that lie on a device, to the same
// bits that Summarize and Histogram do. It takes memory there when it is first
// used. Its methods must not be called at the same time.
//
// Each warp sums up a unit of a range, of which parts come back; where there are
// many parts of one range, they are joined first.
type OnDevice struct {
	// Device has the values; Stream is where all work is queued.
	Device device.Device
	Stream device.Stream
	// Sums and Histograms have the kernels, which are loaded when they are needed.
	Sums, Histograms kernel.Source
	// InLeaves says that values lie in leaves of a mutable tree: it takes larger
	// units then.
	InLeaves bool

	set, bins            *kernel.Set
	room                 int // units of a launch
	parts, joined, lists device.Ptr
	host                 []byte // page-locked: lists on their way in, parts on theirs out
	params               kernel.Params

	most int // units of a launch at most; 0 is mostUnits
	unit int // integers of a unit; 0 means the usual number
}

// Launch queues a kernel of a set that works on units.
type Launch func(set *kernel.Set, v *kernel.Vectors) error

const (
	// mostUnits is the most units of a launch: two megabytes of parts.
	mostUnits = 64 << 10
	// leastUnits is the least room for units, which then doubles as needed.
	leastUnits = 256
	// binBytes is the memory of a histogram: bounds and counts.
	binBytes = (kernel.MaxBounds + 1) * 16
	// fullUnit is the most integers of a unit, and fullLeafUnit that in leaves, where a
	// unit must find its first leaf. Measured on an H200 with 64M values, experiment
	// gpu-aggregate: a column has 0.94 of cub's speed with units of 4k, 0.79 and 0.83
	// with 8k and 16k; a tree 0.74, 0.76 and 0.77. Of floats it is Block, since that is
	// how they are added.
	fullUnit     = 4 * Block
	fullLeafUnit = 16 * Block
)

// unitOf returns the number of values of a unit, in a range of n.
func (d *OnDevice) unitOf(k simd.NumberKind, n int) int {
	const manyUnits = 16 << 10 // several for each warp that a GPU has at once
	switch {
	case k.IsFloat():
		return Block
	case d.unit != 0:
		return d.unit
	case d.InLeaves:
		return leafUnit(n, d.Device.Info().Processors)
	}
	return min(max(Block, 1<<bits.Len(uint(n/manyUnits))/2), fullUnit)
}

// leafUnit returns the number of integers of a unit in leaves: the warps that a GPU
// has at once get one each, or where there are many values, as many as each other, so
// that no few of them are left for the end.
func leafUnit(n, processors int) int {
	const warps = 32 // of a multiprocessor at once, as VECTORS of vector.h has it
	slots := max(1, processors) * warps
	turns := max(1, (n+slots*fullLeafUnit-1)/(slots*fullLeafUnit))
	return max(Block, (n+slots*turns-1)/(slots*turns))
}

// JoinedParts returns how many parts of a range are joined to one: of floats as many
// as a block has, since that is how they are added; of integers fewer, so that more
// warps do it at once.
func JoinedParts(k simd.NumberKind) int {
	if k.IsFloat() {
		return Block
	}
	return Block / 4
}

// Sum sets out to the summary of each range, by launches of a kernel.
func (d *OnDevice) Sum(t Type, ranges []Range, launch Launch, out []Summary) error {
	if err := d.load(&d.set, d.Sums); err != nil {
		return err
	}
	if len(ranges) == 1 && ranges[0].N > 0 {
		return d.one(t.NumberKind, ranges[0], launch, &out[0])
	}
	return d.many(t.NumberKind, ranges, launch, out)
}

// one sums up one range.
func (d *OnDevice) one(k simd.NumberKind, r Range, launch Launch, out *Summary) error {
	unit := d.unitOf(k, r.N)
	units := (r.N + unit - 1) / unit
	if err := d.grow(units); err != nil {
		return err
	}
	all := newTally(k)
	sum := d.apart
	if d.joins(k, units) {
		sum = d.together
	}
	if err := sum(&all, r, unit, launch); err != nil {
		return err
	}
	*out = all.summary()
	return nil
}

// joins reports whether the parts of a range of the given units are joined before
// they come back: the same for all of its launches, since it is a level of its sum.
// Each launch but the last must then have as many units as whole joined parts have;
// with less room a joined part would end with the launch, and floats be added in
// another order.
func (d *OnDevice) joins(k simd.NumberKind, units int) bool {
	per := JoinedParts(k)
	return units > Block && d.room%per == 0 && units <= d.room*per
}

// apart adds the units of a range to a tally, a launch at a time.
func (d *OnDevice) apart(all *tally, r Range, unit int, launch Launch) error {
	for at := 0; at < r.N; at += d.room * unit {
		n := min(r.N-at, d.room*unit)
		u := kernel.OneRange(r.First+at, n, unit)
		got := kernel.Parts{Base: d.parts, Room: uint64(u.Units)}
		if err := launch(d.set, &kernel.Vectors{Kind: all.kind, Units: u, Parts: got}); err != nil {
			return err
		}
		if err := d.fetch(got); err != nil {
			return err
		}
		all.parts(d.host, int(got.Room), unit, n)
	}
	return nil
}

// together adds the units of a range to a tally, whose parts it joins. All launches are
// queued at once, and their results are copied out when all are done.
func (d *OnDevice) together(all *tally, r Range, unit int, launch Launch) error {
	per := JoinedParts(all.kind)
	whole := unit * per // values of a joined part
	got := kernel.Parts{Base: d.joined, Room: uint64((r.N + whole - 1) / whole)}
	for at := 0; at < r.N; at += d.room * unit {
		u := kernel.OneRange(r.First+at, min(r.N-at, d.room*unit), unit)
		parts := kernel.Parts{Base: d.parts, Room: uint64(u.Units)}
		if err := launch(d.set, &kernel.Vectors{Kind: all.kind, Units: u, Parts: parts}); err != nil {
			return err
		}
		join := kernel.OneRange(0, int(u.Units), per)
		to := kernel.Parts{Base: got.Base + device.Ptr(8*(at/whole)), Room: got.Room}
		if err := d.set.JoinParts(d.Stream, &d.params, all.kind.IsFloat(), parts, &join, to); err != nil {
			return err
		}
	}
	if err := d.fetch(got); err != nil {
		return err
	}
	all.parts(d.host, int(got.Room), whole, r.N)
	return nil
}

// fetch copies parts to host memory.
func (d *OnDevice) fetch(p kernel.Parts) error {
	if err := d.Stream.CopyOut(d.host[:int(p.Room)*kernel.PartBytes], p.Base); err != nil {
		return err
	}
	return d.Stream.Synchronize()
}

// many sums up many ranges: as many units at a time as there is room for.
func (d *OnDevice) many(k simd.NumberKind, ranges []Range, launch Launch, out []Summary) error {
	units := 0
	for _, r := range ranges {
		unit := d.unitOf(k, r.N)
		units += (r.N + unit - 1) / unit
	}
	if err := d.grow(units); err != nil {
		return err
	}
	b := unitBatch{d: d, kind: k, launch: launch, out: out}
	for i, r := range ranges {
		unit := d.unitOf(k, r.N)
		for at := 0; at < r.N; at += unit {
			if err := b.add(i, Range{r.First + at, min(unit, r.N-at)}); err != nil {
				return err
			}
		}
		if r.N == 0 {
			out[i] = Summary{}
		}
	}
	return b.end()
}

// unitBatch is units of several ranges, in their order.
type unitBatch struct {
	d      *OnDevice
	kind   simd.NumberKind
	launch Launch
	out    []Summary
	units  []Range
	of     []int // the range of each
	now    tally // of the last range that there are parts of
	last   int   // which that is
	any    bool  // there is one
}

func (b *unitBatch) add(of int, unit Range) error {
	b.units, b.of = append(b.units, unit), append(b.of, of)
	if len(b.units) < b.d.room {
		return nil
	}
	return b.send()
}

// send sums up the units that there are.
func (b *unitBatch) send() error {
	d, n := b.d, len(b.units)
	if n == 0 {
		return nil
	}
	lists := arena.As[uint32](d.host[:8*n])
	for i, u := range b.units {
		lists[i], lists[n+i] = uint32(u.First), uint32(u.N)
	}
	if err := d.Stream.CopyIn(d.lists, d.host[:8*n]); err != nil {
		return err
	}
	u := kernel.Units{First: d.lists, Count: d.lists + device.Ptr(4*n), Units: uint32(n)}
	to := kernel.Parts{Base: d.parts, Room: uint64(n)}
	if err := b.launch(d.set, &kernel.Vectors{Kind: b.kind, Units: u, Parts: to}); err != nil {
		return err
	}
	if err := d.fetch(to); err != nil {
		return err
	}
	for i, of := range b.of {
		if !b.any || of != b.last {
			b.finish()
			b.now, b.last, b.any = newTally(b.kind), of, true
		}
		b.now.part(d.host, i, n, b.units[i].N)
	}
	b.units, b.of = b.units[:0], b.of[:0]
	return nil
}

// finish notes the result of the last range.
func (b *unitBatch) finish() {
	if b.any {
		b.out[b.last] = b.now.summary()
	}
}

func (b *unitBatch) end() error {
	if err := b.send(); err != nil {
		return err
	}
	b.finish()
	return nil
}

// Histogram counts the values of a range between bounds, of which there are at most
// kernel.MaxBounds: see the function of that name.
func (d *OnDevice) Histogram(t Type, r Range, bounds []uint64, launch Launch, counts []int) error {
	clear(counts)
	if r.N == 0 {
		return nil
	}
	if err := d.load(&d.bins, d.Histograms); err != nil {
		return err
	}
	n := len(bounds)
	if err := d.grow(1); err != nil {
		return err
	}
	codes := arena.As[int64](d.host[:8*n])
	for i, b := range bounds {
		codes[i] = orderedBound(t.NumberKind, b)
	}
	bins := &kernel.Bins{Bounds: d.parts, Counts: d.parts + device.Ptr(8*n), Count: uint64(n)}
	if n > 0 {
		if err := d.Stream.CopyIn(bins.Bounds, d.host[:8*n]); err != nil {
			return err
		}
	}
	if err := d.Stream.Fill(bins.Counts, 0, 8*(n+1)); err != nil {
		return err
	}
	const unit = 8 * Block // so that adding up the bins of a block is little beside
	if err := launch(d.bins, &kernel.Vectors{Kind: t.NumberKind, Units: kernel.OneRange(r.First, r.N, unit), Bins: bins}); err != nil {
		return err
	}
	if err := d.Stream.CopyOut(d.host[:8*(n+1)], bins.Counts); err != nil {
		return err
	}
	if err := d.Stream.Synchronize(); err != nil {
		return err
	}
	for i, c := range arena.As[uint64](d.host[:8*(n+1)]) {
		counts[i] = int(c)
	}
	return nil
}

// orderedBound returns a bound as kernel.Bins has it.
func orderedBound(k simd.NumberKind, v uint64) int64 {
	if v == zero(k, true) { // -0
		v = 0
	}
	return simd.Ordered(k, v)
}

// parts takes parts of n values, per of them in each but the last.
func (t *tally) parts(from []byte, room, per, n int) {
	for i := range room {
		t.part(from, i, room, min(per, n-i*per))
	}
}

// part takes part i of room, which is of n values, as kernel.Parts has it.
func (t *tally) part(from []byte, i, room, n int) {
	p := arena.As[uint64](from)
	sum, high := p[i], p[room+i]
	t.count += n
	t.min, t.max = min(t.min, int64(p[2*room+i])), max(t.max, int64(p[3*room+i]))
	if t.kind.IsFloat() {
		t.sums = append(t.sums, math.Float64frombits(sum))
		return
	}
	t.addInteger(sum, simd.UpperWord(t.kind, sum, high, n))
}

// load makes kernels ready.
func (d *OnDevice) load(set **kernel.Set, src kernel.Source) (err error) {
	if *set == nil {
		*set, err = kernel.LoadOnly(d.Device, src)
	}
	return err
}

// grow makes room for the given units, or for as many as a launch has.
func (d *OnDevice) grow(units int) (err error) {
	if d.most == 0 {
		d.most = mostUnits
	}
	if units = min(units, d.most); units <= d.room {
		return nil
	}
	if err := d.free(); err != nil {
		return err
	}
	room := min(leastUnits, d.most)
	for room < units {
		room *= 2
	}
	bytes := max(room*kernel.PartBytes, binBytes)
	if d.parts, err = d.Device.Alloc(bytes); err != nil {
		return err
	}
	if d.joined, err = d.Device.Alloc(room * kernel.PartBytes); err != nil {
		return err
	}
	if d.lists, err = d.Device.Alloc(room * 8); err != nil {
		return err
	}
	if d.host, err = d.Device.HostAlloc(bytes); err != nil {
		return err
	}
	d.room = room
	return nil
}

// free gives memory back.
func (d *OnDevice) free() (err error) {
	for _, p := range []*device.Ptr{&d.parts, &d.joined, &d.lists} {
		if *p != 0 {
			err = errors.Join(err, d.Device.Free(*p))
			*p = 0
		}
	}
	if d.host != nil {
		err = errors.Join(err, d.Device.HostFree(d.host))
		d.host = nil
	}
	d.room = 0
	return err
}

// Close gives everything back. An OnDevice that was never used has nothing.
func (d *OnDevice) Close() (err error) {
	for _, set := range []**kernel.Set{&d.set, &d.bins} {
		if *set != nil {
			err = errors.Join(err, (*set).Unload())
			*set = nil
		}
	}
	return errors.Join(err, d.free())
}
