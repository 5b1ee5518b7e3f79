package linearizable

import (
	"runtime"

	"github.com/pando-index/pando"
)

// held is a snapshot that is read later, and the operation that took it.
type held[K pando.Key, V any] struct {
	snapshot *pando.Frozen[K, V]
	op       int
}

// entry returns what an operation has found as output: nothing if it is not one
// of the keys.
func (r *recorder[K, V]) entry(name K, v V, ok bool) output {
	if !ok || name < r.key(0) || name > r.key(most-1) {
		return output{}
	}
	key := r.key1(name)
	if (key-r.base)%r.far != 0 {
		return output{}
	}
	return output{keys: []int{int((key - r.base) / r.far)}, vals: []uint32{r.to(v)}}
}

func ceil(k int) input  { return input{name: "ceil", keys: []int{k}} }
func floor(k int) input { return input{name: "floor", keys: []int{k}} }

// several does an operation whose answer depends on several keys.
func (r *recorder[K, V]) several() {
	k, t := r.rng.IntN(most), r.tree
	kinds := 7
	if r.low || r.high {
		kinds = 11
	}
	switch r.rng.IntN(kinds) {
	case 0:
		r.note(ceil(k), func() output { return r.entry(t.Ceil(r.key(k))) })
	case 1:
		r.note(floor(k), func() output { return r.entry(t.Floor(r.key(k))) })
	case 2:
		r.upwards(k)
	case 3:
		r.downwards(k)
	case 4, 5:
		r.walk(k)
	case 6:
		r.atOnce()
	default:
		r.end()
	}
}

// end does an operation on the first key or the last.
func (r *recorder[K, V]) end() {
	t := r.tree
	first := r.low && (!r.high || r.rng.IntN(2) == 0)
	switch kind := r.rng.IntN(4); {
	case first && kind == 0:
		r.note(ceil(0), func() output { return r.entry(t.Min()) })
	case first && kind == 1:
		r.note(ceil(0), func() output {
			if c := t.Cursor(); c.First() {
				return r.entry(c.Key(), c.Value(), true)
			}
			return output{}
		})
	case first:
		r.note(input{name: "pop"}, func() output { return r.entry(t.PopMin()) })
	case kind == 0:
		r.note(floor(most-1), func() output { return r.entry(t.Max()) })
	case kind == 1:
		r.note(floor(most-1), func() output {
			for k, v := range t.Backward() {
				return r.entry(k, v, true)
			}
			return output{}
		})
	default:
		r.note(input{name: "pop last"}, func() output { return r.entry(t.PopMax()) })
	}
}

// stepsOf is how many steps of an iteration are noted, each an operation of its
// own.
const stepsOf = 3

// upwards goes through some keys from k on.
func (r *recorder[K, V]) upwards(k int) {
	call, steps, end := now(), 0, r.key(most-1)
	for key, v := range r.tree.Range(r.key(k), end) {
		out := r.entry(key, v, true)
		r.stepped(ceil(k), call, out)
		k = out.keys[0] + 1
		if steps++; steps == stepsOf || k == most {
			return
		}
		call = now()
	}
	r.stepped(ceil(k), call, output{})
}

// downwards goes through some keys from k down.
func (r *recorder[K, V]) downwards(k int) {
	call, steps := now(), 0
	for key, v := range r.tree.Scan(pando.From(r.key(0)), pando.To(r.key(k)), pando.Reverse()) {
		out := r.entry(key, v, true)
		r.stepped(floor(k), call, out)
		k = out.keys[0] - 1
		if steps++; steps == stepsOf || k < 0 {
			return
		}
		call = now()
	}
	r.stepped(floor(k), call, output{})
}

// walk moves a cursor to and fro, as long as it is at one of the keys.
func (r *recorder[K, V]) walk(k int) {
	c := r.tree.Cursor()
	found := func(ok bool) output {
		if !ok {
			return output{}
		}
		return r.entry(c.Key(), c.Value(), true)
	}
	out := r.note(ceil(k), func() output { return found(c.Seek(r.key(k))) })
	for steps := 0; steps < stepsOf && len(out.keys) > 0; steps++ {
		k = out.keys[0]
		if r.rng.IntN(4) == 0 {
			runtime.Gosched()
		}
		if r.rng.IntN(2) == 0 {
			out = r.note(ceil(k+1), func() output { return found(c.Next()) })
		} else {
			out = r.note(floor(k-1), func() output { return found(c.Prev()) })
		}
	}
}

// atOnce looks at all keys of one moment: that of a snapshot, now or at the end
// of the history, or of a copy.
func (r *recorder[K, V]) atOnce() {
	in := input{name: "whole"}
	if r.rng.IntN(4) == 0 {
		r.note(in, func() output {
			f, err := r.tree.Freeze(pando.On(pando.CPU))
			must(err)
			defer f.Close()
			return r.all(f)
		})
		return
	}
	var s *pando.Frozen[K, V]
	out := r.note(in, func() output { s = r.tree.Snapshot(); return output{} })
	if out.closed {
		return
	}
	r.held = append(r.held, held[K, V]{s, len(r.ops) - 1})
	if r.rng.IntN(2) == 0 {
		r.readHeld()
	}
}

// readHeld reads snapshots that were taken before.
func (r *recorder[K, V]) readHeld() {
	for _, h := range r.held {
		r.ops[h.op].Output = r.all(h.snapshot)
		h.snapshot.Close()
	}
	r.held = nil
}

// all returns the values of all keys.
func (r *recorder[K, V]) all(ix *pando.Frozen[K, V]) output {
	out := output{vals: make([]uint32, most)}
	if r.rng.IntN(2) == 0 {
		for k, v := range ix.Range(r.key(0), r.key(most-1)) {
			e := r.entry(k, v, true)
			out.vals[e.keys[0]] = e.vals[0]
		}
		return out
	}
	for k := range out.vals {
		v, ok := ix.Get(r.key(k))
		out.vals[k] = r.number(v, ok)
	}
	return out
}
