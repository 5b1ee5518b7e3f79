package linearizable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// recorder does operations for one goroutine, and notes them.
type recorder[K pando.Key, V any] struct {
	*setup[K, V]
	id     int
	rng    *rand.Rand
	ops    []porcupine.Operation
	held   []held[K, V]
	closed bool // an operation has said that the tree is closed
}

var start = time.Now()

func now() int64 { return int64(time.Since(start)) }

// note does an operation and notes it.
func (r *recorder[K, V]) note(in input, do func() output) (out output) {
	return r.notes(func() ([]input, []output) { return []input{in}, []output{do()} }, in)[0]
}

// notes does what counts as several operations at once, and notes them. In the
// place of one that says that the tree is closed it notes what it would have been.
func (r *recorder[K, V]) notes(do func() ([]input, []output), meant ...input) []output {
	call := now()
	ins, outs := r.unlessClosed(do)
	end := now()
	if ins == nil {
		ins, outs = meant, make([]output, len(meant))
		for i := range outs {
			outs[i].closed = true
		}
	}
	for i, in := range ins {
		r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: in, Call: call, Output: outs[i], Return: end})
	}
	return outs
}

// stepped notes a step of an iteration, which ends now.
func (r *recorder[K, V]) stepped(in input, call int64, out output) {
	r.ops = append(r.ops, porcupine.Operation{ClientId: r.id, Input: in, Call: call, Output: out, Return: now()})
}

// unlessClosed returns nothing if the tree is closed.
func (r *recorder[K, V]) unlessClosed(do func() ([]input, []output)) (ins []input, outs []output) {
	defer func() {
		if v := recover(); v != nil {
			if !facetest.ClosedText(fmt.Sprint(v)) {
				panic(v)
			}
			ins, r.closed = nil, true
		}
	}()
	return do()
}

// must panics over an error, as methods do that return none.
func must(err error) {
	if errors.Is(err, pando.ErrClosed) {
		panic("pando: Tree closed, by an error")
	}
	if err != nil {
		panic(err)
	}
}

func (r *recorder[K, V]) key(k int) K { return r.name(r.base + uint64(k)*r.far) }

// number returns the value of a key that may not be there.
func (r *recorder[K, V]) number(v V, ok bool) uint32 {
	if !ok {
		return 0
	}
	return r.to(v)
}

func (r *recorder[K, V]) was(v V, ok bool) output { return output{vals: []uint32{r.number(v, ok)}} }

func whether(ok bool) output {
	if ok {
		return output{vals: []uint32{1}}
	}
	return output{vals: []uint32{0}}
}

// any does any operation, and now and then lets others go on.
func (r *recorder[K, V]) any() {
	if r.whole && r.rng.IntN(2) == 0 {
		r.several()
	} else {
		r.one()
	}
	if r.rng.IntN(4) == 0 {
		runtime.Gosched()
	}
}

// one does an operation on one key, or what counts as one for each of several.
func (r *recorder[K, V]) one() {
	k, n := r.rng.IntN(most), 1+r.rng.Uint32N(1000)
	switch kind := r.rng.IntN(20); {
	case kind < 6:
		r.read(kind, k)
	case kind < 12:
		r.write(kind-6, k, n)
	case kind == 12:
		r.apply(k, n)
	case kind == 13:
		r.equalKeys(k, n)
	case kind == 14:
		r.sameKey(k)
	case kind == 15:
		r.deleteRange(k)
	case r.change == nil:
		r.read(kind%6, k)
	case kind == 16 || kind == 17:
		r.note(input{name: "get", keys: []int{k}}, func() output { return r.was(r.sum(r.tree, r.key(k))) })
	case kind == 18 || r.whole: // to judge many changes of all keys at once would take years
		r.note(input{name: "change", keys: []int{k}, vals: []uint32{n}}, func() output {
			changed, err := r.change(r.tree, r.key(k), r.key(k), n)
			must(err)
			return output{vals: []uint32{uint32(changed)}}
		})
	default:
		r.changeAll(n)
	}
}

