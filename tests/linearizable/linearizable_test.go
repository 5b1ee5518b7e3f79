// Package linearizable records what many goroutines do to a Tree at once, and
// has porcupine judge whether it could have been done one after the other.
//
// PANDO_HISTORIES is the number of histories of each test; a few seconds' worth
// without it.
package linearizable

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// most is the number of keys that a history is about. Others around them come
// and go, so that their leaves are split and merged.
const most = 8

// state is the values of the keys, 0 for none.
type state [most]uint32

// input is an operation: the key that it is about, and the value to be set; 0
// deletes.
type input struct {
	name string
	keys []int
	vals []uint32
}

// output is what an operation returned: keys that were found, in the order in
// which it did, and their values; 0 for none.
type output struct {
	keys []int
	vals []uint32
}

// describe is for messages.
func describe(in, out any) string { return fmt.Sprintf("%v → %v", in, out) }

// step does an operation on a state, and reports whether it returns what it
// did.
func step(at, in, out any) (bool, any) {
	s, i, o := at.(state), in.(input), out.(output)
	switch i.name {
	case "get":
		return s[i.keys[0]] == o.vals[0], s
	case "swap": // Set, Swap, Delete, Update and Apply on one key
		ok := o.vals == nil || s[i.keys[0]] == o.vals[0]
		s[i.keys[0]] = i.vals[0]
		return ok, s
	case "add":
		ok := o.vals != nil && s[i.keys[0]] == o.vals[0] // it was asked what it makes of it
		s[i.keys[0]] += i.vals[0]
		return ok, s
	case "change": // Transform, which leaves keys alone that are not there
		had := s[i.keys[0]] != 0
		if had {
			s[i.keys[0]] += i.vals[0]
		}
		return o.vals == nil || had == (o.vals[0] == 1), s
	case "ceil":
		k := i.keys[0]
		for k < most && s[k] == 0 {
			k++
		}
		return s.is(k, o), s
	case "floor":
		k := i.keys[0]
		for k >= 0 && s[k] == 0 {
			k--
		}
		return s.is(k, o), s
	case "pop":
		k := 0
		for k < most && s[k] == 0 {
			k++
		}
		ok := s.is(k, o)
		if k < most {
			s[k] = 0
		}
		return ok, s
	}
	panic(i.name)
}

// is reports whether an operation has returned key k, or none if that is out of
// range.
func (s state) is(k int, o output) bool {
	if k < 0 || k >= most {
		return len(o.keys) == 0
	}
	return len(o.keys) == 1 && o.keys[0] == k && o.vals[0] == s[k]
}

// byKey parts a history whose operations are about one key each.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	parts = make([][]porcupine.Operation, most)
	for _, op := range history {
		k := op.Input.(input).keys[0]
		parts[k] = append(parts[k], op)
	}
	return parts
}

func model(part bool) porcupine.Model {
	m := porcupine.Model{Init: func() any { return state{} }, Step: step, DescribeOperation: describe}
	if part {
		m.Partition = byKey
	}
	return m
}

// recorder does operations for one goroutine, and notes them.
type recorder[K pando.Key, V any] struct {
	*setup[K, V]
	id  int
	rng *rand.Rand
	ops []porcupine.Operation
}

var start = time.Now()

// note does an operation and notes it.
func (r *recorder[K, V]) note(in input, do func() output) {
	call := int64(time.Since(start))
	out := do()
	r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: in, Call: call, Output: out, Return: int64(time.Since(start))})
}

func (r *recorder[K, V]) key(k int) K { return r.name(r.base + uint64(k)*r.far) }

// number returns the value of a key that may not be there.
func (r *recorder[K, V]) number(v V, ok bool) uint32 {
	if !ok {
		return 0
	}
	return r.to(v)
}

