package devices_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// frozenModel is a snapshot, and what it should have.
type frozenModel struct {
	t    testing.TB
	snap *pando.Frozen[uint64, uint64]
	has  map[uint64]uint64
	rng  *rand.Rand
}

func (m *treeModel) snapshot() *frozenModel {
	return &frozenModel{m.t, m.tree.Snapshot(), maps.Clone(m.has), m.rng}
}

// check compares everything that a snapshot answers.
func (f *frozenModel) check() {
	f.t.Helper()
	all := slices.Sorted(maps.Keys(f.has))
	if f.snap.Len() != len(all) {
		f.t.Fatalf("Len %d, want %d", f.snap.Len(), len(all))
	}
	i := 0
	for k, v := range f.snap.All() {
		if i >= len(all) || k != all[i] || v != f.has[k] {
			f.t.Fatalf("entry %d is %d → %d", i, k, v)
		}
		i++
	}
	f.checkBatches(all)
	f.checkRanges(all)
	if len(all) == 0 {
		return
	}
	at := f.rng.IntN(len(all))
	if k, v := f.snap.At(at); k != all[at] || v != f.has[k] || f.snap.Rank(k) != at {
		f.t.Fatalf("entry %d is %d → %d, rank %d", at, k, v, f.snap.Rank(k))
	}
	if v, ok := f.snap.Get(all[at]); !ok || v != f.has[all[at]] {
		f.t.Fatalf("Get(%d): %d, %t", all[at], v, ok)
	}
}

// keys draws keys that are there, and others.
func (f *frozenModel) keys(all []uint64) []uint64 {
	keys := make([]uint64, 1+f.rng.IntN(300))
	for i := range keys {
		keys[i] = f.rng.Uint64N(4000) * 0x123456789
		if len(all) > 0 && f.rng.IntN(2) == 0 {
			keys[i] = all[f.rng.IntN(len(all))]
		}
	}
	return keys
}

func (f *frozenModel) checkBatches(all []uint64) {
	f.t.Helper()
	keys := f.keys(all)
	vals, found, ranks := make([]uint64, len(keys)), make([]bool, len(keys)), make([]int, len(keys))
	hits := f.snap.GetBatch(keys, vals, found)
	f.snap.RankBatch(keys, ranks)
	for i, k := range keys {
		v, ok := f.has[k]
		rank, _ := slices.BinarySearch(all, k)
		if vals[i] != v || found[i] != ok || ranks[i] != rank {
			f.t.Fatalf("key %d is %d, %t, rank %d, want %d, %t, %d", k, vals[i], found[i], ranks[i], v, ok, rank)
		}
		if ok {
			hits--
		}
	}
	if hits != 0 {
		f.t.Fatalf("%d hits too many", hits)
	}
}

func (f *frozenModel) checkRanges(all []uint64) {
	f.t.Helper()
	lo := f.keys(all)
	hi, counts := slices.Clone(lo), make([]int, len(lo))
	for i := range hi {
		hi[i] += f.rng.Uint64N(30)*0x123456789 - 1
	}
	f.snap.CountBatch(lo, hi, counts)
	r := f.snap.RangeBatch(lo, hi, 3)
	for i := range lo {
		first, _ := slices.BinarySearch(all, lo[i])
		end, there := slices.BinarySearch(all, hi[i])
		if there {
			end++
		}
		want := all[first:max(first, end)]
		if counts[i] != len(want) {
			f.t.Fatalf("%d entries from %d to %d, want %d", counts[i], lo[i], hi[i], len(want))
		}
		want = want[:min(3, len(want))]
		if got := r.Keys[r.Offsets[i]:r.Offsets[i+1]]; !slices.Equal(got, want) {
			f.t.Fatalf("range %d to %d is %d, want %d", lo[i], hi[i], got, want)
		}
		for j, k := range want {
			if v := r.Vals[r.Offsets[i]+j]; v != f.has[k] {
				f.t.Fatalf("range: key %d has %d, want %d", k, v, f.has[k])
			}
		}
	}
}

// Snapshots of a tree on a GPU stay as they were, whatever is done to the tree,
// and whichever of them is closed first; also after the tree was closed.
func TestSnapshotsOfATreeOnGPU(t *testing.T)      { testSnapshots(t) }
func TestSnapshotsOfATreeOnGPUAlone(t *testing.T) { testSnapshots(t, pando.DeviceOnly()) }