// read asks for a key in one of many ways.
func (r *recorder[K, V]) read(kind, k int) {
	key, t := r.key(k), r.tree
	get := input{name: "get", keys: []int{k}}
	switch kind {
	case 0:
		r.note(get, func() output { return r.was(t.Get(key)) })
	case 1:
		r.note(get, func() output {
			vals, found := make([]V, 1), make([]bool, 1)
			t.GetBatch([]K{key}, vals, found)
			return r.was(vals[0], found[0])
		})
	case 2:
		r.note(get, func() (o output) {
			scan := t.Range(key, key)
			if r.rng.IntN(2) == 0 {
				scan = t.Scan(pando.From(key), pando.To(key), pando.Reverse())
			}
			o = output{vals: []uint32{0}}
			for _, v := range scan {
				o = r.was(v, true)
			}
			return o
		})
	case 3:
		r.note(get, func() output {
			s := t.Snapshot()
			defer s.Close()
			return r.was(s.Get(key))
		})
	case 4:
		r.note(get, func() output {
			if c := t.Cursor(); c.Seek(key) && c.Key() == key {
				return r.was(c.Value(), true)
			}
			return output{vals: []uint32{0}}
		})
	case 5:
		r.note(input{name: "has", keys: []int{k}}, func() output { return whether(t.Has(key)) })
	}
}

// write changes a key in one of many ways.
func (r *recorder[K, V]) write(kind, k int, n uint32) {
	key, val, t := r.key(k), r.of(n), r.tree
	set := input{name: "swap", keys: []int{k}, vals: []uint32{n}}
	switch kind {
	case 0:
		r.note(set, func() output { must(t.Set(key, val)); return output{} })
	case 1:
		r.note(set, func() output { v, ok, err := t.Swap(key, val); must(err); return r.was(v, ok) })
	case 2:
		r.note(input{name: "swap", keys: []int{k}, vals: []uint32{0}}, func() output { return r.was(t.Delete(key)) })
	case 3:
		r.note(input{name: "add", keys: []int{k}, vals: []uint32{n}}, func() (o output) {
			must(t.Update(key, func(old V, had bool) (V, bool) {
				o = r.was(old, had)
				return r.of(o.vals[0] + n), true
			}))
			return o
		})
	case 4:
		r.note(input{name: "swap", keys: []int{k}, vals: []uint32{0}}, func() (o output) {
			must(t.Update(key, func(old V, had bool) (V, bool) { o = r.was(old, had); return old, false }))
			return o
		})
	case 5:
		r.note(input{name: "remove", keys: []int{k}}, func() output {
			if r.rng.IntN(2) == 0 {
				return whether(t.DeleteRange(key, key) == 1)
			}
			found := make([]bool, 1)
			t.DeleteBatch([]K{key}, found)
			return whether(found[0])
		})
	}
}

// changeAll notes a change of all keys, each of them by itself.
func (r *recorder[K, V]) changeAll(n uint32) {
	ins := make([]input, most)
	for k := range ins {
		ins[k] = input{name: "change", keys: []int{k}, vals: []uint32{n}, part: true}
	}
	r.notes(func() ([]input, []output) {
		_, err := r.change(r.tree, r.key(0), r.key(most-1), n)
		must(err)
		return ins, make([]output, most)
	}, ins...)
}

// deleteRange deletes two or three keys, each by itself: nobody is told which of
// them were there, but where none or all were.
func (r *recorder[K, V]) deleteRange(k int) {
	last := min(k+1+r.rng.IntN(2), most-1)
	var ins []input
	for at := k; at <= last; at++ {
		ins = append(ins, input{name: "remove", keys: []int{at}, part: true})
	}
	r.notes(func() ([]input, []output) {
		n := r.tree.DeleteRange(r.key(k), r.key(last))
		outs := make([]output, len(ins))
		for i := range outs {
			switch {
			case n == 0:
				outs[i] = whether(false)
			case n == len(ins) && r.far == 1: // else others are among them
				outs[i] = whether(true)
			}
		}
		return ins, outs
	}, ins...)
}
