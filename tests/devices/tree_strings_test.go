package devices_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// textModel is a tree of strings on a GPU, and what it should have.
type textModel[V comparable] struct {
	t     testing.TB
	tree  *pando.Tree[string, V]
	has   map[string]V
	rng   *rand.Rand
	value func(uint64) V
}

func newTextModel[V comparable](t testing.TB, rng *rand.Rand, value func(uint64) V) *textModel[V] {
	t.Helper()
	m := &textModel[V]{t, nil, map[string]V{}, rng, value}
	for range rng.IntN(100) {
		m.has[m.key()] = m.val()
	}
	keys := slices.Sorted(maps.Keys(m.has))
	vals := make([]V, len(keys))
	for i, k := range keys {
		vals[i] = m.has[k]
	}
	opts := []pando.Option{pando.On(pando.GPU(0))}
	if rng.IntN(4) == 0 {
		opts = append(opts, pando.MemoryLimit(1<<30)) // host memory is changed first
	}
	var err error
	if m.tree, err = pando.TreeOf(keys, vals, opts...); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *textModel[V]) val() V { return m.value(m.rng.Uint64()) }

// key returns a key: short ones, those that begin as others do, and now and then one
// that stays in host memory.
func (m *textModel[V]) key() string {
	switch m.rng.IntN(30) {
	case 0:
		return strings.Repeat("k", 1020+m.rng.IntN(8))
	case 1:
		return strings.Repeat("\x00", m.rng.IntN(3))
	}
	return fmt.Sprintf("https://example.com/%x", m.rng.IntN(500))
}

func (m *textModel[V]) keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = m.key()
	}
	return keys
}

// step does something to the tree and to the model, and compares.
func (m *textModel[V]) step() {
	m.t.Helper()
	n := []int{1, 20, 200}[m.rng.IntN(3)]
	switch m.rng.IntN(7) {
	case 6:
		m.ordered()
	case 0:
		keys, vals := m.keys(n), make([]V, n)
		for i := range vals {
			vals[i] = m.val()
		}
		if err := m.tree.SetBatch(keys, vals); err != nil {
			m.t.Fatal(err)
		}
		for i, k := range keys {
			m.has[k] = vals[i]
		}
	case 1:
		m.apply(m.keys(n))
	case 2:
		keys, found, before := m.keys(n), make([]bool, n), len(m.has)
		if m.rng.IntN(2) == 0 { // only their number
			deleted := m.tree.DeleteBatch(keys, nil)
			for _, k := range keys {
				delete(m.has, k)
			}
			if deleted != before-len(m.has) {
				m.t.Fatalf("DeleteBatch: %d, want %d", deleted, before-len(m.has))
			}
			break
		}
		m.tree.DeleteBatch(keys, found)
		for i, k := range keys {
			if _, had := m.has[k]; had != found[i] {
				m.t.Fatalf("DeleteBatch: key %.30q was there: %t", k, found[i])
			}
			delete(m.has, k)
		}
	case 3:
		for range m.rng.IntN(10) {
			m.single()
		}
	default:
		m.get(m.keys(n))
	}
}

// ordered reads what only host memory has: it has to have everything by then.
func (m *textModel[V]) ordered() {
	m.t.Helper()
	all := slices.Sorted(maps.Keys(m.has))
	k := m.key()
	if want, _ := slices.BinarySearch(all, k); m.tree.Rank(k) != want {
		m.t.Fatalf("rank of %.30q is %d, want %d", k, m.tree.Rank(k), want)
	}
	if v, ok := m.tree.Get(k); ok != m.tree.Has(k) || v != m.has[k] {
		m.t.Fatalf("%.30q has %v, %t, want %v", k, v, ok, m.has[k])
	}
	s := m.tree.Snapshot()
	defer s.Close()
	m.apply(m.keys(100)) // beside the snapshot
	i := 0
	for k := range s.All() {
		if i >= len(all) || k != all[i] {
			m.t.Fatalf("entry %d of a snapshot is %.30q", i, k)
		}
		i++
	}
	if i != len(all) || m.tree.Len() != len(m.has) {
		m.t.Fatalf("%d entries of a snapshot, want %d; %d in the tree, want %d", i, len(all), m.tree.Len(), len(m.has))
	}
	i, all = 0, slices.Sorted(maps.Keys(m.has))
	for k, v := range m.tree.All() {
		if k != all[i] || v != m.has[k] {
			m.t.Fatalf("entry %d is %.30q, %v", i, k, v)
		}
		i++
	}
}

