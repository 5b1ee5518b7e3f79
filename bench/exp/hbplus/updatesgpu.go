package hbplus

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/mirror"
	"github.com/pando-index/pando/papers/hbplus"
)

// The paper's updates with the GPU. Its hybrid is a tree in host memory whose
// inner nodes are mirrored; Pando's own trees on the GPU take the same batches.

const (
	nameOnGPU   = ", inner nodes on the GPU"
	nameCopyGPU = "copy of all inner nodes to the GPU"
)

// updatedGPU is what the GPU has beside an updated tree.
type updatedGPU struct {
	mirror *mirror.Mirror[uint64]
	trees  []*ours.FaceTree[uint64]
	ops    []pando.Op
	found  []bool
}

// apart is the operations of a round with searches and updates apart: where they
// stand, and the pairs of the updates. The paper's hybrid gets them so.
type apart struct {
	asked, changed []int
	keys, vals     []uint64
}

// split fills what follows from a round's operations.
func (u *updated) split() {
	a := &u.apart
	a.asked, a.changed, a.keys, a.vals = a.asked[:0], a.changed[:0], a.keys[:0], a.vals[:0]
	for i, get := range u.gets {
		if get {
			a.asked = append(a.asked, i)
			continue
		}
		a.changed, a.keys, a.vals = append(a.changed, i), append(a.keys, u.keys[i]), append(a.vals, u.vals[i])
	}
	if u.gpu == nil {
		return
	}
	u.gpu.ops, u.gpu.found = make([]pando.Op, len(u.keys)), make([]bool, len(u.keys))
	for i, get := range u.gets {
		if u.gpu.ops[i] = pando.OpSet; get {
			u.gpu.ops[i] = pando.OpGet
		}
	}
}

// within returns which of ascending positions are in [lo, hi).
func within(at []int, lo, hi int) (first, end int) {
	first, _ = slices.BinarySearch(at, lo)
	end, _ = slices.BinarySearch(at, hi)
	return first, end
}

// withGPU calls body with a mirror of the tree on the GPU, if there is one, and
// with whole trees there as well: these have a number of workers of their own.
func (u *updated) withGPU(there, trees bool, body func() error) (err error) {
	if !there {
		return body()
	}
	dev, err := rig.Open(u.s)
	if err != nil {
		return err
	}
	m, err := mirror.New(u.tree, dev, mirror.Options{Workers: u.threads, Way: mirror.Never})
	if err != nil {
		return fmt.Errorf("the paper's hybrid: %w", err)
	}
	u.gpu = &updatedGPU{mirror: m}
	defer func() {
		for _, t := range u.gpu.trees {
			t.Tree.Close()
		}
		err = errors.Join(err, m.Close())
		u.gpu = nil
	}()
	if trees {
		if u.gpu.trees, err = openFaces(u.s, u.d, u.threads); err != nil {
			return err
		}
	}
	return body()
}

// openFaces opens Pando's trees on the GPU, as far as they get there.
func openFaces(s *contest.Session, d *data.Dataset[uint64], threads int) (trees []*ours.FaceTree[uint64], err error) {
	for _, w := range ours.FaceWays(s) {
		if !w.GPU {
			continue
		}
		t, err := ours.OpenFace(s, d.Keys, d.Vals, w, threads)
		if errors.Is(err, pando.ErrOutOfMemory) || errors.Is(err, pando.ErrNoDevice) {
			s.Skip("%s at n %s: %v", w.Name, contest.SizeText(len(d.Keys)), err)
			continue
		}
		if err != nil {
			return trees, err
		}
		if t != nil {
			trees = append(trees, t)
		}
	}
	return trees, nil
}

// onGPU returns every way that needs a GPU: the paper's hybrid, brought up to
// date asynchronously and synchronously, and Pando's own trees.
func (u *updated) onGPU() (out []*contest.Subject) {
	if u.gpu == nil {
		return nil
	}
	out = append(out, u.hybrid(nameAsynchronous+nameOnGPU, mirror.Asynchronous), u.hybrid(nameSynchronous+nameOnGPU, mirror.Synchronous))
	for _, t := range u.gpu.trees {
		for _, r := range t.Rows() {
			out = append(out, u.face(t, r))
		}
	}
	return out
}