// one does an operation on one key.
func (r *recorder[K, V]) one() {
	k, n, t := r.rng.IntN(most), 1+r.rng.Uint32N(1000), r.tree
	key, val := r.key(k), r.of(n)
	set := input{name: "swap", keys: []int{k}, vals: []uint32{n}}
	remove := input{name: "swap", keys: []int{k}, vals: []uint32{0}}
	get := input{name: "get", keys: []int{k}}
	was := func(v V, ok bool) output { return output{vals: []uint32{r.number(v, ok)}} }
	kinds := 10
	switch {
	case r.change == nil:
	case r.whole: // to judge many changes of all keys at once would take years
		kinds = 12
	default:
		kinds = 13
	}
	switch r.rng.IntN(kinds) {
	case 0:
		r.note(get, func() output { return was(t.Get(key)) })
	case 1:
		r.note(get, func() output {
			vals, found := make([]V, 1), make([]bool, 1)
			t.GetBatch([]K{key}, vals, found)
			return was(vals[0], found[0])
		})
	case 2:
		r.note(set, func() output { t.Set(key, val); return output{} })
	case 3:
		r.note(set, func() output { v, ok, _ := t.Swap(key, val); return was(v, ok) })
	case 4, 5:
		r.note(remove, func() output { return was(t.Delete(key)) })
	case 6:
		r.note(input{name: "add", keys: []int{k}, vals: []uint32{n}}, func() (o output) {
			t.Update(key, func(old V, had bool) (V, bool) {
				o = was(old, had)
				return r.of(o.vals[0] + n), true
			})
			return o
		})
	case 7:
		r.note(get, func() output {
			for _, v := range t.Range(key, key) {
				return was(v, true)
			}
			return was(val, false)
		})
	case 8:
		r.apply(k, n)
	case 9:
		r.note(get, func() output {
			s := t.Snapshot()
			defer s.Close()
			return was(s.Get(key))
		})
	case 10:
		r.note(get, func() output { return was(r.sum(t, key)) })
	case 11:
		r.note(input{name: "change", keys: []int{k}, vals: []uint32{n}}, func() output {
			return output{vals: []uint32{uint32(r.change(t, key, key, n))}}
		})
	case 12:
		r.changeAll(n)
	}
}

// changeAll notes a change of all keys, each of them by itself.
func (r *recorder[K, V]) changeAll(n uint32) {
	call := int64(time.Since(start))
	r.change(r.tree, r.key(0), r.key(most-1), n)
	end := int64(time.Since(start))
	for k := range most {
		in := input{name: "change", keys: []int{k}, vals: []uint32{n}}
		r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: in, Call: call, Output: output{}, Return: end})
	}
}

// apply notes two operations of one batch, on two keys: as if one after the
// other.
func (r *recorder[K, V]) apply(k int, n uint32) {
	other := (k + 1 + r.rng.IntN(most-1)) % most
	ops := []pando.Op{pando.Op(r.rng.IntN(3)), pando.Op(r.rng.IntN(3))}
	keys, vals, found := []K{r.key(k), r.key(other)}, []V{r.of(n), r.of(n + 1)}, make([]bool, 2)
	call := int64(time.Since(start))
	r.tree.Apply(ops, keys, vals, found)
	end := int64(time.Since(start))
	for i, k := range []int{k, other} {
		in := input{name: "swap", keys: []int{k}}
		switch ops[i] {
		case pando.OpGet:
			in.name = "get"
		case pando.OpSet:
			in.vals = []uint32{n + uint32(i)}
		case pando.OpDelete:
			in.vals = []uint32{0}
		}
		out := output{vals: []uint32{r.number(vals[i], found[i])}}
		r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: in, Call: call, Output: out, Return: end})
	}
}

// several does an operation whose answer depends on several keys.
func (r *recorder[K, V]) several() {
	k, t := r.rng.IntN(most), r.tree
	last := r.key(most - 1)
	entry := func(name K, v V, ok bool) output {
		if !ok || name < r.key(0) || name > last {
			return output{}
		}
		key := r.key1(name)
		if (key-r.base)%r.far != 0 {
			return output{}
		}
		return output{[]int{int((key - r.base) / r.far)}, []uint32{r.to(v)}}
	}
	kinds := 3
	if r.pop {
		kinds = 4
	}
	switch r.rng.IntN(kinds) {
	case 0:
		r.note(input{name: "ceil", keys: []int{k}}, func() output { return entry(t.Ceil(r.key(k))) })
	case 1:
		r.note(input{name: "floor", keys: []int{k}}, func() output { return entry(t.Floor(r.key(k))) })
	case 3:
		r.note(input{name: "pop"}, func() output { return entry(t.PopMin()) })
	case 2: // each step of an iteration is an operation of its own
		call := int64(time.Since(start))
		steps := 0
		for key, v := range t.Range(r.key(k), last) {
			out := entry(key, v, true)
			r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: input{name: "ceil", keys: []int{k}}, Call: call, Output: out, Return: int64(time.Since(start))})
			k = out.keys[0] + 1
			if steps++; steps == 3 || k == most {
				return
			}
			call = int64(time.Since(start))
		}
		r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: input{name: "ceil", keys: []int{k}}, Call: call, Output: output{}, Return: int64(time.Since(start))})
	}
}

// histories returns how many histories to take.
func histories(short int) int {
	if n, err := strconv.Atoi(os.Getenv("PANDO_HISTORIES")); err == nil {
		return n
	}
	if testing.Short() || seed.RaceDetector || stall.On {
		return short / 5
	}
	return short
}

