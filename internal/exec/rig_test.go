package exec

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packed"
)

// shape says what tree a rig has.
type shape struct {
	leaves  implicit.Leaves
	valSize int
	form    int // implicit's fanout, 0 for the default; or one of those below
	entries int
}

// Forms of a tree that is not implicit's.
const (
	packedPages = -1
	pagedRows   = -1 // less the levels of lines in a page
)

func (s shape) String() string {
	return fmt.Sprintf("%d entries, %v, form %d, values of %d bytes", s.entries, s.leaves, s.form, s.valSize)
}

// tree is a tree of any form.
type tree[C order.Code] interface {
	layout.Tree[C]
	layout.Stepped[C]
	layout.Valued
	layout.OnDevice
}

// codec turns keys of one type into codes and back.
type codec[K order.Key, C order.Code] struct{}

func (codec[K, C]) Encode(k K) C { return C(order.Encode(order.TypeOf[K](), k).Code) }

func (codec[K, C]) Decode(c C) K {
	return order.Decode[K](order.TypeOf[K](), order.Probe{Code: uint64(c)})
}

func (codec[K, C]) EncodeSlice(dst []C, keys []K) []C { return order.Codes(order.KeysOf(keys), dst) }
func (codec[K, C]) DecodeSlice(dst []K, codes []C)    { order.SetKeys(order.KeysOf(dst), codes) }
func (codec[K, C]) Identity() bool                    { return order.KeysOf(make([]K, 1)).Raw() != nil }

// rig is a tree with what asks it: the CPU's schedule, which is the reference,
// and all that a GPU's is made of.
type rig[K order.Key, C order.Code] struct {
	shape
	codec codec[K, C]
	tree  tree[C]
	cpu   *CPU[C]
	image layout.Image
	held  []K
}

// newRig builds a tree over random keys with duplicates, the domain's ends
// among them.
func newRig[K order.Key, C order.Code](t testing.TB, rng *rand.Rand, s shape, workers int) *rig[K, C] {
	t.Helper()
	r := rig[K, C]{shape: s}
	return newRigOf[K](t, rng, s, workers, func() C { return r.codec.Encode(r.randomKey(rng)) })
}

// newRigOf builds a tree over keys with codes of any kind.
func newRigOf[K order.Key, C order.Code](t testing.TB, rng *rand.Rand, s shape, workers int, code func() C) *rig[K, C] {
	t.Helper()
	r := &rig[K, C]{shape: s}
	codes := make([]C, s.entries)
	for i := range codes {
		codes[i] = code()
	}
	slices.Sort(codes)
	vals := make([]uint64, s.entries+1) // room for the widest
	for i := range vals {
		vals[i] = rng.Uint64()
	}
	src := layout.Source[C]{Len: s.entries, Codes: codes, Vals: unsafe.Pointer(&vals[0])}
	if err := r.build(src, implicit.Config{Leaves: s.leaves, ValSize: s.valSize}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.tree.Release)
	r.cpu = NewCPU(r.tree, s.entries, workers)
	r.image = r.tree.Image()
	r.held = make([]K, s.entries)
	r.codec.DecodeSlice(r.held, codes)
	return r
}

// build makes the tree.
func (r *rig[K, C]) build(src layout.Source[C], cfg implicit.Config) error {
	switch {
	case r.form == packedPages:
		t, err := packed.Build(src, cfg)
		if err != nil {
			return err
		}
		r.tree = t
	case r.form < 0:
		levels := pagedRows - r.form
		t, err := blocked.Build(src, blocked.Config{Config: cfg, Geometry: blocked.Geometry{P: levels * bits.TrailingZeros(64/uint(width[C]()))}})
		if err != nil {
			return err
		}
		if r.tree = t; cfg.Leaves == implicit.Pairs {
			r.tree = blocked.Paired[C]{Tree: t}
		}
	default:
		cfg.Fanout = r.form
		t, err := implicit.Build(src, cfg)
		if err != nil {
			return err
		}
		if r.tree = t; cfg.Leaves == implicit.Pairs {
			r.tree = implicit.Paired[C]{Tree: t}
		}
	}
	return nil
}

// randomKey returns keys close together, so that some are equal, and the ends.
func (r *rig[K, C]) randomKey(rng *rand.Rand) K {
	code := C(rng.IntN(2*r.entries+4)) + 1<<(8*width[C]()-1)
	switch rng.IntN(16) {
	case 0:
		code = C(rng.IntN(2))
	case 1:
		code = ^C(0) - C(rng.IntN(2))
	}
	return r.codec.Decode(code)
}

// questions returns n keys, about half of them held.
func (r *rig[K, C]) questions(rng *rand.Rand, n int) []K {
	keys := make([]K, n)
	for i := range keys {
		if len(r.held) > 0 && rng.IntN(2) == 0 {
			keys[i] = r.held[rng.IntN(len(r.held))]
		} else {
			keys[i] = r.randomKey(rng)
		}
	}
	return keys
}

// open makes a GPU's schedule on the interpreter; opts are the interpreter's.
func (r *rig[K, C]) open(t testing.TB, keep Keep, opts ...ptx.Option) *GPU[C] {
	t.Helper()
	return r.openOn(t, ptx.New(opts...), keep)
}

