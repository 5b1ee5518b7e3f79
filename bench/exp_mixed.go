package main

import (
	"fmt"

	"github.com/google/btree"
)

var mixedExp = &experiment{
	name:     "mixed",
	about:    "the workloads A to F of YCSB, uniform and Zipf 0.99, by single calls and by Apply",
	per:      "one operation",
	caseName: "workload",
	sizes:    usualSizes,
	queries:  mega,
	run:      runMixed,
}

// mixing is a store that does the operations of a workload by single calls. got
// is what each of them has found, as mix has it.
type mixing interface {
	store
	Mix(x *mix, got []uint64) error
}

func runMixed(s *session) error {
	return forEachSize(s, func(d *dataset[uint64]) error {
		g := newGrowth(s, d)
		stores, err := buildStores(s, len(d.keys), append([]storeMaker{makeTreeStore(1)}, peerStores()...), g.grow)
		if err != nil {
			return err
		}
		defer closeStores(stores)
		batched, err := makeStore(makeTreeStore(1), g.grow)
		if err != nil {
			closeStores(stores)
			return err
		}
		stores = append(stores, &applyStore{batched.(*treeStore)})
		for _, w := range workloads {
			for _, zipf := range []bool{false, true} {
				if err := mixedContest(s, d, w, zipf, stores); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// mixedContest measures one workload. Afterwards all stores have what they had
// before, but for z.Tree, which keeps what was added: those keys are random, and
// no others are asked for.
func mixedContest(s *session, d *dataset[uint64], w workload, zipf bool, stores []store) error {
	label := w.name + ", uniform"
	if zipf {
		label = w.name + ", Zipf"
	}
	m, x := newMixer(w, d, zipf), newMix(min(s.queries, mega))
	got := make([]uint64, len(x.ops))
	c := &contest{n: len(d.keys), threads: 1, label: label, ops: len(x.ops), fresh: func(round int) {
		if round >= 0 {
			m.draw(s.roundRand(round), x)
		}
	}}
	for i, st := range stores {
		if !canMix(st, w) {
			continue
		}
		c.subjects = append(c.subjects, mixes(st.Name(), x, got, i == 0, func() error { return st.(mixing).Mix(x, got) }))
	}
	if err := s.compete(c); err != nil {
		return err
	}
	return m.undo(stores)
}

// canMix reports whether a store has all operations of a workload.
func canMix(st store, w workload) bool {
	if _, mixes := st.(mixing); !mixes {
		return false
	}
	_, walks := st.(walker)
	_, batches := st.(*applyStore)
	return walks && !batches || !w.has(mixScan) && !(batches && w.has(mixModify))
}

func mixes(name string, x *mix, got []uint64, reference bool, do func() error) *subject {
	return &subject{
		system: name, reference: reference, whole: true,
		do: func(int) error { return do() },
		check: func(int) error {
			for i, v := range got {
				if v != x.want[i] {
					return fmt.Errorf("operation %d (%d on key %d) found %d; it should be %d", i, x.ops[i], x.keys[i], v, x.want[i])
				}
				got[i] = ^uint64(0)
			}
			return nil
		},
	}
}

// undo gives stores back the values that a workload has changed, and takes out
// what it has added.
func (m *mixer) undo(stores []store) error {
	keys, vals := make([]uint64, 0, len(m.set)), make([]uint64, 0, len(m.set))
	for k := range m.set {
		keys, vals = append(keys, k), append(vals, valueOf(k))
	}
	for _, st := range stores {
		if err := st.Set(keys, vals); err != nil {
			return err
		}
		if del, ok := st.(deleter); ok && len(m.late) > 0 {
			if !canMix(st, m.work) {
				continue
			}
			if n := del.Delete(m.late); n != len(m.late) {
				return fmt.Errorf("%s: %d added keys of %d are there", st.Name(), n, len(m.late))
			}
		}
	}
	return nil
}

// applyStore is Pando's tree that does the operations by Apply, in
// batches.
type applyStore struct{ *treeStore }

const applyBatch = 64 * kilo

func (t *applyStore) Name() string {
	return fmt.Sprintf("Pando Apply, %s a batch", sizeText(applyBatch))
}

func (t *applyStore) Mix(x *mix, got []uint64) error {
	for lo := 0; lo < len(x.ops); lo += applyBatch {
		hi := min(lo+applyBatch, len(x.ops))
		if err := t.apply(x.ops[lo:hi], x.keys[lo:hi], x.vals[lo:hi], got[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeStore) Mix(x *mix, got []uint64) error {
	tree := t.tree
	for i, op := range x.ops {
		k := x.keys[i]
		got[i] = 0
		switch op {
		case mixRead:
			got[i], _ = tree.Get(k)
		case mixScan:
			keys, vals := t.Walk(k, int(x.vals[i]))
			got[i] = keys + vals
		case mixModify:
			if err := tree.Update(k, func(old uint64, _ bool) (uint64, bool) { return modified(old), true }); err != nil {
				return err
			}
		default:
			if err := tree.Set(k, x.vals[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tidwallStore) Mix(x *mix, got []uint64) error {
	for i, op := range x.ops {
		k := x.keys[i]
		got[i] = 0
		switch op {
		case mixRead:
			got[i], _ = t.tree.Get(k)
		case mixScan:
			keys, vals := t.Walk(k, int(x.vals[i]))
			got[i] = keys + vals
		case mixModify:
			v, _ := t.tree.Get(k)
			t.tree.Set(k, modified(v))
		default:
			t.tree.Set(k, x.vals[i])
		}
	}
	return nil
}

func (t *googleStore) Mix(x *mix, got []uint64) error {
	for i, op := range x.ops {
		k := pair[uint64]{key: x.keys[i]}
		got[i] = 0
		switch op {
		case mixRead:
			got[i] = googleValue(t.tree, k)
		case mixScan:
			keys, vals := t.Walk(k.key, int(x.vals[i]))
			got[i] = keys + vals
		case mixModify:
			t.tree.ReplaceOrInsert(pair[uint64]{k.key, modified(googleValue(t.tree, k))})
		default:
			t.tree.ReplaceOrInsert(pair[uint64]{k.key, x.vals[i]})
		}
	}
	return nil
}

func googleValue(t *btree.BTreeG[pair[uint64]], k pair[uint64]) uint64 {
	p, _ := t.Get(k)
	return p.val
}

func (t *zStore) Mix(x *mix, got []uint64) error {
	for i, op := range x.ops {
		k := x.keys[i]
		got[i] = 0
		switch op {
		case mixRead:
			got[i] = t.tree.Get(k)
		case mixModify:
			t.tree.Set(k, modified(t.tree.Get(k)))
		default:
			t.tree.Set(k, x.vals[i])
		}
	}
	return nil
}

func (t *skipStore) Mix(x *mix, got []uint64) error {
	for i, op := range x.ops {
		k := x.keys[i]
		got[i] = 0
		switch op {
		case mixRead:
			got[i], _ = t.list.Load(k)
		case mixModify:
			v, _ := t.list.Load(k)
			t.list.Store(k, modified(v))
		default:
			t.list.Store(k, x.vals[i])
		}
	}
	return nil
}