// hybrid is the paper's hybrid: searches go through the mirror, then the CPU
// makes the changes, then the mirror follows.
func (u *updated) hybrid(name string, way mirror.Way) *contest.Subject {
	var took time.Duration
	m := u.gpu.mirror
	return &contest.Subject{
		System: name, Whole: true,
		Do: func(ops int) error {
			u.hits = 0
			if err := m.Update(mirror.Asynchronous); err != nil {
				return err
			}
			start := time.Now()
			for lo := 0; lo < ops; lo += u.batch {
				if err := errors.Join(u.hybridBatch(lo, min(lo+u.batch, ops)), m.Update(way)); err != nil {
					return err
				}
			}
			took = time.Since(start)
			return nil
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error {
			if err := u.mirrorFollows(); err != nil {
				return err
			}
			return u.check(false, ops)
		},
	}
}

// hybridBatch does operations [lo, hi), but for bringing the mirror up to date.
func (u *updated) hybridBatch(lo, hi int) error {
	first, end := within(u.apart.asked, lo, hi)
	if err := u.find(u.apart.asked[first:end]); err != nil {
		return err
	}
	first, end = within(u.apart.changed, lo, hi)
	if first == end {
		return nil
	}
	q := &hbplus.Queries[uint64]{Keys: u.apart.keys[first:end], Vals: u.apart.vals[first:end]}
	_, err := hbplus.Asynchronous(u.tree, q, u.threads)
	return err
}

// find looks keys up through the mirror, by their positions.
func (u *updated) find(at []int) error {
	if len(at) == 0 {
		return nil
	}
	hits, ok := u.gpu.mirror.Find(mirror.Batch[uint64]{
		N: len(at),
		Fill: func(lo int, keys []uint64) {
			for i := range keys {
				keys[i] = u.keys[at[lo+i]]
			}
		},
		Answer: func(lo int, vals []uint64, _ []bool) {
			for i, v := range vals {
				u.got[at[lo+i]] = v
			}
		},
	})
	if !ok {
		return fmt.Errorf("the GPU was not asked: %w", u.gpu.mirror.Down())
	}
	u.hits += hits
	return nil
}

// mirrorFollows looks whether all updates of the round are found through the
// mirror, and none of them only by repeating the search on the CPU: then the
// mirror has the inner nodes on their way as they are.
func (u *updated) mirrorFollows() error {
	if err := u.upToDate(); err != nil {
		return err
	}
	for i, at := range u.apart.changed {
		if u.got[at] != u.apart.vals[i] {
			return fmt.Errorf("key %d has %d through the mirror; it should have %d", u.keys[at], u.got[at], u.apart.vals[i])
		}
	}
	return nil
}

// upToDate looks up all updates of the round, which need not be there.
func (u *updated) upToDate() error {
	hits := u.hits
	err := u.find(u.apart.changed)
	u.hits = hits
	if stale := u.gpu.mirror.Stale(); err == nil && len(u.apart.changed) > 0 && stale != 0 {
		return fmt.Errorf("the mirror is behind: %.3g of all searches were repeated", stale)
	}
	return err
}

// face is one of Pando's trees on the GPU, by SetBatch, or by Apply where there
// are searches.
func (u *updated) face(t *ours.FaceTree[uint64], r ours.FaceRow) *contest.Subject {
	var took time.Duration
	return &contest.Subject{
		System: r.Name, Whole: true,
		Do: func(ops int) (err error) {
			copy(u.got, u.vals)
			for i, get := range u.gets {
				if get {
					u.got[i] = ^uint64(0)
				}
			}
			took, err = t.Batches(ops, u.batch, r.Apart, func(lo, hi int) error {
				if u.updates(lo, hi) == hi-lo {
					return t.Tree.SetBatch(u.keys[lo:hi], u.vals[lo:hi])
				}
				return t.Tree.Apply(u.gpu.ops[lo:hi], u.keys[lo:hi], u.got[lo:hi], u.gpu.found[lo:hi])
			})
			return err
		},
		Clock: func() time.Duration { return took },
		Check: func(ops int) error { return u.checkFace(t, ops) },
	}
}

// checkFace checks all answers, and takes out the added keys.
func (u *updated) checkFace(t *ours.FaceTree[uint64], ops int) error {
	for _, i := range u.apart.asked {
		if u.got[i] != u.vals[i] || !u.gpu.found[i] {
			return fmt.Errorf("key %d was found with %d, %v; it should have %d", u.keys[i], u.got[i], u.gpu.found[i], u.vals[i])
		}
		u.got[i], u.gpu.found[i] = ^uint64(0), false
	}
	p := work.PairsOf(u.s, u.apart.keys, u.apart.vals)
	return takeOut(t, p, len(u.d.Keys))
}

// takeOut looks whether a tree of n entries has got all pairs, and takes them out
// again.
func takeOut(t *ours.FaceTree[uint64], p *work.Pairs, n int) error {
	st, ops := ours.StoreOf(t.Name, t.Tree), len(p.Keys)
	err := errors.Join(work.CheckLen(st, n+ops), p.Check(st, ops, true))
	if err != nil {
		return err
	}
	err = p.Delete(st, ops)
	t.Wait()
	return errors.Join(err, t.Strayed())
}

// copyToGPU is a copy of all inner nodes to the GPU, as an asynchronous update
// ends with.
func (u *updated) copyToGPU() *contest.Subject {
	return &contest.Subject{
		System: nameCopyGPU, Whole: true,
		Do:    func(int) error { return u.gpu.mirror.Update(mirror.Asynchronous) },
		Check: func(int) error { return u.upToDate() },
	}
}
