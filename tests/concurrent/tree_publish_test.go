package concurrent_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pando-index/pando"
)

// parcel is something on the Go heap that goes from one goroutine to another
// through a tree, and through nothing else.
type parcel struct{ key, half, twice uint64 }

func (p *parcel) fill(k uint64) { p.key, p.half, p.twice = k, k/2, k*2 }

func (p *parcel) open(k uint64) error {
	if p.key != k || p.half != k/2 || p.twice != k*2 {
		return fmt.Errorf("parcel of key %d has %v", k, *p)
	}
	return nil
}

// way is a method that sends, or one that receives and reports whether there was
// something. V is a pointer to a parcel, or its number: a number lies in the tree,
// where the race detector sees nothing. val stands for a parcel that fill has yet
// to fill.
type way[K pando.Key, V any] struct {
	name string
	send func(tree *pando.Tree[K, V], k K, val V, fill func())
	take func(tree *pando.Tree[K, V], k K, open func(V)) bool
}

func sending[K pando.Key, V any]() []way[K, V] {
	type tree = *pando.Tree[K, V]
	return []way[K, V]{
		{name: "Set", send: func(t tree, k K, v V, fill func()) { fill(); t.Set(k, v) }},
		{name: "Swap", send: func(t tree, k K, v V, fill func()) { fill(); t.Swap(k, v) }},
		{name: "Update", send: func(t tree, k K, v V, fill func()) {
			t.Update(k, func(V, bool) (V, bool) { fill(); return v, true })
		}},
		{name: "SetBatch", send: func(t tree, k K, v V, fill func()) { fill(); t.SetBatch([]K{k}, []V{v}) }},
		{name: "Apply", send: func(t tree, k K, v V, fill func()) {
			fill()
			t.Apply([]pando.Op{pando.OpSet}, []K{k}, []V{v}, nil)
		}},
	}
}

func taking[K pando.Key, V any](number func(K) uint64) []way[K, V] {
	type tree = *pando.Tree[K, V]
	found := func(k, want K, v V, ok bool, open func(V)) bool {
		if ok = ok && k == want; ok {
			open(v)
		}
		return ok
	}
	frozen := func(f *pando.Frozen[K, V], k K, open func(V)) bool {
		defer f.Close()
		v, ok := f.Get(k)
		return found(k, k, v, ok, open)
	}
	return []way[K, V]{
		{name: "Get", take: func(t tree, k K, open func(V)) bool { v, ok := t.Get(k); return found(k, k, v, ok, open) }},
		{name: "GetBatch", take: func(t tree, k K, open func(V)) bool {
			vals, ok := make([]V, 1), make([]bool, 1)
			t.GetBatch([]K{k}, vals, ok)
			return found(k, k, vals[0], ok[0], open)
		}},
		{name: "Ceil", take: func(t tree, k K, open func(V)) bool { c, v, ok := t.Ceil(k); return found(c, k, v, ok, open) }},
		{name: "Floor", take: func(t tree, k K, open func(V)) bool { c, v, ok := t.Floor(k); return found(c, k, v, ok, open) }},
		{name: "Range", take: func(t tree, k K, open func(V)) bool {
			for c, v := range t.Range(k, k) {
				return found(c, k, v, true, open)
			}
			return false
		}},
		{name: "Backward", take: func(t tree, k K, open func(V)) bool {
			for c, v := range t.Backward() {
				if found(c, k, v, true, open) {
					return true
				}
			}
			return false
		}},
		{name: "RangeBatch", take: func(t tree, k K, open func(V)) bool {
			_, vals := t.RangeBatch([]K{k}, []K{k}, 0).At(0)
			return len(vals) > 0 && found(k, k, vals[0], true, open)
		}},
		{name: "At", take: func(t tree, k K, open func(V)) bool {
			if t.Count(k, k) == 0 { // keys come one after the other, and stay
				return false
			}
			c, v := t.At(int(number(k)))
			return found(c, k, v, true, open)
		}},
		{name: "Swap", take: func(t tree, k K, open func(V)) bool {
			v, ok := t.Get(k)
			if ok {
				v, _, _ = t.Swap(k, v)
			}
			return found(k, k, v, ok, open)
		}},
		{name: "Update", take: func(t tree, k K, open func(V)) (ok bool) {
			t.Update(k, func(v V, had bool) (V, bool) { ok = found(k, k, v, had, open); return v, had })
			return ok
		}},
		{name: "Delete", take: func(t tree, k K, open func(V)) bool { v, ok := t.Delete(k); return found(k, k, v, ok, open) }},
		{name: "PopMin", take: func(t tree, k K, open func(V)) bool { c, v, ok := t.PopMin(); return found(c, k, v, ok, open) }},
		{name: "Apply", take: func(t tree, k K, open func(V)) bool {
			vals, ok := make([]V, 1), make([]bool, 1)
			t.Apply([]pando.Op{pando.OpGet}, []K{k}, vals, ok)
			return found(k, k, vals[0], ok[0], open)
		}},
		{name: "Snapshot", take: func(t tree, k K, open func(V)) bool { return frozen(t.Snapshot(), k, open) }},
		{name: "Freeze", take: func(t tree, k K, open func(V)) bool {
			f, err := t.Freeze(pando.On(pando.CPU))
			return err == nil && frozen(f, k, open)
		}},
	}
}

// A goroutine that finds what another has put into a tree finds what that one
// had written before. Under the race detector this also shows that it knows.
func TestTreePublishes(t *testing.T) {
	same := func(k uint64) uint64 { return k }
	publishAll(t, 40, same, same)
}

func TestTreeOfStringsPublishes(t *testing.T) {
	number := func(s string) (k uint64) { fmt.Sscanf(s, "key %d", &k); return k }
	publishAll(t, 8, func(k uint64) string { return fmt.Sprintf("key %04d", k) }, number)
}

// publishAll sends numbers and pointers by all ways, under keys that are in the
// order of their numbers.
func publishAll[K pando.Key](t *testing.T, n uint64, key func(uint64) K, number func(K) uint64) {
	for _, from := range sending[K, uint64]() {
		for _, to := range taking[K, uint64](number) {
			t.Run(fmt.Sprint("numbers by ", from.name, " and ", to.name), func(t *testing.T) {
				parcels := make([]parcel, n)
				publish(t, n, key, from, to, func(k uint64) (uint64, *parcel) { return k, &parcels[k] },
					func(i uint64) *parcel { return &parcels[i] })
			})
		}
	}
	for _, from := range sending[K, *parcel]() {
		for _, to := range taking[K, *parcel](number) {
			t.Run(fmt.Sprint("pointers by ", from.name, " and ", to.name), func(t *testing.T) {
				publish(t, n, key, from, to, func(uint64) (*parcel, *parcel) { p := new(parcel); return p, p },
					func(p *parcel) *parcel { return p })
			})
		}
	}
}

// publish sends parcels one way and receives them another.
func publish[K pando.Key, V any](t *testing.T, n uint64, key func(uint64) K, from, to way[K, V], make func(uint64) (V, *parcel), at func(V) *parcel) {
	tree, err := pando.NewTree[K, V](pando.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	go func() {
		for k := range n {
			v, p := make(k)
			from.send(tree, key(k), v, func() { p.fill(k) })
		}
	}()
	for k := range n {
		for !to.take(tree, key(k), func(v V) {
			if err := at(v).open(k); err != nil {
				t.Error(err)
			}
		}) {
			runtime.Gosched()
		}
	}
}
