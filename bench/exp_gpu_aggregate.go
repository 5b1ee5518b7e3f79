package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/vector"
)

var gpuAggregate = &experiment{
	name:     "gpu-aggregate",
	about:    "sum, least and greatest of all values in the GPU's memory, timed by events, beside cub's sum of a flat array; and Aggregate itself",
	per:      "one value",
	caseName: "values",
	sizes:    []int{64 * mega},
	extra:    append([]extraColumn{{colReads, plain}, {colOfCub, plain}}, gigaColumns...),
	run:      runGPUAggregate,
}

const (
	nameCub = "cub::DeviceReduce::Sum"
	// colOfCub is the speed of a row in parts of cub's, by values.
	colOfCub = "of cub's"
)

// sumUnits are values of a unit that are tried beside what an index takes; floats
// have but one.
var sumUnits = []int{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10}

func runGPUAggregate(s *session) error {
	defer s.setGigas()
	return withGPU(s, 0, func(g *gpuRig) error {
		return forEachSize(s, func(d *dataset[uint64]) error {
			if err := g.clearTree(len(d.keys), gpuSums(g, d, simd.Uint64)); err != nil {
				return err
			}
			floats := &dataset[uint64]{keys: d.keys, vals: make([]uint64, len(d.vals))}
			for i, v := range d.vals {
				floats.vals[i] = math.Float64bits(float64(v>>11) / (1 << 53))
			}
			return g.clearTree(len(d.keys), gpuSums(g, floats, simd.Float64))
		})
	})
}

// residentSums is values on the GPU that are summed up there.
type residentSums struct {
	g             *gpuRig
	d             *dataset[uint64]
	kind          simd.Kind
	parts, joined device.Ptr
	want          simd.Block // as blocks of values come to it; Low of floats is about it
}

func gpuSums(g *gpuRig, d *dataset[uint64], kind simd.Kind) (err error) {
	r := &residentSums{g: g, d: d, kind: kind}
	if err := r.prepare(); err != nil {
		return err
	}
	frozen, err := kernel.LoadOnly(g.dev, kernel.FrozenVectors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, frozen.Unload()) }()
	live, err := kernel.LoadOnly(g.dev, kernel.ChunkedVectors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Unload()) }()
	var subjects []*subject
	trees, err := r.trees()
	defer func() {
		for _, t := range trees {
			err = errors.Join(err, t.close())
		}
	}()
	if err != nil {
		return err
	}
	for i, t := range trees {
		name := namePandoGPUTree + []string{", loaded", ", after random inserts"}[i]
		subjects = append(subjects, r.subjects(name, t.tree.Stream(), live, func(v *kernel.Vectors) error {
			return t.tree.Vectors(live, v)
		})...)
	}
	apart, err := upload(g, d, implicit.Apart, 8)
	if err != nil {
		return err
	}
	pairs, err := upload(g, d, implicit.Pairs, 8)
	if err != nil {
		return err
	}
	subjects = append(subjects, r.subjects(namePandoGPUApart, g.stream, frozen, func(v *kernel.Vectors) error {
		return frozen.Column(g.stream, &g.params, v, apart.Vals)
	})...)
	subjects = append(subjects, r.subjects(namePandoGPUPairs, g.stream, frozen, func(v *kernel.Vectors) error {
		return frozen.PairValues(g.stream, &g.params, v, &pairs.Tree)
	})[0])
	return r.withFace(subjects, r.compete)
}

// trees returns mutable trees: one that is loaded and, of integers, one after
// random inserts.
func (r *residentSums) trees() (trees []*liveTree[uint64], err error) {
	t, err := openResident(r.g, r.d)
	if err != nil {
		return nil, err
	}
	trees = append(trees, t)
	if r.kind.IsFloat() {
		return trees, nil
	}
	if t, err = growResident(r.g, r.d); err == nil {
		trees = append(trees, t)
	}
	return trees, err
}

