package devices_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// treeModel is a tree on a GPU, and what it should have.
type treeModel struct {
	t    testing.TB
	tree *pando.Tree[uint64, uint64]
	has  map[uint64]uint64
	rng  *rand.Rand
}

func newTreeModel(t testing.TB, rng *rand.Rand, opts ...pando.Option) *treeModel {
	t.Helper()
	tree, err := pando.NewTree[uint64, uint64](append(opts, pando.On(pando.GPU(0)))...)
	if err != nil {
		t.Fatal(err)
	}
	return &treeModel{t, tree, map[uint64]uint64{}, rng}
}

func (m *treeModel) key() uint64 { return m.rng.Uint64N(4000) * 0x123456789 }

// step does something to the tree and to the model, and compares.
func (m *treeModel) step() {
	m.t.Helper()
	switch m.rng.IntN(10) {
	case 0, 1:
		m.setBatch()
	case 2:
		m.applyBatch()
	case 3:
		m.getBatch()
	case 4:
		m.deleteBatch()
	case 5:
		for range m.rng.IntN(20) {
			m.single()
		}
	case 6:
		m.read()
	case 7:
		m.pop()
	case 9:
		m.sums()
	case 8:
		lo := m.key()
		hi := lo + 50*0x123456789
		n, want := m.tree.DeleteRange(lo, hi), 0
		for k := range m.has {
			if k >= lo && k <= hi {
				delete(m.has, k)
				want++
			}
		}
		if n != want {
			m.t.Fatalf("DeleteRange: %d, want %d", n, want)
		}
	}
}

func (m *treeModel) size() int { return []int{1, 10, 33, 300, 2000}[m.rng.IntN(5)] }

func (m *treeModel) setBatch() {
	m.t.Helper()
	keys, vals := make([]uint64, m.size()), []uint64{}
	for i := range keys {
		keys[i] = m.key()
		vals = append(vals, m.rng.Uint64())
	}
	if err := m.tree.SetBatch(keys, vals); err != nil {
		m.t.Fatal(err)
	}
	for i, k := range keys {
		m.has[k] = vals[i]
	}
}

func (m *treeModel) deleteBatch() {
	m.t.Helper()
	keys := make([]uint64, m.size())
	for i := range keys {
		keys[i] = m.key()
	}
	found, want := make([]bool, len(keys)), 0
	n := m.tree.DeleteBatch(keys, found)
	for i, k := range keys {
		_, had := m.has[k]
		if found[i] != had {
			m.t.Fatalf("DeleteBatch: key %d was there: %t, want %t", k, found[i], had)
		}
		if had {
			want++
		}
		delete(m.has, k)
	}
	if n != want {
		m.t.Fatalf("DeleteBatch: %d, want %d", n, want)
	}
}

func (m *treeModel) applyBatch() {
	m.t.Helper()
	n := m.size()
	ops, keys, vals, found := make([]pando.Op, n), make([]uint64, n), make([]uint64, n), make([]bool, n)
	for i := range ops {
		ops[i], keys[i], vals[i] = []pando.Op{pando.OpGet, pando.OpSet, pando.OpDelete}[m.rng.IntN(3)], m.key(), m.rng.Uint64()
	}
	set := slices.Clone(vals)
	if err := m.tree.Apply(ops, keys, vals, found); err != nil {
		m.t.Fatal(err)
	}
	for i, k := range keys {
		want, had := m.has[k]
		if vals[i] != want || found[i] != had {
			m.t.Fatalf("operation %d on key %d finds %d, %t, want %d, %t", i, k, vals[i], found[i], want, had)
		}
		switch ops[i] {
		case pando.OpSet:
			m.has[k] = set[i]
		case pando.OpDelete:
			delete(m.has, k)
		}
	}
}

