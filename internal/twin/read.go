package twin

import (
	"encoding/binary"
	"sort"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
)

// Rank sets ranks to the number of entries below each key, or up to it where
// after is true, and reports whether the GPU could.
func (t *Twin[C]) Rank(keys []C, after bool, ranks []int) bool {
	return t.read(func() error { return t.gpu.ranks(t.gpu.tree, keys, after, ranks) })
}

// Ranges reads the entries from lo[i] to hi[i] for each i, limit of them at most
// where that is above 0. It sets offsets, of which there is one more, asks room
// for memory for all entries, fills it, and reports whether the GPU could. All
// ranges are read at one moment.
func (t *Twin[C]) Ranges(lo, hi []C, limit int, offsets []int, room func(n int) (keys, vals []C)) bool {
	return t.read(func() error { return t.gpu.ranges(t.gpu.tree, lo, hi, limit, offsets, room) })
}

// read runs f with the GPU up to date, and reports whether it could.
func (t *Twin[C]) read(f func() error) bool {
	if !t.Works() {
		return false
	}
	t.gpu.Lock()
	defer t.gpu.Unlock()
	if !t.Works() {
		return false
	}
	err := t.Renew()
	if err == nil {
		err = f()
	}
	if err != nil {
		t.Fail(err)
	}
	return err == nil
}

// ranks sets ranks to the number of entries below each key, or up to it where
// after is true.
func (g *onDevice[C]) ranks(v version, keys []C, after bool, ranks []int) error {
	for lo := 0; lo < len(keys); lo += stageOps {
		hi := min(lo+stageOps, len(keys))
		if err := g.ranksOf(v, keys[lo:hi], after, ranks[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// ranksOf is ranks for few keys.
func (g *onDevice[C]) ranksOf(v version, keys []C, after bool, ranks []int) error {
	in, err := g.buffer(keysBuffer, stageOps*sizeOf[C]())
	if err != nil {
		return err
	}
	out, err := g.buffer(valsBuffer, stageOps*sizeOf[C]())
	if err != nil {
		return err
	}
	stage, err := g.stage()
	if err != nil {
		return err
	}
	n, st := len(keys), g.tree.Stream()
	copy(arena.As[C](stage[:n*sizeOf[C]()]), keys)
	if err := st.CopyIn(in, stage[:n*sizeOf[C]()]); err != nil {
		return err
	}
	if err := v.Rank(in, n, after, out); err != nil {
		return err
	}
	got := stage[stageOps*sizeOf[C]():][:4*n]
	if err := st.CopyOut(got, out); err != nil {
		return err
	}
	if err := st.Synchronize(); err != nil {
		return err
	}
	for i := range ranks {
		ranks[i] = int(binary.LittleEndian.Uint32(got[4*i:]))
	}
	return nil
}

// ranges reads many ranges: see Twin.Ranges.
func (g *onDevice[C]) ranges(v version, lo, hi []C, limit int, offsets []int, room func(n int) (keys, vals []C)) error {
	first, end := make([]int, len(lo)), make([]int, len(lo))
	if err := g.ranks(v, lo, false, first); err != nil {
		return err
	}
	if err := g.ranks(v, hi, true, end); err != nil {
		return err
	}
	offsets[0] = 0
	for i := range first {
		n := max(0, end[i]-first[i])
		if limit > 0 {
			n = min(n, limit)
		}
		offsets[i+1] = offsets[i] + n
	}
	keys, vals := room(offsets[len(lo)])
	return g.runs(v, first, offsets, keys, vals)
}

// runs copies runs of entries out: run r begins with entry first[r], and goes to
// keys and vals from offsets[r] on, up to the next.
func (g *onDevice[C]) runs(v version, first, offsets []int, keys, vals []C) error {
	for at := 0; at < len(keys); {
		// As many entries as travel at a time: of the run that at is in, and of those
		// that follow.
		r := sort.SearchInts(offsets, at+1) - 1
		n := min(stageOps, len(keys)-at)
		last := sort.SearchInts(offsets, at+n) // behind the last run
		last = min(last, r+runsAtOnce)
		n = min(n, offsets[last]-at)
		if err := g.someRuns(v, first[r:last], offsets[r:last], at, keys[at:at+n], vals[at:at+n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// runsAtOnce is the number of runs that travel at a time.
const runsAtOnce = stageOps / 8

// someRuns copies entries of a few runs: those from number at on.
func (g *onDevice[C]) someRuns(v version, first, offsets []int, at int, keys, vals []C) error {
	ks, err := g.buffer(keysBuffer, stageOps*sizeOf[C]())
	if err != nil {
		return err
	}
	vs, err := g.buffer(valsBuffer, stageOps*sizeOf[C]())
	if err != nil {
		return err
	}
	runs, err := g.buffer(runsBuffer, stageOps)
	if err != nil {
		return err
	}
	stage, err := g.stage()
	if err != nil {
		return err
	}
	n, m, st := len(keys), len(first), g.tree.Stream()
	bytes := n * sizeOf[C]()
	lists, rest := stage[:8*m], stage[stageOps:]
	for i := range first { // the first run may have begun before
		skip := max(0, at-offsets[i])
		binary.LittleEndian.PutUint32(lists[4*i:], uint32(first[i]+skip))
		binary.LittleEndian.PutUint32(lists[4*(m+i):], uint32(offsets[i]+skip-at))
	}
	if err := st.CopyIn(runs, lists); err != nil {
		return err
	}
	if err := v.Entries(runs, runs+device.Ptr(4*m), m, n, ks, vs); err != nil {
		return err
	}
	if err := st.CopyOut(rest[:bytes], ks); err != nil {
		return err
	}
	if err := st.CopyOut(rest[bytes:2*bytes], vs); err != nil {
		return err
	}
	if err := st.Synchronize(); err != nil {
		return err
	}
	copy(keys, arena.As[C](rest[:bytes]))
	copy(vals, arena.As[C](rest[bytes:2*bytes]))
	return nil
}
