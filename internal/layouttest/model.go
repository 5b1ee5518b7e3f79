package layouttest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
)

// form is how a tree holds values.
type form struct {
	pairs bool // beside their keys
	size  int  // bytes of a value; 0 for none
}

func (f form) String() string {
	if f.pairs {
		return fmt.Sprintf("pairs with values of %d bytes", f.size)
	}
	return fmt.Sprintf("values of %d bytes", f.size)
}

// held is what a tree holds, as the simplest thing that could be right: sorted
// keys, and a value for each.
type held[C layout.Code] struct {
	form
	keys []C
	vals []byte
}

func newHeld[C layout.Code](keys []C, f form) *held[C] {
	h := &held[C]{form: f, keys: keys, vals: roomFor(len(keys) * f.size)}
	for i := range keys {
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], uint64(i+1)*0x9e3779b97f4a7c15)
		copy(h.val(i), v[:])
	}
	return h
}

// roomFor returns bytes that numbers can lie in.
func roomFor(bytes int) []byte { return arena.Bytes(make([]uint64, bytes/8+1))[:bytes] }

// val returns value i.
func (h *held[C]) val(i int) []byte { return h.vals[i*h.size:][:h.size] }

// code returns value i of pairs.
func (h *held[C]) code(i int) C { return arena.As[C](h.vals)[i] }

// rank returns the number of keys below one.
func (h *held[C]) rank(key C) int {
	i, _ := slices.BinarySearch(h.keys, key)
	return i
}

// find returns the number of the first key that is equal to one, or -1.
func (h *held[C]) find(key C) int {
	i, ok := slices.BinarySearch(h.keys, key)
	if !ok {
		return -1
	}
	return i
}

// The ways to hand over what a tree is built from.
const (
	inMemory = iota // keys and values where they lie
	encoded         // keys by a function
	both            // keys and values by one
	waysIn
)

// source is what a tree is built from, in memory of its own: spoil overwrites
// it.
func (h *held[C]) source(way int) (src layout.Source[C], spoil func()) {
	keys, vals := slices.Clone(h.keys), roomFor(len(h.vals))
	copy(vals, h.vals)
	src = layout.Source[C]{Len: len(keys), Codes: keys}
	if way != inMemory {
		src.Codes, src.Encode = nil, func(dst []C, lo int) { copy(dst, keys[lo:lo+len(dst)]) }
	}
	switch {
	case h.size > 0 && way == both:
		src.Both = func(ks []C, vs []byte, lo int) {
			copy(ks, keys[lo:lo+len(vs)/h.size])
			copy(vs, vals[lo*h.size:])
		}
	case h.size > 0:
		src.Vals = unsafe.Pointer(unsafe.SliceData(vals))
	}
	return src, func() {
		for i := range keys {
			keys[i] = C(i) * 12345
		}
		clear(vals)
	}
}

// config is how to build a tree that holds this.
func (h *held[C]) config() layout.Config {
	return layout.Config{Pairs: h.pairs, ValSize: h.size, Workers: 1}
}

// answers are what a tree must answer to queries.
type answers[C layout.Code] struct {
	of           *held[C]
	asked        []C
	ranks, finds []int
	vals         []C // of pairs
	found        []bool
	hits         int
}

// answers works out what must be answered.
func (h *held[C]) answers(asked []C) *answers[C] {
	n := len(asked)
	a := &answers[C]{of: h, asked: asked, ranks: make([]int, n), finds: make([]int, n), vals: make([]C, n), found: make([]bool, n)}
	for i, key := range asked {
		a.ranks[i], a.finds[i] = h.rank(key), h.find(key)
		if at := a.finds[i]; at >= 0 {
			a.found[i] = true
			a.hits++
			if h.pairs {
				a.vals[i] = h.code(at)
			}
		}
	}
	return a
}

// part returns the answers to queries [lo, hi).
func (a *answers[C]) part(lo, hi int) *answers[C] {
	p := &answers[C]{of: a.of, asked: a.asked[lo:hi], ranks: a.ranks[lo:hi], finds: a.finds[lo:hi], vals: a.vals[lo:hi], found: a.found[lo:hi]}
	for _, yes := range p.found {
		if yes {
			p.hits++
		}
	}
	return p
}

// kinds are keys that try to break something: of n keys, key i before they are
// sorted.
func kinds[C layout.Code](rng *rand.Rand, n int) map[string]func(i int) C {
	center := C(rng.Uint64())
	return map[string]func(i int) C{
		"random":       func(int) C { return C(rng.Uint64()) },
		"all zero":     func(int) C { return 0 },
		"all maximum":  func(int) C { return ^C(0) },
		"all equal":    func(int) C { return center },
		"ends":         func(int) C { return C(rng.IntN(4)) - 2 }, // 0, 1 and the two greatest
		"few distinct": func(int) C { return C(rng.IntN(n/7+1)) * 10 },
		"dense":        func(i int) C { return C(i) },
		"dense at end": func(i int) C { return ^C(0) - C(i) },
		"clustered": func(int) C { // differences of every magnitude
			return C(rng.IntN(5))<<(8*width[C]()-3) + C(rng.Uint64())>>rng.IntN(8*width[C]())
		},
	}
}

// keysOf returns n sorted keys of a kind.
func keysOf[C layout.Code](rng *rand.Rand, kind string, n int) []C {
	keys, key := make([]C, n), kinds[C](rng, n)[kind]
	for i := range keys {
		keys[i] = key(i)
	}
	slices.Sort(keys)
	return keys
}

// allKinds lists the kinds in order, so that a seed repeats a run.
func allKinds[C layout.Code]() (names []string) {
	for name := range kinds[C](rand.New(rand.NewPCG(1, 1)), 1) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// questions returns what to ask, in any order: the ends of the domain, and every
// key that is held with its neighbours, or some where there are too many.
func questions[C layout.Code](rng *rand.Rand, keys []C, most int) []C {
	out := []C{0, 1, ^C(0), ^C(0) - 1, ^C(0) / 2, ^C(0)/2 + 1, C(rng.Uint64())}
	if 3*len(keys) <= most {
		for _, k := range keys {
			out = append(out, k-1, k, k+1)
		}
	} else {
		for len(out) < most {
			out = append(out, keys[rng.IntN(len(keys))]+C(rng.IntN(3))-1)
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// width is the bytes of a code.
func width[C layout.Code]() int {
	var c C
	return int(unsafe.Sizeof(c))
}