// prepare takes memory for parts, and finds what they must come to.
func (r *residentSums) prepare() (err error) {
	units := (len(r.d.vals) + sumUnits[0] - 1) / sumUnits[0]
	if r.parts, err = r.g.alloc(units * kernel.PartBytes); err != nil {
		return err
	}
	if r.joined, err = r.g.alloc((units/vector.JoinedParts(simd.Uint64) + 1) * kernel.PartBytes); err != nil {
		return err
	}
	r.want = simd.Block{Min: math.MaxInt64, Max: math.MinInt64}
	for _, v := range r.d.vals {
		code := simd.Ordered(r.kind, v)
		r.want.Min, r.want.Max = min(r.want.Min, code), max(r.want.Max, code)
		r.want.Low = r.add(r.want.Low, v)
	}
	return nil
}

// add adds values by their bits.
func (r *residentSums) add(a, b uint64) uint64 {
	if r.kind.IsFloat() {
		return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
	}
	return a + b
}

// subjects returns ways to sum up what a launch does: as an index does first, then
// with units of other sizes.
func (r *residentSums) subjects(name string, st device.Stream, set *kernel.Set, launch func(v *kernel.Vectors) error) (all []*subject) {
	sizes := sumUnits
	if r.kind.IsFloat() {
		sizes = sumUnits[:1]
	}
	for _, size := range sizes {
		title := name
		if len(sizes) > 1 {
			title += fmt.Sprintf(", units of %s", sizeText(size))
		}
		all = append(all, r.subject(title, st, set, size, launch))
	}
	return all
}

// subject sums up units of one size, and joins them where they are many.
func (r *residentSums) subject(name string, st device.Stream, set *kernel.Set, size int, launch func(v *kernel.Vectors) error) *subject {
	g, u := r.g, kernel.OneRange(0, len(r.d.vals), size)
	parts := kernel.Parts{Base: r.parts, Room: uint64(u.Units)}
	join, got := kernel.Units{}, parts
	if u.Units > vector.Block {
		join = kernel.OneRange(0, int(u.Units), vector.JoinedParts(r.kind))
		got = kernel.Parts{Base: r.joined, Room: uint64(join.Units)}
	}
	in := func(f func() error) error {
		usual := g.stream
		g.stream = st
		defer func() { g.stream = usual }()
		return f()
	}
	work := func() error {
		if err := launch(&kernel.Vectors{Kind: r.kind, Units: u, Parts: parts}); err != nil || join.Units == 0 {
			return err
		}
		return set.JoinParts(st, &g.params, r.kind.IsFloat(), parts, &join, got)
	}
	wipe := func() error { return g.stream.Fill(got.Base, 0x55555555, int(got.Room)*kernel.PartBytes) }
	return &subject{system: name, onGPU: true, whole: true, clock: g.clock,
		do:    func(int) error { return in(func() error { return g.time(work, wipe) }) },
		check: func(int) error { return in(func() error { return r.check(got) }) },
	}
}

// check compares parts with what they must come to.
func (r *residentSums) check(p kernel.Parts) error {
	n := int(p.Room)
	raw := make([]uint64, 4*n)
	if err := errors.Join(r.g.stream.CopyOut(arena.Bytes(raw), p.Base), r.g.stream.Synchronize()); err != nil {
		return err
	}
	sum, low, high := uint64(0), int64(math.MaxInt64), int64(math.MinInt64)
	for i := range n {
		sum, low, high = r.add(sum, raw[i]), min(low, int64(raw[2*n+i])), max(high, int64(raw[3*n+i]))
	}
	same := sum == r.want.Low
	if r.kind.IsFloat() {
		got, want := math.Float64frombits(sum), math.Float64frombits(r.want.Low)
		same = math.Abs(got-want) <= 1e-9*math.Abs(want)
	}
	if !same || low != r.want.Min || high != r.want.Max {
		return fmt.Errorf("sum %d, from %d to %d, want %d, from %d to %d", sum, low, high, r.want.Low, r.want.Min, r.want.Max)
	}
	return nil
}