func (m *treeModel) getBatch() {
	m.t.Helper()
	keys := make([]uint64, m.size())
	for i := range keys {
		keys[i] = m.key()
	}
	vals, found := make([]uint64, len(keys)), make([]bool, len(keys))
	hits := m.tree.GetBatch(keys, vals, found)
	want := 0
	for i, k := range keys {
		v, ok := m.has[k]
		if vals[i] != v || found[i] != ok {
			m.t.Fatalf("GetBatch: key %d is %d, %t, want %d, %t", k, vals[i], found[i], v, ok)
		}
		if ok {
			want++
		}
	}
	if hits != want {
		m.t.Fatalf("GetBatch: %d hits, want %d", hits, want)
	}
}

func (m *treeModel) single() {
	m.t.Helper()
	k, v := m.key(), m.rng.Uint64()
	want, had := m.has[k]
	switch m.rng.IntN(4) {
	case 0:
		if err := m.tree.Set(k, v); err != nil {
			m.t.Fatal(err)
		}
		m.has[k] = v
	case 1:
		if got, ok := m.tree.Delete(k); got != want || ok != had {
			m.t.Fatalf("Delete(%d): %d, %t, want %d, %t", k, got, ok, want, had)
		}
		delete(m.has, k)
	case 2:
		err := m.tree.Update(k, func(old uint64, ok bool) (uint64, bool) {
			if old != want || ok != had {
				m.t.Fatalf("Update(%d) finds %d, %t, want %d, %t", k, old, ok, want, had)
			}
			return old + 1, true
		})
		if err != nil {
			m.t.Fatal(err)
		}
		m.has[k] = want + 1
	case 3:
		if got, ok := m.tree.Get(k); got != want || ok != had {
			m.t.Fatalf("Get(%d): %d, %t, want %d, %t", k, got, ok, want, had)
		}
	}
}

func (m *treeModel) pop() {
	m.t.Helper()
	k, v, ok := m.tree.PopMin()
	if ok != (len(m.has) > 0) {
		m.t.Fatalf("PopMin: %t, %d entries", ok, len(m.has))
	}
	if !ok {
		return
	}
	if least := slices.Min(slices.Collect(maps.Keys(m.has))); k != least || v != m.has[k] {
		m.t.Fatalf("PopMin: %d → %d, want %d → %d", k, v, least, m.has[least])
	}
	delete(m.has, k)
}

// read compares everything, in order.
func (m *treeModel) read() {
	m.t.Helper()
	all := slices.Sorted(maps.Keys(m.has))
	i := 0
	for k, v := range m.tree.All() {
		if i >= len(all) || k != all[i] || v != m.has[k] {
			m.t.Fatalf("entry %d is %d → %d", i, k, v)
		}
		i++
	}
	m.readRanges(all)
	if i != len(all) || m.tree.Len() != len(all) {
		m.t.Fatalf("%d entries, Len %d, want %d", i, m.tree.Len(), len(all))
	}
}

// readRanges compares ranks, counts and ranges.
func (m *treeModel) readRanges(all []uint64) {
	m.t.Helper()
	n := m.size()
	lo, hi := make([]uint64, n), make([]uint64, n)
	for i := range lo {
		lo[i] = m.key()
		hi[i] = lo[i] + m.rng.Uint64N(30)*0x123456789 - 1
	}
	ranks, counts := make([]int, n), make([]int, n)
	m.tree.RankBatch(lo, ranks)
	m.tree.CountBatch(lo, hi, counts)
	limit := m.rng.IntN(5)
	r := m.tree.RangeBatch(lo, hi, limit)
	for i := range lo {
		first, _ := slices.BinarySearch(all, lo[i])
		end, there := slices.BinarySearch(all, hi[i])
		if there {
			end++
		}
		end = max(first, end)
		if ranks[i] != first || counts[i] != end-first {
			m.t.Fatalf("rank %d, count %d from %d to %d, want %d, %d", ranks[i], counts[i], lo[i], hi[i], first, end-first)
		}
		if limit > 0 {
			end = min(end, first+limit)
		}
		if got := r.Keys[r.Offsets[i]:r.Offsets[i+1]]; !slices.Equal(got, all[first:end]) {
			m.t.Fatalf("range %d to %d is %d, want %d", lo[i], hi[i], got, all[first:end])
		}
		for j, k := range all[first:end] {
			if v := r.Vals[r.Offsets[i]+j]; v != m.has[k] {
				m.t.Fatalf("range: key %d has %d, want %d", k, v, m.has[k])
			}
		}
	}
}