// setup is a tree, and how it is used.
type setup[K pando.Key, V any] struct {
	tree  *pando.Tree[K, V]
	name  func(uint64) K // key of a number, in the same order
	key1  func(K) uint64
	of    func(uint32) V // value of a number
	to    func(V) uint32
	base  uint64 // key 0
	far   uint64 // distance of keys
	whole bool   // operations whose answer depends on several keys, too
	pop   bool   // PopMin among them
	opts  []pando.Option

	// What vector operations do, nil where values are no numbers: the value of a
	// key by Aggregate, and n added to all from lo to hi, which returns how many.
	sum    func(t *pando.Tree[K, V], key K) (V, bool)
	change func(t *pando.Tree[K, V], lo, hi K, n uint32) int
}

// history records what goroutines do at once.
func (u *setup[K, V]) history(s uint64, goroutines, ops int) (all []porcupine.Operation) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range goroutines {
		r := &recorder[K, V]{setup: u, id: g, rng: rand.New(rand.NewPCG(s, uint64(g)))}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range ops {
				if u.whole && r.rng.IntN(2) == 0 {
					r.several()
				} else {
					r.one()
				}
				if r.rng.IntN(4) == 0 {
					runtime.Gosched()
				}
			}
			mu.Lock()
			all = append(all, r.ops...)
			mu.Unlock()
		}()
	}
	wg.Wait()
	return all
}

// clear deletes the keys.
func (u *setup[K, V]) clear() {
	for k := range uint64(most) {
		u.tree.Delete(u.name(u.base + k*u.far))
	}
}

// crowd fills and empties the leaves around until stop is closed, so that they
// are split and merged. key returns a key that is not one of the histories'.
func (u *setup[K, V]) crowd(s uint64, stop chan struct{}, key func(rng *rand.Rand) uint64) {
	rng := rand.New(rand.NewPCG(s, 99))
	var keys []K
	for {
		for range 2000 {
			select {
			case <-stop:
				return
			default:
			}
			k := u.name(key(rng))
			keys = append(keys, k)
			u.tree.Set(k, u.of(1))
		}
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for len(keys) > 50 {
			select {
			case <-stop:
				return
			default:
			}
			u.tree.Delete(keys[len(keys)-1])
			keys = keys[:len(keys)-1]
		}
	}
}

// holdUp makes goroutines wait between the steps of the protocol, in builds with
// stalls.
func holdUp(t *testing.T) {
	if !stall.On {
		return
	}
	plain := simd.Use(simd.Go)
	undo := stall.Use(func(point string) {
		switch n := rand.IntN(300); {
		case n == 0:
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
		case n < 30:
			runtime.Gosched()
		}
	})
	t.Cleanup(func() { undo(); plain() })
}

// run takes histories of a tree and judges them.
func run[K pando.Key, V any](t *testing.T, u setup[K, V], n int, key func(rng *rand.Rand) uint64) {
	holdUp(t)
	var err error
	if u.tree, err = pando.NewTree[K, V](append(u.opts, pando.Workers(2))...); err != nil {
		t.Fatal(err)
	}
	defer u.tree.Close()
	s := seed.Of(t)
	stop := make(chan struct{})
	var crowds sync.WaitGroup
	for i := range 2 { // nodes are changed by several besides those of the history
		crowds.Add(1)
		go func() { defer crowds.Done(); u.crowd(s+uint64(i), stop, key) }()
	}
	defer func() { close(stop); crowds.Wait() }()
	goroutines, ops := 5, 12
	if u.whole {
		goroutines, ops = 4, 6
	}
	for i := range n {
		u.clear()
		judge(t, model(!u.whole), u.history(s+uint64(i), goroutines, ops))
	}
}

// keys makes what has values a setup for keys.
func keys[K pando.Key, V any](u setup[uint64, V], name func(uint64) K, number func(K) uint64) setup[K, V] {
	return setup[K, V]{name: name, key1: number, of: u.of, to: u.to, base: u.base, far: u.far, whole: u.whole, pop: u.pop}
}

func same(n uint64) uint64 { return n }

// named returns a number as a string: some are long, and have much in common.
func named(n uint64) string { return fmt.Sprintf("a common prefix/%08d", n) }

func number(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "a common prefix/"), 10, 64)
	return n
}

func numbers(base, far uint64, whole, pop bool) setup[uint64, uint64] {
	return setup[uint64, uint64]{name: same, key1: same, of: func(n uint32) uint64 { return uint64(n) }, to: func(v uint64) uint32 { return uint32(v) }, base: base, far: far, whole: whole, pop: pop,
		sum: func(t *pando.Tree[uint64, uint64], key uint64) (uint64, bool) {
			s := pando.Aggregate(t, key, key)
			return s.Sum, s.Count == 1
		},
		change: func(t *pando.Tree[uint64, uint64], lo, hi uint64, n uint32) int {
			changed, _ := pando.Transform(t, lo, hi, pando.Add(uint64(n)))
			return changed
		},
	}
}

