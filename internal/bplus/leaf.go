package bplus

import (
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// run is entries in key order.
type run[C Code] struct{ keys, vals []C }

func (r *run[C]) clear() { r.keys, r.vals = r.keys[:0], r.vals[:0] }

func (r *run[C]) add(key, val C) {
	r.keys, r.vals = append(r.keys, key), append(r.vals, val)
}

// insert puts an entry at its place. Its key must not be there.
func (r *run[C]) insert(key, val C) {
	i, _ := slices.BinarySearch(r.keys, key)
	r.keys, r.vals = slices.Insert(r.keys, i, key), slices.Insert(r.vals, i, val)
}

// lineRange returns the separators around line j: its keys are above lo, unless
// it has no bound there, and up to hi.
func (l leaf[C]) lineRange(j int) (lo C, bounded bool, hi C) {
	seps := l.seps()
	if j > 0 {
		return seps[j-1], true, seps[j]
	}
	in := l.info()
	return C(in.low), in.first == 0, seps[0]
}

// entriesIn returns the number of entries in a line whose keys are ks.
func entriesIn[C Code](ks []C, lo C, bounded bool, hi C) int {
	if bounded && ks[0] <= lo || ks[0] > hi {
		return 0
	}
	n := 1
	for i := 1; i < len(ks); i++ {
		if ks[i] != ks[i-1] {
			n++
		}
	}
	return n
}

// insertIn puts an entry into a line with m entries that has room for it and
// not its key.
func insertIn[C Code](line []C, m int, key, val C) {
	half := len(line) / 2
	ks, vs := line[:half], line[half:]
	if m == 0 {
		fillLine(line, key, val)
		return
	}
	at := m
	for ; at > 0 && ks[at-1] > key; at-- { // a line is too short for copy to pay
		ks[at], vs[at] = ks[at-1], vs[at-1]
	}
	ks[at], vs[at] = key, val
	pad(ks, vs, m+1)
}

// removeFrom takes entry at out of a line with m entries. Without an entry the
// line holds empty.
func removeFrom[C Code](line []C, m, at int, empty C) {
	half := len(line) / 2
	ks, vs := line[:half], line[half:]
	if m == 1 {
		fillLine(line, empty, 0)
		return
	}
	for i := at + 1; i < m; i++ {
		ks[i-1], vs[i-1] = ks[i], vs[i]
	}
	pad(ks, vs, m-1)
}

// pad repeats the last of m entries.
func pad[C Code](ks, vs []C, m int) {
	for i := m; i < len(ks); i++ {
		ks[i], vs[i] = ks[m-1], vs[m-1]
	}
}

// fillLine sets all of a line to one pair.
func fillLine[C Code](line []C, key, val C) {
	half := len(line) / 2
	for i := range half {
		line[i], line[half+i] = key, val
	}
}

// outside returns a key that cannot be in a line.
func outside[C Code](lo C, bounded bool, hi C) C {
	if hi != ^C(0) {
		return hi + 1
	}
	return lo // bounded: only the first line of a first leaf is not, and that ends below the maximum
}

// unpack appends the entries of a leaf to a run. Of a leaf that changes
// meanwhile it makes nonsense, but not more entries than a leaf has.
func (l leaf[C]) unpack(r *run[C]) {
	n, room := len(r.keys), simd.RegularRoom[C]()
	keys, vals := slices.Grow(r.keys, room)[:n+room], slices.Grow(r.vals, room)[:n+room]
	n += l.unpackInto(keys[n:], vals[n:])
	r.keys, r.vals = keys[:n], vals[:n]
}

// unpackInto is unpack to slices with room for a leaf; keys may be nil.
func (l leaf[C]) unpackInto(keys, vals []C) int {
	in := l.info()
	return simd.UnpackRegular(l.pilot, l.block, C(in.low), in.first == 0, keys, vals)
}

// unpackLines is unpackInto for lines [first, end) alone.
func (l leaf[C]) unpackLines(first, end int, keys, vals []C) int {
	low, bounded := C(0), false
	if first == 0 { // else the info's line is not needed
		in := l.info()
		low, bounded = C(in.low), in.first == 0
	}
	return simd.UnpackLines(l.pilot, l.block, low, bounded, first, end, keys, vals)
}

// pack writes entries to a leaf, spread evenly over its lines: the line of
// entry i is i·64/n. The leaf's info is there; its high key is given.
func (l leaf[C]) pack(r run[C], high C) {
	if len(r.keys) >= lines && l.info().first == 0 { // no line is special
		l.info().full = simd.PackRegular(l.pilot, l.block, r.keys, r.vals, high)
		setIndex[C](l.pilot)
		return
	}
	p := l.packing(r, high)
	for n, j := len(r.keys), 0; j < lines; j++ {
		p.line(j, (j+1)*n/lines)
	}
	p.end()
}

// packLeft writes entries to a leaf in full lines from the left, so that the
// lines behind are free for keys above.
func (l leaf[C]) packLeft(r run[C], high C) {
	p := l.packing(r, high)
	n, j := len(r.keys), 0
	for ; j < lines && (j == 0 || p.lo != high); j++ {
		p.line(j, min((j+1)*linePairs[C](), n))
	}
	if j < lines { // from here on all lines are alike, without entries
		p.line(j, n)
		seps, empty := l.seps(), l.line(j)
		for j++; j < lines; j++ {
			seps[j] = high
			copy(l.line(j), empty)
		}
	}
	p.end()
}

// packing is entries on their way into the lines of a leaf.
type packing[C Code] struct {
	leaf[C]
	run[C]
	high    C // of the leaf
	done    int
	lo      C // keys of the next line are above
	bounded bool
	full    uint64
}

func (l leaf[C]) packing(r run[C], high C) packing[C] {
	p := packing[C]{leaf: l, run: r, high: high, lo: C(l.info().low), bounded: l.info().first == 0}
	if !p.bounded {
		p.lo = 0 // the first line of a first leaf can always hold 0
	}
	return p
}

// line writes the entries up to number to. The line of the last entry, and all
// behind it, end with the leaf's high key.
func (p *packing[C]) line(j, to int) {
	from, half := p.done, linePairs[C]()
	unbounded := !p.bounded && j == 0 // ends below the maximum: see outside
	if unbounded {
		to = min(to, len(p.keys)-1)
		if len(p.keys) > 0 && p.keys[0] == 0 {
			to = max(to, 1) // 0 can be nowhere else
		}
	}
	to = max(from, to)
	hi := p.lo
	if to == len(p.keys) && !unbounded {
		hi = p.high
	} else if to > from {
		hi = p.keys[to-1]
	}
	line := p.leaf.line(j)
	if to > from {
		keys, vals := p.keys[from:to], p.vals[from:to]
		for i := range half {
			at := min(i, len(keys)-1)
			line[i], line[half+i] = keys[at], vals[at]
		}
	} else {
		fillLine(line, outside(p.lo, !unbounded, hi), 0)
	}
	if to-from == half {
		p.full |= 1 << j
	}
	p.seps()[j], p.lo, p.done = hi, hi, to
}

// end writes the parts of a leaf that follow from its lines.
func (p *packing[C]) end() {
	p.info().full = p.full
	setIndex[C](p.pilot)
}

// scratch is the memory that a goroutine needs to change a leaf: copies of
// leaves and entries.
type scratch[C Code] struct {
	memory []uint64
	copy   leaf[C]
	run    run[C]
	more   run[C]
	room   simd.MergeRoom[C]
}

// ready makes scratch memory usable, which is done once.
func (s *scratch[C]) ready() *scratch[C] {
	if s.memory != nil {
		return s
	}
	s.memory = make([]uint64, (simd.RegularBlock+simd.RegularPilot[C]()+simd.LineBytes)/8)
	at := unsafe.Pointer(&s.memory[0])
	at = unsafe.Add(at, -uintptr(at)%simd.LineBytes)
	s.copy = leaf[C]{pilot: unsafe.Add(at, simd.RegularBlock), block: at}
	room := simd.RegularRoom[C]() + linePairs[C]() // a leaf and one entry more, and the line that is read behind them
	s.run = run[C]{make([]C, 0, room), make([]C, 0, room)}
	return s
}

// load copies a leaf.
func (s *scratch[C]) load(l leaf[C]) {
	s.loadPilot(l)
	copy(unsafe.Slice((*uint64)(s.copy.block), simd.RegularBlock/8), unsafe.Slice((*uint64)(l.block), simd.RegularBlock/8))
}

// loadPilot copies a leaf's pilot.
func (s *scratch[C]) loadPilot(l leaf[C]) {
	n := simd.RegularPilot[C]() / 8
	copy(unsafe.Slice((*uint64)(s.copy.pilot), n), unsafe.Slice((*uint64)(l.pilot), n))
}

// loadPart copies lines [first, last) of a leaf, the separators around them,
// and the other parts of the pilot that a change of these needs.
func (s *scratch[C]) loadPart(l leaf[C], first, last int) {
	for j := first; j < last; j++ {
		copy(s.copy.line(j), l.line(j))
	}
	perLine := simd.LineBytes / width[C]()
	copyLine(s.copy.pilot, l.pilot)
	copyLine(unsafe.Pointer(s.copy.info()), unsafe.Pointer(l.info()))
	for i := max(first-1, 0) / perLine; i <= (last-1)/perLine; i++ {
		copyLine(s.copy.sepLine(i), l.sepLine(i))
	}
}

func copyLine(dst, src unsafe.Pointer) {
	*(*[simd.LineBytes / 8]uint64)(dst) = *(*[simd.LineBytes / 8]uint64)(src)
}