// A tree on a GPU answers like a map, whatever is done to it.
func TestTreeOnGPU(t *testing.T) { testTreeOnGPU(t) }

// So does one on a GPU alone.
func TestTreeOnGPUAlone(t *testing.T) { testTreeOnGPU(t, pando.DeviceOnly()) }

func testTreeOnGPU(t *testing.T, opts ...pando.Option) {
	first := seed.Of(t)
	seeds, steps := uint64(3), 40
	if !seed.Long() {
		seeds, steps = 1, 25
	}
	for i := range seeds {
		indextest.Interpreted(t, first+i)
		m := newTreeModel(t, rand.New(rand.NewPCG(first+i, 1)), opts...)
		if s := m.tree.Stats(); s.Device != pando.GPU(0) {
			t.Fatalf("on %v: %s", s.Device, s.Reason)
		}
		for range steps {
			m.step()
		}
		m.read()
		if s := m.tree.Stats(); s.Device != pando.GPU(0) || s.DeviceBytes == 0 {
			t.Fatalf("on %v: %s, %d bytes", s.Device, s.Reason, s.DeviceBytes)
		}
		m.tree.Close()
	}
}

// The same on a real GPU, if there is one.
func TestTreeOnRealGPU(t *testing.T) {
	first := seed.Of(t)
	indextest.PreferCPU(t, false)
	m := newTreeModel(t, rand.New(rand.NewPCG(first, 1)))
	defer m.tree.Close()
	if s := m.tree.Stats(); s.Device != pando.GPU(0) {
		t.Skip("no GPU: ", s.Reason)
	}
	for range 200 {
		m.step()
	}
	m.read()
	if s := m.tree.Stats(); s.Device != pando.GPU(0) {
		t.Errorf("on %v: %s", s.Device, s.Reason)
	}
}

// Whatever operation of the device fails, the CPU goes on, and nothing that was
// accepted is missing. PANDO_LONG=1000 lets each of them fail in turn.
func TestTreeSurvivesItsGPU(t *testing.T) {
	indextest.Quiet(t)
	first := seed.Of(t)
	work := func(dev device.Device) {
		indextest.PreferCPU(t, false)
		indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
		m := newTreeModel(t, rand.New(rand.NewPCG(first, 2)))
		for range 8 {
			m.step()
		}
		m.read()
		m.tree.Close()
	}
	eachFault(t, first, 5, 40, func(dev device.Device, _, _ int, _ bool) { work(dev) })
}

// eachFault calls work with devices of which one operation fails, or is the last
// before the device is lost: at of all that work does. It tries about so many of
// them in a quick run and in a long one, and all with PANDO_LONG=1000. Nothing may be left on
// the device afterwards.
func eachFault(t *testing.T, first uint64, quick, long int, work func(dev device.Device, at, all int, lose bool)) {
	t.Helper()
	count := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{})
	work(count, 0, 0, false)
	all := count.Count(faulty.Any)
	step := seed.Stride(all, quick, long)
	for n := 1 + int(first%uint64(step)); n <= all; n += step {
		for _, lose := range []bool{false, true} {
			dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{At: n, Lose: lose})
			work(dev, n, all, lose)
			if live := dev.Live(); live != 0 {
				t.Errorf("operation %d failed (lost %t): %d things of the device are left", n, lose, live)
			}
		}
	}
}