func (r *rig[K, C]) openOn(t testing.TB, d device.Device, keep Keep) *GPU[C] {
	t.Helper()
	g, err := NewGPU(r.cpu, d, r.image, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// asker is a schedule of either kind.
type asker[C order.Code] interface {
	Rank(keys order.Keys, ranks []int)
	RankAfter(keys order.Keys, ranks []int)
	FindEach(keys order.Keys, sink Sink) (hits int)
	GetPairs(keys order.Keys, vals []C, found []bool) (hits int)
}

// runs are those that Entries copies.
type runs struct{ first, offsets []int }

// randomRuns returns runs of entries, some empty, some long.
func (r *rig[K, C]) randomRuns(rng *rand.Rand, n int) runs {
	of := runs{offsets: []int{0}}
	for range n {
		lo := rng.IntN(r.entries + 1)
		length := []int{0, 1, 3, 40}[rng.IntN(4)]
		of.first = append(of.first, lo)
		of.offsets = append(of.offsets, of.offsets[len(of.offsets)-1]+min(length, r.entries-lo))
	}
	return of
}

// reply is all that a log of operations gives.
type reply[K order.Key] struct {
	Ranks, After []int
	Places       *places
	Vals, Vals2  []byte
	Found        []bool
	Hits         []int
	Keys         []K
	Entries      []byte
}

// dirty is the content of results before they are set: what is overlooked
// shows.
const dirty = 0x5a

func dirtyBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = dirty
	}
	return b
}

func dirtyInts(n int) []int {
	return slices.Repeat([]int{dirty}, n)
}

// ask runs the log: every operation once, on the same keys.
func (r *rig[K, C]) ask(e asker[C], keys []K, of runs) *reply[K] {
	n := len(keys)
	a := &reply[K]{Ranks: dirtyInts(n), After: dirtyInts(n), Places: newPlaces(n), Found: make([]bool, n)}
	for i := range a.Found {
		a.Found[i] = i%3 == 0
	}
	e.Rank(order.KeysOf(keys), a.Ranks)
	e.RankAfter(order.KeysOf(keys), a.After)
	a.Hits = append(a.Hits, e.FindEach(order.KeysOf(keys), a.Places))
	if r.valSize > 0 {
		a.Vals, a.Vals2 = dirtyBytes(n*r.valSize), dirtyBytes(n*r.valSize)
		a.Hits = append(a.Hits, r.values(e, keys, a.Vals, a.Found), r.values(e, keys, a.Vals2, nil))
	}
	a.Keys, a.Entries = make([]K, of.offsets[len(of.first)]), dirtyBytes(of.offsets[len(of.first)]*r.valSize)
	onCPU := func(lo, hi int) { r.copyRuns(of, a.Keys, a.Entries, lo, hi) }
	if g, ok := e.(*GPU[C]); ok {
		g.Entries(of.first, of.offsets, order.KeysOf(a.Keys), a.Entries, onCPU)
	} else {
		onCPU(0, len(a.Keys))
	}
	return a
}

// values looks values up, by whatever call suits the tree.
func (r *rig[K, C]) values(e asker[C], keys []K, raw []byte, found []bool) int {
	if r.leaves == implicit.Pairs {
		return e.GetPairs(order.KeysOf(keys), arena.As[C](raw), found)
	}
	sink := &column[C]{tree: r.tree, size: r.valSize, raw: raw, found: found}
	if g, ok := e.(*GPU[C]); ok {
		return g.FindVals(order.KeysOf(keys), sink, raw, found)
	}
	return e.FindEach(order.KeysOf(keys), sink)
}

// column is a sink that copies values out of a tree's column.
type column[C order.Code] struct {
	tree  tree[C]
	size  int
	raw   []byte
	found []bool
}

func (c *column[C]) Take(lo int, ranks []int) (hits int) {
	for i, r := range ranks {
		dst := c.raw[(lo+i)*c.size : (lo+i+1)*c.size]
		clear(dst)
		if r >= 0 {
			hits++
			copy(dst, unsafe.Slice((*byte)(c.tree.Val(r)), c.size))
		}
		if c.found != nil {
			c.found[lo+i] = r >= 0
		}
	}
	return hits
}

// copyRuns copies entries [lo, hi) of the result, one by one.
func (r *rig[K, C]) copyRuns(of runs, keys []K, raw []byte, lo, hi int) {
	for run, first := range of.first {
		for e := max(of.offsets[run], lo); e < min(of.offsets[run+1], hi); e++ {
			at := first + e - of.offsets[run]
			keys[e] = r.held[at]
			if r.valSize > 0 {
				copy(raw[e*r.valSize:], unsafe.Slice((*byte)(r.tree.Val(at)), r.valSize))
			}
		}
	}
}

// differ says where two replies do, or "".
func differ[K order.Key](got, want *reply[K]) string {
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			return fmt.Sprintf("%s: got %v, the CPU has %v", g.Type().Field(i).Name, g.Field(i), w.Field(i))
		}
	}
	return ""
}
