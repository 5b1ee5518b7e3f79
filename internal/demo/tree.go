package demo

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
)

// A TreeResult is the demonstration of a tree: every operation is done to a Go
// map, too, which keeps no order, and both must agree.
type TreeResult struct {
	Entries int    `json:"entries"`
	Steps   []Step `json:"steps"`
	Bytes   int64  `json:"bytes"`
	tree    *pando.Tree[uint64, uint64]
	model   map[uint64]uint64
	rng     *rand.Rand
}

// A Step is one kind of change or query, in ns per key. Map is 0 where a map
// has nothing like it.
type Step struct {
	Name string  `json:"step"`
	Tree float64 `json:"tree_ns"`
	Map  float64 `json:"map_ns,omitempty"`
}

// Tree fills a tree with n pairs, changes and asks it. It says on progress what it does.
func Tree(n int, seed uint64, progress io.Writer) (*TreeResult, error) {
	fmt.Fprintf(progress, "filling a tree with %d pairs ...\n", n)
	d := &TreeResult{model: make(map[uint64]uint64, n), rng: rand.New(rand.NewPCG(seed, 1))}
	var err error
	if d.tree, err = pando.NewTree[uint64, uint64](); err != nil {
		return nil, err
	}
	defer d.tree.Close()
	some := min(n, mostAsked)
	for _, s := range []struct {
		name string
		n    int
		run  func(keys []uint64) error
		same func(keys []uint64)
	}{
		{"SetBatch, random keys", n, func(keys []uint64) error { return d.tree.SetBatch(keys, keys) }, d.setMap},
		{"Set, one random key at a time", some, d.setEach, d.setMap},
		{"GetBatch", some, d.get, d.getMap},
		{"GetBatch beside a writer", some, d.getBeside, nil},
		{"Delete, one key at a time", some / 2, d.deleteEach, d.deleteMap},
		{"DeleteBatch", some / 2, func(keys []uint64) error { d.tree.DeleteBatch(keys, nil); return nil }, d.deleteMap},
	} {
		fmt.Fprintf(progress, "%s ...\n", s.name)
		keys := make([]uint64, s.n)
		for i := range keys {
			keys[i] = d.rng.Uint64N(uint64(2 * n)) // about every second one is there
		}
		took, err := nanosOf(func() error { return s.run(keys) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		step := Step{Name: s.name, Tree: took / float64(s.n)}
		if s.same != nil {
			took, _ := nanosOf(func() error { s.same(keys); return nil })
			step.Map = took / float64(s.n)
		}
		d.Steps = append(d.Steps, step)
	}
	return d, d.finish()
}

// nanosOf returns the nanoseconds that f took.
func nanosOf(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return float64(time.Since(start).Nanoseconds()), err
}

func (d *TreeResult) setEach(keys []uint64) error {
	for _, k := range keys {
		if err := d.tree.Set(k, k); err != nil {
			return err
		}
	}
	return nil
}

func (d *TreeResult) setMap(keys []uint64) {
	for _, k := range keys {
		d.model[k] = k
	}
}

func (d *TreeResult) deleteEach(keys []uint64) error {
	for _, k := range keys {
		d.tree.Delete(k)
	}
	return nil
}

func (d *TreeResult) deleteMap(keys []uint64) {
	for _, k := range keys {
		delete(d.model, k)
	}
}

func (d *TreeResult) get(keys []uint64) error {
	d.tree.GetBatch(keys, make([]uint64, len(keys)), make([]bool, len(keys)))
	return nil
}

func (d *TreeResult) getMap(keys []uint64) {
	vals, found := make([]uint64, len(keys)), make([]bool, len(keys))
	for i, k := range keys {
		vals[i], found[i] = d.model[k]
	}
}

// getBeside asks while another goroutine writes as fast as it can. The writer
// sets entries that are there already, so that the map need not follow.
func (d *TreeResult) getBeside(keys []uint64) error {
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if k := keys[i%len(keys)]; d.model[k] == k {
				d.tree.Set(k, k)
			}
		}
	})
	err := d.get(keys)
	stop.Store(true)
	wg.Wait()
	return err
}

// finish takes a snapshot, and compares all entries with the map.
func (d *TreeResult) finish() error {
	took, _ := nanosOf(func() error { return d.tree.Snapshot().Close() })
	d.Steps = append(d.Steps, Step{Name: "Snapshot, the whole of it", Tree: took})
	n, last := 0, uint64(0)
	for k, v := range d.tree.All() {
		if n > 0 && k <= last || d.model[k] != v {
			return errWrong
		}
		n, last = n+1, k
	}
	if n != len(d.model) || d.tree.Len() != n {
		return errWrong
	}
	s := d.tree.Stats()
	d.Entries, d.Bytes = s.Len, s.TotalBytes
	return nil
}

// Print writes the result for people.
func (d *TreeResult) Print(out io.Writer) {
	fmt.Fprintf(out, "%-38s %12s %16s\n", "per key", "Tree", "Go map, unordered")
	for _, s := range d.Steps {
		other := "-"
		if s.Map > 0 {
			other = fmt.Sprintf("%.1f ns", s.Map)
		}
		fmt.Fprintf(out, "%-38s %9.1f ns %16s\n", s.Name, s.Tree, other)
	}
	fmt.Fprintf(out, "\ntree:   %d entries in %.1f MB, %.1f bytes each\n", d.Entries, float64(d.Bytes)/1e6, float64(d.Bytes)/float64(max(d.Entries, 1)))
	fmt.Fprintf(out, "All entries were compared with the map's and are equal. Batches use all cores.\n")
}
