package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/op"
)

var gpuTreeU32 = &contest.Experiment{
	Name:     "gpu-tree-u32",
	About:    "inserts of uint32 pairs into an empty tree in the GPU's memory, and lookups, beside MVGpuBTree",
	Per:      "one pair inserted, or one key looked up, in the GPU's memory",
	CaseName: "what",
	Sizes:    []int{45_000_000, 64 * contest.Mega},
	Extra:    contest.GigaColumns,
	Run:      runGPUTreeU32,
}

func runGPUTreeU32(s *contest.Session) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint32]) error {
			for _, w := range []struct {
				what string
				do   func(*insertions, *contest.Subject) error
			}{{"insert", (*insertions).inserts}, {"find", (*insertions).finds}} {
				err := peers.WithMVGpuBTree(s, w.what, len(d.Keys), func(peer *contest.Subject) error {
					t := &insertions{g: g, d: d}
					return w.do(t, peer)
				})
				if err := g.ClearTree(len(d.Keys), err); err != nil {
					return err
				}
			}
			return nil
		})
	})
	s.SetGigas()
	return err
}

// insertions is all pairs of a dataset, in random order, for an empty tree.
type insertions struct {
	g          *rig.Rig
	d          *data.Dataset[uint32]
	keys, vals rig.Ptr
	scratch    rig.Ptr
	want       []uint32
	tree       *chunked.Tree[uint32]
	took       time.Duration
}

func (t *insertions) prepare() error {
	p, n := rig.Placing{G: t.g}, len(t.d.Keys)
	keys, step := make([]uint32, n), strideOf(n)
	t.want = make([]uint32, n)
	for i := range keys {
		keys[i] = t.d.Keys[i*step%n]
		t.want[i] = data.ValueOf(keys[i])
	}
	t.keys, t.vals, t.scratch = rig.Place(&p, keys), rig.Place(&p, t.want), p.Room(4*n)
	t.g.Memory = append(t.g.Memory, p.Memory...)
	return p.Err
}

// fill fills an empty tree in batches, each taken in the way that suits it.
func (t *insertions) fill(batch int) (err error) {
	if t.tree, err = chunked.New[uint32](t.g.Dev, chunked.Options{}); err != nil {
		return err
	}
	n, st := len(t.want), t.tree.Stream()
	if err := errors.Join(st.CopyDevice(t.scratch, t.keys, 4*n), st.Synchronize()); err != nil {
		return err
	}
	start := time.Now()
	for lo := 0; lo < n && err == nil; lo += batch {
		at := rig.Ptr(4 * lo)
		err = t.tree.Apply(&chunked.Ops{N: min(batch, n-lo), Keys: t.scratch + at, Vals: t.vals + at, Kind: op.Set})
	}
	err = errors.Join(err, st.Synchronize())
	t.took = time.Since(start)
	return err
}

func (t *insertions) inserts(peer *contest.Subject) error {
	if err := t.prepare(); err != nil {
		return err
	}
	c := &contest.Contest{N: len(t.want), Threads: contest.AllCores(), Label: "insert", Ops: len(t.want)}
	for _, batch := range []int{len(t.want), 4 * contest.Mega, contest.Mega} {
		name := ours.NameGPUTree + ", one batch"
		if batch < len(t.want) {
			name = fmt.Sprintf("%s, batches of %s", ours.NameGPUTree, contest.SizeText(batch))
		} else if len(c.Subjects) > 0 {
			continue
		}
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: name, OnGPU: true, Whole: true, Reference: len(c.Subjects) == 0,
			Do:    func(int) error { return t.fill(batch) },
			Clock: func() time.Duration { return t.took },
			Check: func(int) error { return errors.Join(t.check(), t.tree.Close()) },
		})
	}
	if peer != nil {
		c.Subjects = append(c.Subjects, peer)
	}
	return t.g.S.Compete(c)
}

// check looks all keys up.
func (t *insertions) check() error {
	n, st := len(t.want), t.tree.Stream()
	if got := t.tree.Len(); got != n {
		return fmt.Errorf("%d entries; there should be %d", got, n)
	}
	p := rig.Placing{G: t.g}
	out, bits := p.Room(4*n), p.Room(rig.BitBytes(n))
	if p.Err == nil {
		p.Err = errors.Join(t.tree.Find(t.keys, n, out, bits), st.Synchronize())
	}
	if p.Err == nil {
		p.Err = rig.ReadBack(t.g, out, n, equalTo("key", t.want))
	}
	return errors.Join(p.Err, p.Free())
}

// finds looks all keys up, in random order, in a tree that has grown by batches.
func (t *insertions) finds(peer *contest.Subject) (err error) {
	if err := t.prepare(); err != nil {
		return err
	}
	if err := t.fill(contest.Mega); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.tree.Close()) }()
	p, n := rig.Placing{G: t.g}, len(t.want)
	out, bits := p.Room(4*n), p.Room(rig.BitBytes(n))
	t.g.Memory = append(t.g.Memory, p.Memory...)
	if p.Err != nil {
		return p.Err
	}
	usual := t.g.Stream
	sub := t.g.Subject(ours.NameGPUTree, float64(t.tree.Bytes())/float64(n),
		func(int) error { return t.tree.Find(t.keys, n, out, bits) },
		func(int) error { return t.g.Stream.Fill(out, 0x55555555, 4*n) },
		func(int) error { return rig.ReadBack(t.g, out, n, equalTo("key", t.want)) })
	do := sub.Do
	sub.Whole, sub.Reference = true, true
	sub.Do = func(ops int) error {
		t.g.Stream = t.tree.Stream()
		defer func() { t.g.Stream = usual }()
		return do(ops)
	}
	c := &contest.Contest{N: n, Threads: contest.AllCores(), Label: "find", Ops: n, Subjects: []*contest.Subject{sub}}
	if peer != nil {
		c.Subjects = append(c.Subjects, peer)
	}
	return t.g.S.Compete(c)
}