func (m *textModel[V]) single() {
	m.t.Helper()
	k, v := m.key(), m.val()
	switch m.rng.IntN(5) {
	case 0, 1:
		if err := m.tree.Set(k, v); err != nil {
			m.t.Fatal(err)
		}
		m.has[k] = v
	case 2:
		m.tree.Delete(k)
		delete(m.has, k)
	case 3:
		m.tree.Update(k, func(V, bool) (V, bool) { return v, true })
		m.has[k] = v
	case 4:
		if k, _, ok := m.tree.PopMin(); ok {
			delete(m.has, k)
		}
	}
}

func (m *textModel[V]) apply(keys []string) {
	m.t.Helper()
	n := len(keys)
	ops, vals, found := make([]pando.Op, n), make([]V, n), make([]bool, n)
	for i := range ops {
		ops[i], vals[i] = []pando.Op{pando.OpGet, pando.OpSet, pando.OpDelete}[m.rng.IntN(3)], m.val()
	}
	set := slices.Clone(vals)
	if err := m.tree.Apply(ops, keys, vals, found); err != nil {
		m.t.Fatal(err)
	}
	for i, k := range keys {
		want, had := m.has[k]
		if vals[i] != want || found[i] != had {
			m.t.Fatalf("operation %d on key %.30q finds %v, %t, want %v, %t", i, k, vals[i], found[i], want, had)
		}
		switch ops[i] {
		case pando.OpSet:
			m.has[k] = set[i]
		case pando.OpDelete:
			delete(m.has, k)
		}
	}
}

// get looks keys up, as strings and one behind the other.
func (m *textModel[V]) get(keys []string) {
	m.t.Helper()
	data, offsets := []byte("in front"), []int32{8}
	for _, k := range keys {
		data = append(data, k...)
		offsets = append(offsets, int32(len(data)))
	}
	for _, ask := range []func(vals []V, found []bool) int{
		func(vals []V, found []bool) int { return m.tree.GetBatch(keys, vals, found) },
		func(vals []V, found []bool) int { return m.tree.GetBatchBytes(data, offsets, vals, found) },
	} {
		vals, found, hits := make([]V, len(keys)), make([]bool, len(keys)), 0
		got := ask(vals, found)
		for i, k := range keys {
			want, had := m.has[k]
			if vals[i] != want || found[i] != had {
				m.t.Fatalf("key %d of %d, %.30q, has %v, %t, want %v, %t", i, len(keys), k, vals[i], found[i], want, had)
			}
			if had {
				hits++
			}
		}
		if got != hits {
			m.t.Fatalf("%d hits, want %d", got, hits)
		}
	}
}

func textHistory[V comparable](t testing.TB, rng *rand.Rand, steps int, value func(uint64) V) (where pando.Device) {
	t.Helper()
	m := newTextModel(t, rng, value)
	defer m.tree.Close()
	for range steps {
		m.step()
	}
	m.get(m.keys(300))
	s := m.tree.Stats()
	if s.Len != len(m.has) || s.Layout != pando.Radix {
		t.Errorf("%d entries, want %d, in layout %v", s.Len, len(m.has), s.Layout)
	}
	if s.Device == pando.GPU(0) && s.DeviceBytes == 0 {
		t.Error("a tree on the GPU takes no memory there")
	}
	return s.Device
}

// A tree of strings on a GPU answers like a map, whatever is done to it.
func TestTreeOfStringsOnGPU(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(seed.Count(6)) {
		indextest.Interpreted(t, first+i)
		rng := rand.New(rand.NewPCG(first+i, 1))
		where := textHistory(t, rng, 20, func(v uint64) uint64 { return v })
		if where != pando.GPU(0) {
			t.Fatalf("on %v", where)
		}
		textHistory(t, rng, 10, func(v uint64) float32 { return float32(v % 1000) })
		textHistory(t, rng, 10, func(uint64) struct{} { return struct{}{} })
		textHistory(t, rng, 5, func(v uint64) string { return fmt.Sprint(v) }) // on the CPU
	}
}

// A GPU that fails at any operation costs no answer. PANDO_LONG=1000 tries all of
// them.
func TestTreeOfStringsOnFailingGPU(t *testing.T) {
	indextest.Quiet(t)
	indextest.PreferCPU(t, false)
	first := seed.Of(t)
	run := func(plan faulty.Plan) *faulty.Device {
		dev := faulty.New(ptx.New(ptx.Seed(first)), plan)
		indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
		textHistory(t, rand.New(rand.NewPCG(first, 2)), 10, func(v uint64) uint64 { return v })
		return dev
	}
	all := run(faulty.Plan{}).Count(faulty.Any)
	step := seed.Stride(all, 4, 12)
	for at := 1 + int(first%uint64(step)); at <= all; at += step {
		if dev := run(faulty.Plan{At: at, Lose: at%2 == 0}); dev.Live() != 0 {
			t.Fatalf("operation %d of %d fails: %d things are left on the device", at, all, dev.Live())
		}
	}
}
