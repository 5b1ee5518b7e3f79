package cuart

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/seed"
)

// counter is a port, what its tree should have, and who answers.
type counter struct {
	t     *testing.T
	dev   device.Device
	port  *Port
	model map[string]uint64
	byCPU int // strings of the last search that the CPU has answered
}

// shared returns strings in memory that a device reads where it is; done gives it
// back.
func (x *counter) shared(keys []string) (s packing.Strings, done func()) {
	x.t.Helper()
	from := packed(keys)
	data, err := x.dev.HostAlloc(len(from.Data))
	must(x.t, err)
	offsets, err := x.dev.HostAlloc(4 * len(from.Offsets))
	must(x.t, err)
	copy(data, from.Data)
	copy(offsets, arena.Bytes(from.Offsets))
	device.Share(data)
	device.Share(offsets)
	return packing.Strings{Data: data, Offsets: arena.As[int32](offsets)}, func() {
		device.Unshare(data)
		device.Unshare(offsets)
		must(x.t, errors.Join(x.dev.HostFree(data), x.dev.HostFree(offsets)))
	}
}

// find looks strings up, and compares.
func (x *counter) find(keys packing.Strings) {
	x.t.Helper()
	n := keys.Len()
	vals, found := make([]uint64, n), make([]bool, n)
	var mu sync.Mutex
	x.byCPU = 0
	x.port.Find(Queries{
		Keys: keys,
		Take: func(lo int, column, bits []byte) {
			for i := range len(column) / 8 {
				vals[lo+i], found[lo+i] = arena.As[uint64](column)[i], bits[i/8]>>(i%8)&1 == 1
			}
		},
		CPU: func(lo, hi int) {
			mu.Lock()
			defer mu.Unlock()
			x.byCPU += hi - lo
			for i := lo; i < hi; i++ {
				vals[i], found[i] = x.model[keys.At(i)], false
				_, found[i] = x.model[keys.At(i)]
			}
		},
	})
	must(x.t, x.port.Down())
	for i := range n {
		k := keys.At(i)
		if want, ok := x.model[k]; found[i] != ok || ok && vals[i] != want {
			x.t.Fatalf("string %d of %d, %.20q of %d bytes, has %d, %t; want %d, %t", i, n, k, len(k), vals[i], found[i], want, ok)
		}
	}
}

// findAll looks strings up in all forms.
func (x *counter) findAll(keys []string) {
	x.t.Helper()
	for _, x.port.Tile = range []bool{false, true} {
		x.find(packed(keys))
		x.find(packing.Strings{Keys: keys})
		s, done := x.shared(keys)
		x.find(s)
		done()
	}
}

// apply does operations, and looks at the tree.
func (x *counter) apply(keys []string, kind op.Kind, val uint64) {
	x.t.Helper()
	vals := make([]uint64, len(keys))
	for i, k := range keys {
		vals[i] = val + uint64(i)
		if x.model[k] = vals[i]; kind == op.Delete {
			delete(x.model, k)
		}
	}
	must(x.t, x.port.Apply(&Changes{Keys: packing.Strings{Keys: keys}, Vals: arena.Bytes(vals), Kind: kind}))
	all, err := x.port.tree.read()
	must(x.t, err)
	there := 0
	for _, e := range all {
		if want, ok := x.model[e.key]; !ok || want != e.val {
			x.t.Fatalf("%.20q of %d bytes has %d, want %d, %t", e.key, len(e.key), e.val, want, ok)
		}
	}
	for k := range x.model {
		if len(k) <= x.port.tree.longest {
			there++
		}
	}
	if there != len(all) {
		x.t.Fatalf("%d entries, want %d", len(all), there)
	}
}

// Keys of all cuarttest.Lengths, in each of the three ways: those that the tree does not have
// the CPU answers, and no others.
func TestLongKeys(t *testing.T) {
	first := seed.Of(t)
	var all []string
	for _, n := range []int{7, 8, 9, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025, MaxKey, MaxKey + 1, 1 << 20} {
		all = append(all, strings.Repeat("k", n), strings.Repeat("k", n-1)+"l")
	}
	for i, opts := range []Options{
		{Longest: 1024}, {Longest: 1024, Long: LongHost}, {Longest: 32, Long: LongHost}, {Longest: 1024, Long: LongDevice},
	} {
		dev := ptx.New(ptx.Seed(first+uint64(i)), ptx.RaceCheck(false))
		opts.Room, opts.Seed, opts.HostRoom = 64<<20, 1, 8<<20
		tree, err := New(dev, opts)
		must(t, err)
		x := &counter{t: t, dev: dev, port: NewPort(tree, 2), model: map[string]uint64{}}
		x.apply(all[:20], op.Set, 1)
		x.apply(all, op.Set, 100)
		left := 0
		for _, k := range all {
			if len(k) > tree.longest {
				left++
			}
		}
		x.findAll(all)
		if x.byCPU != left || (left > 4) != (opts.Long == LongLeft) {
			t.Errorf("%+v: the CPU has answered %d of %d", opts, x.byCPU, left)
		}
		if far := tree.HostBytes() > 0; far != (opts.Long == LongHost) {
			t.Errorf("%+v: %d bytes in host memory", opts, tree.HostBytes())
		}
		x.apply(all[10:], op.Delete, 0)
		x.findAll(all)
		x.apply(all[20:24], op.Set, 5)
		x.findAll(all)
		must(t, errors.Join(x.port.Close(), tree.Close(), dev.Close()))
	}
}