// withFace adds Aggregate as callers have it, from the call until its answer is
// there, on the GPU and on the CPU.
func (r *residentSums) withFace(subjects []*subject, body func([]*subject) error) error {
	if r.kind.IsFloat() {
		return withFaces(r, floatsOf(r.d.vals), subjects, body)
	}
	return withFaces(r, r.d.vals, subjects, body)
}

func floatsOf(bits []uint64) []float64 {
	out := make([]float64, len(bits))
	for i, b := range bits {
		out[i] = math.Float64frombits(b)
	}
	return out
}

func withFaces[V pando.Number](r *residentSums, vals []V, subjects []*subject, body func([]*subject) error) error {
	n, sum := len(vals), loopSum(vals)
	add := func(name string, ix pando.Index[uint64, V]) {
		subjects = append(subjects, warmSum(r.g.s, name, n, sum, func() (int, V) {
			got := pando.Aggregate(ix, 0, everyKey)
			return got.Count, got.Sum
		}))
	}
	tree, err := pando.TreeOf(r.d.keys, vals, pando.On(pando.GPU(r.g.s.gpu)), pando.DeviceOnly())
	if err != nil {
		return err
	}
	defer tree.Close()
	add("Pando Aggregate, Tree, DeviceOnly", tree)
	for _, on := range []pando.Device{pando.GPU(r.g.s.gpu), pando.CPU} {
		f, err := pando.Freeze(r.d.keys, vals, pando.Layout(pando.Apart), pando.On(on), pando.Workers(allCores()))
		if err != nil {
			return err
		}
		defer f.Close()
		if got := f.Stats().Device; got != on {
			r.g.s.skip("Aggregate of an index on %v: it is on %v, %s", on, got, f.Stats().Reason)
			continue
		}
		add(fmt.Sprintf("Pando Aggregate, Frozen, apart, %v", on), f)
	}
	flat, err := arena.New([]int{8 * n}, 0, arena.HugeAll, 0) // on huge pages, as an index is
	if err != nil {
		return err
	}
	defer flat.Release()
	column := arena.As[V](flat.Segment(0))[:n]
	copy(column, vals)
	subjects = append(subjects, warmSum(r.g.s, namePlain, n, sum, func() (int, V) { return n, readAll(column, allCores()) }))
	return body(subjects)
}

// warmSum returns a sum as a subject. It is repeated for as long as kernels are before
// they are timed, so that neither has a GPU that was idle.
func warmSum[V pando.Number](s *session, name string, n int, want V, do func() (count int, sum V)) *subject {
	var took time.Duration
	count, got := 0, V(0)
	return &subject{system: name, whole: true,
		do: func(int) error {
			for start := time.Now(); time.Since(start) < s.warmUp; {
				do()
			}
			start := time.Now()
			count, got = do()
			took = time.Since(start)
			return nil
		},
		clock: func() time.Duration { return took },
		check: func(int) error { return checkSum(count, n, got, want) },
	}
}

// compete runs the contest with cub, and fills the columns.
func (r *residentSums) compete(subjects []*subject) error {
	s, n := r.g.s, len(r.d.vals)
	label := map[simd.Kind]string{simd.Uint64: "uint64", simd.Float64: "float64"}[r.kind]
	return withThrustOf(s, nameCub, gpu.Sum64, n, n, 8, func(peer *subject) error {
		if peer != nil && !r.kind.IsFloat() {
			peer.whole = true
			subjects = append(subjects, peer)
		}
		subjects[0].reference = true
		c := &contest{n: n, threads: allCores(), label: label, ops: n, subjects: subjects}
		if err := s.compete(c); err != nil {
			return err
		}
		rows, cub := s.rows[len(s.rows)-len(subjects):], 0.0
		for _, row := range rows {
			if row.System == nameCub {
				cub = row.Best
			}
		}
		for _, row := range rows {
			if row.Best > 0 {
				row.set(colReads, 8/row.Best)
				row.set(colOfCub, cub/row.Best)
			}
		}
		return nil
	})
}
