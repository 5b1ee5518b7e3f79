package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
)

var gpuTreeU32 = &experiment{
	name:     "gpu-tree-u32",
	about:    "inserts of uint32 pairs into an empty tree in the GPU's memory, and lookups, beside MVGpuBTree",
	per:      "one pair inserted, or one key looked up, in the GPU's memory",
	caseName: "what",
	sizes:    []int{45_000_000, 64 * mega},
	extra:    gigaColumns,
	run:      runGPUTreeU32,
}

const nameMVGpuBTree = "MVGpuBTree"

// peerFolder names the folder of a peer's sources, which are not part of this
// repository.
const peerFolder = "PANDO_MVGPUBTREE"

func runGPUTreeU32(s *session) error {
	err := withGPU(s, 0, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint32]) error {
			for _, w := range []struct {
				what string
				do   func(*insertions, *subject) error
			}{{"insert", (*insertions).inserts}, {"find", (*insertions).finds}} {
				err := withMVGpuBTree(s, w.what, len(d.keys), func(peer *subject) error {
					t := &insertions{g: g, d: d}
					return w.do(t, peer)
				})
				if err := g.clearTree(len(d.keys), err); err != nil {
					return err
				}
			}
			return nil
		})
	})
	s.setGigas()
	return err
}

// withMVGpuBTree calls body with the peer's subject or, if it cannot run, with
// nil.
func withMVGpuBTree(s *session, what string, n int, body func(*subject) error) error {
	folder := os.Getenv(peerFolder)
	if !s.wanted(nameMVGpuBTree) {
		return body(nil)
	}
	if folder == "" {
		s.skipOnce("%s: its sources are not part of this repository; %s=FOLDER says where they are", nameMVGpuBTree, peerFolder)
		return body(nil)
	}
	program, err := gpuPrograms.build(s, nameMVGpuBTree, func(dir string) (string, error) { return gpu.BuildMVGpuBTree(dir, folder) })
	var peer *gpu.Thrust
	if err == nil {
		peer, err = gpu.StartThrust(program, what, n, n, s.seed, s.warmUp)
	}
	if err != nil {
		s.skip("%s, %s at n %s: %v", nameMVGpuBTree, what, sizeText(n), err)
		return body(nil)
	}
	sub := thrustSubject(peer, nameMVGpuBTree, 0)
	sub.whole = true
	return errors.Join(body(sub), peer.Close())
}

// insertions is all pairs of a dataset, in random order, for an empty tree.
type insertions struct {
	g          *gpuRig
	d          *dataset[uint32]
	keys, vals device.Ptr
	scratch    device.Ptr
	want       []uint32
	tree       *chunked.Tree[uint32]
	took       time.Duration
}

func (t *insertions) prepare() error {
	p, n := placing{g: t.g}, len(t.d.keys)
	keys, step := make([]uint32, n), strideOf(n)
	t.want = make([]uint32, n)
	for i := range keys {
		keys[i] = t.d.keys[i*step%n]
		t.want[i] = valueOf(keys[i])
	}
	t.keys, t.vals, t.scratch = place(&p, keys), place(&p, t.want), p.room(4*n)
	t.g.memory = append(t.g.memory, p.memory...)
	return p.err
}

// fill fills an empty tree in batches, each taken in the way that suits it.
func (t *insertions) fill(batch int) (err error) {
	if t.tree, err = chunked.New[uint32](t.g.dev, chunked.Options{}); err != nil {
		return err
	}
	n, st := len(t.want), t.tree.Stream()
	if err := errors.Join(st.CopyDevice(t.scratch, t.keys, 4*n), st.Synchronize()); err != nil {
		return err
	}
	start := time.Now()
	for lo := 0; lo < n && err == nil; lo += batch {
		at := device.Ptr(4 * lo)
		err = t.tree.Apply(&chunked.Ops{N: min(batch, n-lo), Keys: t.scratch + at, Vals: t.vals + at, Kind: op.Set})
	}
	err = errors.Join(err, st.Synchronize())
	t.took = time.Since(start)
	return err
}

func (t *insertions) inserts(peer *subject) error {
	if err := t.prepare(); err != nil {
		return err
	}
	c := &contest{n: len(t.want), threads: allCores(), label: "insert", ops: len(t.want)}
	for _, batch := range []int{len(t.want), 4 * mega, mega} {
		name := namePandoGPUTree + ", one batch"
		if batch < len(t.want) {
			name = fmt.Sprintf("%s, batches of %s", namePandoGPUTree, sizeText(batch))
		} else if len(c.subjects) > 0 {
			continue
		}
		c.subjects = append(c.subjects, &subject{
			system: name, onGPU: true, whole: true, reference: len(c.subjects) == 0,
			do:    func(int) error { return t.fill(batch) },
			clock: func() time.Duration { return t.took },
			check: func(int) error { return errors.Join(t.check(), t.tree.Close()) },
		})
	}
	if peer != nil {
		c.subjects = append(c.subjects, peer)
	}
	return t.g.s.compete(c)
}

// check looks all keys up.
func (t *insertions) check() error {
	n, st := len(t.want), t.tree.Stream()
	if got := t.tree.Len(); got != n {
		return fmt.Errorf("%d entries; there should be %d", got, n)
	}
	p := placing{g: t.g}
	out, bits := p.room(4*n), p.room(bitBytes(n))
	if p.err == nil {
		p.err = errors.Join(t.tree.Find(t.keys, n, out, bits), st.Synchronize())
	}
	if p.err == nil {
		p.err = readBack(t.g, out, n, equalTo("key", t.want))
	}
	return errors.Join(p.err, p.free())
}

// finds looks all keys up, in random order, in a tree that has grown by batches.
func (t *insertions) finds(peer *subject) (err error) {
	if err := t.prepare(); err != nil {
		return err
	}
	if err := t.fill(mega); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.tree.Close()) }()
	p, n := placing{g: t.g}, len(t.want)
	out, bits := p.room(4*n), p.room(bitBytes(n))
	t.g.memory = append(t.g.memory, p.memory...)
	if p.err != nil {
		return p.err
	}
	usual := t.g.stream
	sub := t.g.subject(namePandoGPUTree, float64(t.tree.Bytes())/float64(n),
		func(int) error { return t.tree.Find(t.keys, n, out, bits) },
		func(int) error { return t.g.stream.Fill(out, 0x55555555, 4*n) },
		func(int) error { return readBack(t.g, out, n, equalTo("key", t.want)) })
	do := sub.do
	sub.whole, sub.reference = true, true
	sub.do = func(ops int) error {
		t.g.stream = t.tree.Stream()
		defer func() { t.g.stream = usual }()
		return do(ops)
	}
	c := &contest{n: n, threads: allCores(), label: "find", ops: n, subjects: []*subject{sub}}
	if peer != nil {
		c.subjects = append(c.subjects, peer)
	}
	return t.g.s.compete(c)
}