// No key that is not long is in host memory, however close to the border it is, and all
// are from the next class of leaves on.
func TestLongBorder(t *testing.T) {
	first := seed.Of(t)
	for _, longest := range []int{1, 4, 5, 32, 36, 244, 245, 300, MaxKey - 1} {
		dev := ptx.New(ptx.Seed(first), ptx.RaceCheck(false))
		tree, err := New(dev, Options{Room: 64 << 20, Seed: 1, Longest: longest, Long: LongHost, HostRoom: 8 << 20})
		must(t, err)
		x := &counter{t: t, dev: dev, port: NewPort(tree, 2), model: map[string]uint64{}}
		x.apply([]string{"", "k", strings.Repeat("k", longest)}, op.Set, 1)
		if n := tree.far.next; n != 0 {
			t.Errorf("%d units of keys up to %d bytes, which are not long, are in host memory", n, longest)
		}
		if long := 2 * (longest + unit); long <= MaxKey {
			x.apply([]string{strings.Repeat("k", long)}, op.Set, 5)
			if tree.far.next == 0 {
				t.Errorf("a key of %d bytes, where those above %d are long, is not in host memory", long, longest)
			}
		}
		x.findAll(slices.Collect(maps.Keys(x.model)))
		must(t, errors.Join(x.port.Close(), tree.Close(), dev.Close()))
	}
}

// Check finds leaves that are in the wrong memory, or are not all of it.
func TestCheckFindsFar(t *testing.T) {
	for what, spoil := range map[string]func(im *image){
		"nothing":                func(*image) {},
		"another border":         func(im *image) { im.farClass++ },
		"none is far":            func(im *image) { im.farClass = classes },
		"units to spare":         func(im *image) { im.far = append(im.far, 0) },
		"a unit less":            func(im *image) { im.far = im.far[:len(im.far)-1] },
		"they begin elsewhere":   func(im *image) { im.split-- },
		"a short key there, too": func(im *image) { im.far[1] = im.far[1]>>32<<32 | 1 },
	} {
		keys := []string{"a", "b", "c long", "d longer"}
		im, err := build(keys, make([]uint64, len(keys)), 8, Place{bits: 1, direct: true}, 1000, leafClass(5, 8))
		must(t, err)
		if len(im.units) != 4 || len(im.far) != 6 {
			t.Fatalf("%d units, and %d far", len(im.units), len(im.far))
		}
		spoil(im)
		if _, err = im.check(new([classes][]uint32)); (err == nil) != (what == "nothing") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Strings of one length travel without offsets, others with them, and all are found.
func TestEvenStrings(t *testing.T) {
	rng := seed.Rand(t)
	dev := ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false))
	tree, err := New(dev, Options{Room: 64 << 20})
	must(t, err)
	x := &counter{t: t, dev: dev, port: NewPort(tree, 2), model: map[string]uint64{}}
	for _, width := range []int{1, 3, 7, 8, 9, 16, 32, 33} {
		keys := make([]string, 40)
		for i := range keys {
			keys[i] = strings.Repeat("e", width-1) + string([]byte{byte(rng.Uint32())})
		}
		x.apply(keys[:30], op.Set, uint64(width)<<8)
		for range 3 {
			x.findAll(keys[rng.IntN(20):])
		}
		odd := append(slices.Clone(keys), keys[0]+"e", keys[1][1:])
		rng.Shuffle(len(odd), func(i, j int) { odd[i], odd[j] = odd[j], odd[i] })
		x.findAll(odd)
	}
	if x.byCPU != 0 {
		t.Errorf("the CPU has answered %d", x.byCPU)
	}
	must(t, errors.Join(x.port.Close(), tree.Close(), dev.Close()))
}

