package vectors

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// onInterpreter makes all GPUs the interpreter, and returns those that were opened.
func onInterpreter(t *testing.T, rng *rand.Rand) *[]*faulty.Device {
	indextest.Quiet(t)
	var opened []*faulty.Device
	indextest.UseGPU(t, func(int) (device.Device, error) {
		d := faulty.New(ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false)), faulty.Plan{})
		opened = append(opened, d)
		return d, nil
	})
	indextest.Hasty(t, 64)
	return &opened
}

// deviceIndexes returns indexes of the same entries on a GPU, or shared with one,
// and which of them the GPU sums up.
func deviceIndexes[K pando.Key, V pando.Number](t *testing.T, keys []K, vals []V) (all map[string]pando.Index[K, V], sums map[string]bool) {
	all, sums = map[string]pando.Index[K, V]{}, map[string]bool{}
	add := func(name string, ix pando.Index[K, V], err error, there bool) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name], sums[name] = ix, there
	}
	for _, l := range []pando.LayoutKind{pando.AutoLayout, pando.Apart, pando.Blocked, pando.Compressed} {
		f, err := pando.Freeze(keys, vals, pando.Layout(l), pando.On(pando.GPU(0)))
		add(fmt.Sprint("Frozen, ", l), f, err, true)
	}
	f, err := pando.Freeze(keys, vals, pando.On(pando.Hybrid(0)))
	add("Frozen, hybrid", f, err, false)
	tree, err := pando.TreeOf(keys, vals, pando.On(pando.GPU(0)))
	add("Tree", tree, err, true)
	shared, err := pando.TreeOf(keys, vals, pando.On(pando.Hybrid(0)))
	add("Tree, hybrid", shared, err, false)
	solo, err := pando.TreeOf(keys, vals, pando.On(pando.GPU(0)), pando.DeviceOnly())
	add("Tree, on the GPU alone", solo, err, true)
	return all, sums
}

// onDevices asks indexes on a GPU all vector operations, over one pair of types.
func onDevices[K pando.Key, V pando.Number](d facetest.Domain[K], num numbers[V]) func(t *testing.T, sizes ...int) {
	return func(t *testing.T, sizes ...int) {
		rng := seed.Rand(t)
		if !realGPU {
			onInterpreter(t, rng)
		}
		for _, n := range sizes {
			keys := slices.Clone(d.Ends)
			for i := 0; len(keys) < n; i++ {
				keys = append(keys, d.Num(i))
			}
			slices.Sort(keys)
			keys = slices.CompactFunc(keys, func(a, b K) bool { return cmp.Compare(a, b) == 0 })
			keys = keys[:min(n, len(keys))]
			vals := make([]V, len(keys))
			for i := range vals {
				vals[i] = num.some(rng)
			}
			m := facetest.NewModel(keys, vals, sameBits[V])
			ranges := [][2]K{{d.Ends[0], d.Ends[len(d.Ends)-1]}, {d.Ends[1], d.Ends[0]}}
			if len(keys) > 0 {
				last := len(keys) - 1
				ranges = append(ranges, [2]K{keys[0], keys[last]}, [2]K{keys[last], keys[0]}, [2]K{keys[last/2], keys[last/2]},
					[2]K{keys[last/3], keys[last/2]}, [2]K{d.Num(7), d.Num(500)})
			}
			all, _ := deviceIndexes(t, keys, vals)
			for name, ix := range all {
				if err := checkVectors(ix, m, num, ranges, rng); err != nil {
					t.Errorf("%d entries, %s: %v", n, name, err)
				}
				if tree, ok := ix.(*pando.Tree[K, V]); ok {
					if err := checkTransform(tree, m, num, ranges[:min(3, len(ranges))], rng); err != nil {
						t.Errorf("%d entries, %s: %v", n, name, err)
					}
				}
				ix.Close()
			}
		}
	}
}

// devicePairs are values of 4 and of 8 bytes, beside keys of the same width and of the
// other, with how many entries an index has.
var devicePairs = []struct {
	name               string
	quick              bool // in quick runs, too
	check              func(t *testing.T, sizes ...int)
	interpreted, onGPU []int
}{
	{"uint64 to uint64", true, onDevices(facetest.Integers[uint64](), whole[uint64]()), []int{0, 1, 700}, []int{0, 1, 33, 5000}},
	{"int64 to float64", true, onDevices(facetest.Integers[int64](), floats64[float64]()), []int{1100}, []int{1025, 1_500_000}},
	{"uint32 to int32", true, onDevices(facetest.Integers[uint32](), whole[int32]()), []int{300}, []int{1200, 100_000}},
	{"int32 to float32", false, onDevices(facetest.Integers[int32](), floats32[float32]()), []int{1500}, []int{1500}},
	{"float64 to uint32", false, onDevices(facetest.Float64s[facetest.Celsius](), whole[facetest.ID]()), []int{900}, []int{9000}},
	{"uint16 to int64", false, onDevices(facetest.Integers[uint16](), whole[int64]()), []int{900}, []int{9000}},
}

