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
	at := 0
	for at < m && ks[at] < key {
		at++
	}
	copy(ks[at+1:m+1], ks[at:m])
	copy(vs[at+1:m+1], vs[at:m])
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
	copy(ks[at:m-1], ks[at+1:m])
	copy(vs[at:m-1], vs[at+1:m])
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
	seps, in, half := l.seps(), l.info(), linePairs[C]()
	lo, bounded := C(in.low), in.first == 0
	for j := range lines {
		hi, line := seps[j], l.line(j)
		if k := line[0]; (!bounded || k > lo) && k <= hi {
			r.add(k, line[half])
			for i := 1; i < half; i++ {
				if line[i] != line[i-1] {
					r.add(line[i], line[half+i])
				}
			}
		}
		lo, bounded = hi, true
	}
}

// pack writes entries to a leaf, spread evenly over its lines: the line of
// entry i is i·64/n, so that the last entry is in the last line. The leaf's info
// is there; its high key is given.
func (l leaf[C]) pack(r run[C], high C) {
	n := len(r.keys)
	l.packLines(r, high, func(j int) (from, to int) { return j * n / lines, (j + 1) * n / lines })
}

// packLeft writes entries to a leaf in full lines from the left, and what is
// left over to the last line, so that there is room for keys above.
func (l leaf[C]) packLeft(r run[C], high C) {
	n, half := len(r.keys), linePairs[C]()
	if n == 0 {
		l.pack(r, high)
		return
	}
	l.packLines(r, high, func(j int) (from, to int) {
		if j == lines-1 {
			return min(n/half*half, n-1, (lines-1)*half), n
		}
		to = min((j+1)*half, n/half*half, n-1)
		return min(j*half, to), to
	})
}

// packLines writes entries to a leaf; part returns those of a line. The last
// line has at least one if there are any.
func (l leaf[C]) packLines(r run[C], high C, part func(j int) (from, to int)) {
	in, seps, half := l.info(), l.seps(), linePairs[C]()
	lo, bounded := C(in.low), in.first == 0
	if !bounded {
		lo = 0 // the first line of a first leaf can always hold 0
	}
	packed := 0
	for j := range lines {
		from, to := part(j)
		from = max(from, packed)
		if !bounded && j == 0 && to == 0 && len(r.keys) > 0 && r.keys[0] == 0 {
			to = 1 // 0 can be nowhere else
		}
		packed = max(to, packed)
		line, hi := l.line(j), lo
		if to > from {
			copy(line[:half], r.keys[from:to])
			copy(line[half:], r.vals[from:to])
			pad(line[:half], line[half:], to-from)
			hi = r.keys[to-1]
		}
		if j == lines-1 {
			hi = high
		}
		if to <= from {
			fillLine(line, outside(lo, bounded || j > 0, hi), 0)
		}
		seps[j], lo = hi, hi
	}
	setIndex[C](l.pilot)
}

// scratch is what a goroutine needs to change a leaf: copies of leaves and
// entries.
type scratch[C Code] struct {
	memory []uint64
	copy   leaf[C]
	run    run[C]
	more   run[C]
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
	s.run = run[C]{make([]C, 0, capacity[C]()+1), make([]C, 0, capacity[C]()+1)}
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

// loadLine copies a line of a leaf.
func (s *scratch[C]) loadLine(l leaf[C], j int) { copy(s.copy.line(j), l.line(j)) }