func testSnapshots(t *testing.T, opts ...pando.Option) {
	first := seed.Of(t)
	indextest.Interpreted(t, first)
	m := newTreeModel(t, rand.New(rand.NewPCG(first, 5)), opts...)
	var taken []*frozenModel
	taken = append(taken, m.snapshot()) // of an empty tree
	steps := 24
	if !seed.Long() {
		steps = 12
	}
	for range steps {
		m.step()
		if m.rng.IntN(3) == 0 {
			taken = append(taken, m.snapshot())
		}
		if len(taken) == 0 {
			continue
		}
		i := m.rng.IntN(len(taken))
		taken[i].check()
		if m.rng.IntN(4) == 0 {
			taken[i].snap.Close()
			taken = slices.Delete(taken, i, i+1)
		}
	}
	taken = append(taken, m.snapshot())
	m.read()
	m.tree.Close()
	for _, f := range taken {
		f.check()
		if err := f.snap.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A snapshot of a tree on a GPU alone is on that GPU, and says what it keeps
// there; what is closed or forgotten keeps nothing.
func TestSnapshotOnGPUAloneKeepsAVersion(t *testing.T) {
	first := seed.Of(t)
	indextest.Interpreted(t, first)
	m := newTreeModel(t, rand.New(rand.NewPCG(first, 6)), pando.DeviceOnly())
	defer m.tree.Close()
	m.setBatch()
	for _, forget := range []bool{false, true} {
		for len(m.has) < 100 {
			m.setBatch()
		}
		f := m.snapshot()
		f.check()
		if s := f.snap.Stats(); s.Device != pando.GPU(0) || s.KeptBytes != 0 {
			t.Errorf("a new snapshot is on %v and keeps %d bytes", s.Device, s.KeptBytes)
		}
		for i := range 3 {
			m.setBatch()
			if s, old := m.tree.Stats(), f.snap.Stats(); i == 2 && (s.KeptBytes == 0 || s.KeptBytes != old.KeptBytes) {
				t.Errorf("%d bytes are kept, by the snapshot %d", s.KeptBytes, old.KeptBytes)
			}
		}
		f.check()
		if !forget {
			f.snap.Close()
		}
		f = nil
		if !given(m) {
			t.Errorf("%d bytes are kept for nobody, forgotten %t", m.tree.Stats().KeptBytes, forget)
		}
		m.read()
	}
}

// given reports whether the tree keeps nothing any more, when the garbage
// collector has had some time.
func given(m *treeModel) bool {
	for range 2000 {
		if m.tree.Stats().KeptBytes == 0 {
			return true
		}
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		m.getBatch() // what was forgotten goes with the next batch
	}
	return false
}

// A tree on a GPU says in which layout it is, and so does its snapshot; without a copy in
// host memory there is another name for it, which can be asked for there alone.
func TestLayoutOfATreeOnGPU(t *testing.T) {
	indextest.Interpreted(t, seed.Of(t))
	for want, opts := range map[pando.LayoutKind][]pando.Option{
		pando.BPlus:   {pando.On(pando.GPU(0))},
		pando.Chunked: {pando.On(pando.GPU(0)), pando.DeviceOnly()},
	} {
		for _, l := range []pando.LayoutKind{pando.AutoLayout, pando.BPlus, pando.Pairs, want} {
			tree, err := pando.NewTree[uint64, uint64](append(opts, pando.Layout(l))...)
			if err != nil {
				t.Errorf("%v in %v: %v", want, l, err)
				continue
			}
			snap := tree.Snapshot()
			if a, b := tree.Stats(), snap.Stats(); a.Layout != want || b.Layout != want || a.Fanout != b.Fanout {
				t.Errorf("asked for %v: a tree in %v with fanout %d, its snapshot in %v with %d; want %v", l, a.Layout, a.Fanout, b.Layout, b.Fanout, want)
			}
			snap.Close()
			tree.Close()
		}
	}
	for _, opts := range [][]pando.Option{
		{pando.Layout(pando.Chunked)},
		{pando.Layout(pando.Radix), pando.On(pando.GPU(0)), pando.DeviceOnly()},
	} {
		if tree, err := pando.NewTree[uint64, uint64](opts...); !errors.Is(err, pando.ErrLayout) {
			t.Errorf("%v, %v; want ErrLayout", tree, err)
		}
	}
}
