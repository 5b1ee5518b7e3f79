package linearizable

import (
	"github.com/pando-index/pando"
)

// apply notes two operations of one batch, on two keys: each by itself.
func (r *recorder[K, V]) apply(k int, n uint32) {
	other := r.another(k)
	ops := []pando.Op{pando.Op(r.rng.IntN(3)), pando.Op(r.rng.IntN(3))}
	keys, vals, found := []K{r.key(k), r.key(other)}, []V{r.of(n), r.of(n + 1)}, make([]bool, 2)
	ins := []input{{name: "many", keys: []int{k}, ops: ops[:1], vals: []uint32{n}}, {name: "many", keys: []int{other}, ops: ops[1:], vals: []uint32{n + 1}}}
	r.notes(func() ([]input, []output) {
		must(r.tree.Apply(ops, keys, vals, found))
		return ins, []output{r.was(vals[0], found[0]), r.was(vals[1], found[1])}
	}, ins...)
}

// another returns a key other than k.
func (r *recorder[K, V]) another(k int) int { return (k + 1 + r.rng.IntN(most-1)) % most }

// equalKeys sets a key more than once in one batch: only the last value is ever
// seen.
func (r *recorder[K, V]) equalKeys(k int, n uint32) {
	other := r.another(k)
	keys, vals := []K{r.key(k), r.key(other), r.key(k)}, []V{r.of(n + 1), r.of(n + 2), r.of(n)}
	ins := []input{{name: "swap", keys: []int{k}, vals: []uint32{n}}, {name: "swap", keys: []int{other}, vals: []uint32{n + 2}}}
	if r.rng.IntN(4) == 0 && r.other != nil { // in a batch with many others
		for range 64 {
			keys, vals = append(keys, r.name(r.other(r.rng))), append(vals, r.of(1))
		}
	}
	r.notes(func() ([]input, []output) {
		must(r.tree.SetBatch(keys, vals))
		return ins, make([]output, len(ins))
	}, ins...)
}

// sameKey does several operations on one key in one batch, among some on
// another: they are one change.
func (r *recorder[K, V]) sameKey(k int) {
	ks := []int{k, r.another(k)}
	ins := make([]input, 2)
	n := 2 + r.rng.IntN(5)
	keys, vals, found, ops := make([]K, n), make([]V, n), make([]bool, n), make([]pando.Op, n)
	whose := make([]int, n)
	for i := range ops {
		w, val := r.rng.IntN(4)/3, 1+r.rng.Uint32N(1000)
		ops[i], keys[i], vals[i], whose[i] = pando.Op(r.rng.IntN(3)), r.key(ks[w]), r.of(val), w
		ins[w] = input{name: "many", keys: []int{ks[w]}, ops: append(ins[w].ops, ops[i]), vals: append(ins[w].vals, val)}
	}
	if r.rng.IntN(4) == 0 { // nothing is reported
		found = nil
	}
	outs := make([]output, 2)
	for w := 1; w >= 0; w-- {
		if ins[w].keys == nil {
			ins, outs, ks = append(ins[:w:w], ins[w+1:]...), outs[:1], append(ks[:w:w], ks[w+1:]...)
		}
	}
	r.notes(func() ([]input, []output) {
		must(r.tree.Apply(ops, keys, vals, found))
		for i := range ops {
			w := min(whose[i], len(outs)-1)
			if found != nil {
				outs[w].vals = append(outs[w].vals, r.number(vals[i], found[i]))
			}
		}
		return ins, outs
	}, ins...)
}