// realGPU makes onDevices take the machine's GPU.
var realGPU bool

// The same on a real GPU, if there is one, and with so many entries that a sum
// takes several rounds.
func TestOnRealGPU(t *testing.T) {
	indextest.Hasty(t, 64)
	f := facetest.MustFreeze(t, []uint64{1}, []uint64{2}, pando.On(pando.GPU(0)))
	defer f.Close()
	if s := f.Stats(); s.Device != pando.GPU(0) {
		t.Skip("no GPU: ", s.Reason)
	}
	realGPU = true
	defer func() { realGPU = false }()
	for _, p := range devicePairs {
		t.Run(p.name, func(t *testing.T) { p.check(t, p.onGPU...) })
	}
}

// An index on a GPU, or shared with one, is asked as any other.
func TestOnDevices(t *testing.T) {
	for _, p := range devicePairs {
		switch {
		case seed.RaceDetector: // what several goroutines do does not depend on types
			if p.name == "int64 to float64" {
				t.Run(p.name, func(t *testing.T) { p.check(t, 200) })
			}
		case p.quick || seed.Long():
			t.Run(p.name, func(t *testing.T) { p.check(t, p.interpreted...) })
		}
	}
}

// Who holds all values sums them up, and nobody else does; and a GPU that has been
// told nothing keeps quiet.
func TestTheDeviceSumsUp(t *testing.T) {
	rng := seed.Rand(t)
	opened := onInterpreter(t, rng)
	keys, vals := squares(3000)
	want := pando.Aggregate(facetest.MustFreeze(t, keys, vals, pando.On(pando.CPU)), 0, math.MaxUint64)
	*opened = nil
	all, sums := deviceIndexes(t, keys, vals)
	launches := func() (n int) {
		for _, d := range *opened {
			n += d.Count(faulty.Launch)
		}
		return n
	}
	for name, ix := range all {
		before := launches()
		if got := pando.Aggregate(ix, 0, math.MaxUint64); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if there := launches() > before; there != sums[name] {
			t.Errorf("%s: summed up on the GPU: %t, want %t", name, there, sums[name])
		}
	}
	indextest.PreferCPU(t, true) // so few are the CPU's work
	for name, ix := range all {
		before := launches()
		if got := pando.Aggregate(ix, 0, math.MaxUint64); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if there := launches() > before; there && name != "Tree, on the GPU alone" {
			t.Errorf("%s: a few values are summed up on the GPU", name)
		}
		ix.Close()
	}
}

// What a batch has changed, and what single operations have, is in the sum.
func TestSumsOfWhatHasChanged(t *testing.T) {
	rng := seed.Rand(t)
	onInterpreter(t, rng)
	for _, opts := range [][]pando.Option{nil, {pando.DeviceOnly()}} {
		tree, err := pando.NewTree[uint16, int64](append(opts, pando.On(pando.GPU(0)))...)
		if err != nil {
			t.Fatal(err)
		}
		has := map[uint16]int64{}
		for range 6 {
			keys, vals := make([]uint16, rng.IntN(300)), []int64{}
			for i := range keys {
				keys[i] = uint16(rng.IntN(2000))
				vals = append(vals, int64(rng.Uint64()))
				has[keys[i]] = vals[i]
			}
			if err := tree.SetBatch(keys, vals); err != nil {
				t.Fatal(err)
			}
			for range rng.IntN(3) {
				k, v := uint16(rng.IntN(2000)), int64(rng.Uint64())
				has[k] = v
				tree.Set(k, v)
				d := uint16(rng.IntN(2000))
				delete(has, d)
				tree.Delete(d)
			}
			lo, hi := uint16(rng.IntN(2000)), uint16(rng.IntN(2000))
			var all []int64
			for k, v := range has {
				if lo <= k && k <= hi {
					all = append(all, v)
				}
			}
			if got, want := pando.Aggregate(tree, lo, hi), summaryOf(all); !sameSummary(got, want) {
				t.Fatalf("from %d to %d: %+v, want %+v", lo, hi, got, want)
			}
		}
		tree.Close()
	}
}