func texts(base, far uint64, whole, pop bool) setup[uint64, string] {
	to := func(v string) uint32 { n, _ := strconv.Atoi(v); return uint32(n) }
	return setup[uint64, string]{name: same, key1: same, of: func(n uint32) string { return strconv.Itoa(int(n)) }, to: to, base: base, far: far, whole: whole, pop: pop}
}

// between returns keys between those of a history, which lie 1000 apart.
func between(rng *rand.Rand) uint64 { return rng.Uint64N(most)*1000 + 1 + rng.Uint64N(999) }

// around returns keys on both sides of those of a history, behind only those
// above.
func around(rng *rand.Rand) uint64 {
	if rng.IntN(2) == 0 {
		return 50_000 - 1 - rng.Uint64N(1000)
	}
	return behind(rng)
}

func behind(rng *rand.Rand) uint64 { return 50_000 + most + rng.Uint64N(1000) }

func TestSingleKeys(t *testing.T) {
	n := histories(600)
	t.Run("numbers", func(t *testing.T) { run(t, numbers(0, 1000, false, false), n, between) })
	t.Run("texts", func(t *testing.T) { run(t, texts(0, 1000, false, false), n/2, between) })
	t.Run("by strings", func(t *testing.T) { run(t, keys(numbers(0, 1000, false, false), named, number), n, between) })
	t.Run("texts by strings", func(t *testing.T) { run(t, keys(texts(0, 1000, false, false), named, number), n/2, between) })
}

func TestSeveralKeys(t *testing.T) {
	n := histories(600)
	t.Run("numbers", func(t *testing.T) { run(t, numbers(50_000, 1, true, false), n, around) })
	t.Run("texts", func(t *testing.T) { run(t, texts(50_000, 1, true, false), n/2, around) })
	t.Run("by strings", func(t *testing.T) { run(t, keys(numbers(50_000, 1, true, false), named, number), n, around) })
	t.Run("texts by strings", func(t *testing.T) { run(t, keys(texts(50_000, 1, true, false), named, number), n/2, around) })
}

func TestPop(t *testing.T) {
	n := histories(600)
	t.Run("numbers", func(t *testing.T) { run(t, numbers(50_000, 1, true, true), n, behind) })
	t.Run("texts", func(t *testing.T) { run(t, texts(50_000, 1, true, true), n/2, behind) })
	t.Run("by strings", func(t *testing.T) { run(t, keys(numbers(50_000, 1, true, true), named, number), n, behind) })
	t.Run("texts by strings", func(t *testing.T) { run(t, keys(texts(50_000, 1, true, true), named, number), n/2, behind) })
}

// The same where each batch, however small, goes to the interpreter in the place
// of a GPU.
func TestOnGPU(t *testing.T) {
	onDevice(t, pando.GPU(0))
	on := func(t *testing.T, u setup[string, uint64], n int, key func(rng *rand.Rand) uint64) {
		indextest.Interpreted(t, 1)
		u.opts = []pando.Option{pando.On(pando.GPU(0))}
		run(t, u, n, key)
	}
	n := histories(10)
	t.Run("single strings", func(t *testing.T) { on(t, keys(numbers(0, 1000, false, false), named, number), n, between) })
	t.Run("several strings", func(t *testing.T) { on(t, keys(numbers(50_000, 1, true, false), named, number), n, around) })
	t.Run("pop of strings", func(t *testing.T) { on(t, keys(numbers(50_000, 1, true, true), named, number), n, behind) })
}

// The same where inner nodes are mirrored there, which the tree leaves behind.
func TestOnHybrid(t *testing.T) { onDevice(t, pando.Hybrid(0)) }

func onDevice(t *testing.T, dev pando.Device) {
	on := func(t *testing.T, u setup[uint64, uint64], n int, key func(rng *rand.Rand) uint64) {
		indextest.Interpreted(t, 1)
		u.opts = []pando.Option{pando.On(dev)}
		run(t, u, n, key)
	}
	n := histories(10)
	t.Run("single keys", func(t *testing.T) { on(t, numbers(0, 1000, false, false), n, between) })
	t.Run("several keys", func(t *testing.T) { on(t, numbers(50_000, 1, true, false), n, around) })
	t.Run("pop", func(t *testing.T) { on(t, numbers(50_000, 1, true, true), n, behind) })
}

// judge fails a test if a history is not linearizable.
func judge(t *testing.T, m porcupine.Model, h []porcupine.Operation) {
	t.Helper()
	if res := porcupine.CheckOperationsTimeout(m, h, 20*time.Second); res != porcupine.Ok {
		for _, op := range h {
			t.Logf("%d: %d to %d: %s", op.ClientId, op.Call, op.Return, describe(op.Input, op.Output))
		}
		t.Fatalf("a history of %d operations: %v", len(h), res)
	}
}