// A tree that the device has no room for any more has its leaves in host memory, and
// takes as many more as there is room for nodes.
func TestOutgrowsDevice(t *testing.T) {
	first := seed.Of(t)
	entries := map[int64]int{}
	for _, hostRoom := range []int64{-1, 1 << 20} {
		dev := ptx.New(ptx.Seed(first))
		r := newRig(t, dev, Options{Room: 128 << 10, HostRoom: hostRoom, Seed: 1})
		rng := rand.New(rand.NewPCG(first, 4))
		set := func(n int) error {
			keys, vals, kinds := make([]string, n), make([]uint64, n), make([]op.Kind, n)
			for i := range keys {
				keys[i], vals[i], kinds[i] = fmt.Sprintf("%048x", rng.Uint64()), rng.Uint64(), op.Set
			}
			return r.try(keys, vals, kinds, 0)
		}
		var err error
		for err == nil {
			err = set(100)
			r.check()
		}
		if !isShort(err) {
			t.Fatalf("over the limit: %v", err)
		}
		entries[hostRoom] = len(r.model)
		if n := r.tree.HostBytes(); r.tree.leaves.host != (hostRoom > 0) || n > max(hostRoom, 0) {
			t.Errorf("%d bytes of %d in host memory", n, hostRoom)
		}
		// Memory is promised to batches that need less, deletes too: small ones fit.
		fewer := func(n int, do func(n int) error) {
			for err = do(n); isShort(err) && n > 1; err = do(n) {
				n /= 2
			}
			must(t, err)
		}
		for want := len(r.model) - 300; len(r.model) > want; {
			fewer(len(r.model)-want, func(n int) error {
				some := slices.Sorted(maps.Keys(r.model))[:n]
				return r.try(some, make([]uint64, n), slices.Repeat([]op.Kind{op.Delete}, n), 0)
			})
		}
		fewer(50, set)
		r.check()
		r.look(rng)
		must(t, r.tree.Close())
		must(t, dev.Close())
	}
	if entries[1<<20] < 2*entries[-1] {
		t.Errorf("%d entries with leaves in host memory, %d without", entries[1<<20], entries[-1])
	}
}

// Leaves take no host memory that is not free, whatever HostRoom is, and the host is
// asked before any is taken.
func TestHostHasNoMemory(t *testing.T) {
	first := seed.Of(t)
	for _, opts := range []Options{
		{Room: 64 << 20, HostRoom: 32 << 20, Longest: 8, Long: LongHost}, // long keys are there,
		{Room: 512 << 10, HostRoom: 32 << 20},                            // or all, when the device is full
	} {
		opts.Seed = 1
		dev := ptx.New(ptx.Seed(first), ptx.RaceCheck(false))
		r := newRig(t, dev, opts)
		free, asked := int64(hostSpare+1<<20), 0
		r.tree.hostFree = func() int64 {
			asked++
			return free - r.tree.HostBytes()
		}
		rng := rand.New(rand.NewPCG(first, 4))
		var err error
		for err == nil && len(r.model) < 1<<20 {
			keys := make([]string, 50)
			for i := range keys {
				keys[i] = fmt.Sprintf("%01000x", rng.Uint64())
			}
			err = r.try(keys, make([]uint64, len(keys)), slices.Repeat([]op.Kind{op.Set}, len(keys)), 0)
			if n := r.tree.HostBytes(); n > free-hostSpare {
				t.Fatalf("%+v: %d bytes of %d that are free are taken", opts, n, free)
			}
		}
		if !errors.Is(err, op.ErrLimit) || asked == 0 || r.tree.HostBytes() == 0 {
			t.Errorf("%+v: %d entries, %d bytes in host memory, asked %d times: %v", opts, len(r.model), r.tree.HostBytes(), asked, err)
		}
		r.check()
		free = 0 // what is there stays
		r.apply(slices.Sorted(maps.Keys(r.model))[:100], make([]uint64, 100), slices.Repeat([]op.Kind{op.Delete}, 100), 0)
		free = math.MaxInt64 // nobody knows
		must(t, r.try([]string{strings.Repeat("k", 20000)}, []uint64{1}, []op.Kind{op.Set}, 0))
		r.check()
		must(t, r.tree.Close())
		must(t, dev.Close())
	}
}

// What is loaded, and does not fit, has its leaves in host memory.
func TestLoadOutgrowsDevice(t *testing.T) { onEach(t, seed.Count(5), loadFull) }

func loadFull(t *testing.T, dev device.Device, rng *rand.Rand) {
	r := newRig(t, dev, Options{Room: 100 << 10, HostRoom: 1 << 20, Seed: 1, Long: Long(rng.IntN(3))})
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%0100d", i)
	}
	r.load(keys, rng)
	if !r.tree.leaves.host {
		t.Error("100 KiB have room for 1000 keys of 100 bytes")
	}
	r.look(rng)
	must(t, r.tree.Close())
}
