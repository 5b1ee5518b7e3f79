package gpu

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/vector"
)

var gpuAggregate = &contest.Experiment{
	Name:     "gpu-aggregate",
	About:    "sum, least and greatest of all values in the GPU's memory, timed by events, beside cub's sum of a flat array; and Aggregate itself",
	Per:      "one value",
	CaseName: "values",
	Sizes:    []int{64 * contest.Mega},
	Extra:    append([]contest.ExtraColumn{{Name: work.ColReads, Format: contest.Plain}, {Name: colOfCub, Format: contest.Plain}}, contest.GigaColumns...),
	Run:      runGPUAggregate,
}

const (
	nameCub = "cub::DeviceReduce::Sum"
	// colOfCub is the speed of a row in parts of cub's, by values.
	colOfCub = "of cub's"
)

// sumUnits are values of a unit that are tried beside what an index takes; floats
// have but one.
var sumUnits = []int{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10}

func runGPUAggregate(s *contest.Session) error {
	defer s.SetGigas()
	return rig.With(s, 0, func(g *rig.Rig) error {
		return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
			if err := g.ClearTree(len(d.Keys), gpuSums(g, d, simd.Uint64)); err != nil {
				return err
			}
			floats := &data.Dataset[uint64]{Keys: d.Keys, Vals: make([]uint64, len(d.Vals))}
			for i, v := range d.Vals {
				floats.Vals[i] = math.Float64bits(float64(v>>11) / (1 << 53))
			}
			return g.ClearTree(len(d.Keys), gpuSums(g, floats, simd.Float64))
		})
	})
}

// residentSums is values on the GPU that are summed up there.
type residentSums struct {
	g             *rig.Rig
	d             *data.Dataset[uint64]
	kind          simd.NumberKind
	parts, joined rig.Ptr
	want          simd.Block // as blocks of values come to it; Low of floats is about it
}

func gpuSums(g *rig.Rig, d *data.Dataset[uint64], kind simd.NumberKind) (err error) {
	r := &residentSums{g: g, d: d, kind: kind}
	if err := r.prepare(); err != nil {
		return err
	}
	frozen, err := kernel.LoadOnly(g.Dev, kernel.FrozenVectors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, frozen.Unload()) }()
	live, err := kernel.LoadOnly(g.Dev, kernel.ChunkedVectors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Unload()) }()
	var subjects []*contest.Subject
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
		name := ours.NameGPUTree + []string{", loaded", ", after random inserts"}[i]
		subjects = append(subjects, r.subjects(name, t.tree.Stream(), live, func(v *kernel.Vectors) error {
			return t.tree.Vectors(live, v)
		})...)
	}
	apart, err := rig.UploadApart(g, d)
	if err != nil {
		return err
	}
	pairs, err := rig.UploadPairs(g, d)
	if err != nil {
		return err
	}
	subjects = append(subjects, r.subjects(ours.NameGPUApart, g.Stream, frozen, func(v *kernel.Vectors) error {
		return frozen.Column(g.Stream, &g.Params, v, apart.Vals)
	})...)
	subjects = append(subjects, r.subjects(ours.NameGPUPairs, g.Stream, frozen, func(v *kernel.Vectors) error {
		return frozen.PairValues(g.Stream, &g.Params, v, &pairs.Tree)
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
	units := (len(r.d.Vals) + sumUnits[0] - 1) / sumUnits[0]
	if r.parts, err = r.g.Alloc(units * kernel.PartBytes); err != nil {
		return err
	}
	if r.joined, err = r.g.Alloc((units/vector.JoinedParts(simd.Uint64) + 1) * kernel.PartBytes); err != nil {
		return err
	}
	r.want = simd.Block{Min: math.MaxInt64, Max: math.MinInt64}
	for _, v := range r.d.Vals {
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
func (r *residentSums) subjects(name string, st rig.Stream, set *kernel.Set, launch func(v *kernel.Vectors) error) (all []*contest.Subject) {
	sizes := sumUnits
	if r.kind.IsFloat() {
		sizes = sumUnits[:1]
	}
	for _, size := range sizes {
		title := name
		if len(sizes) > 1 {
			title += fmt.Sprintf(", units of %s", contest.SizeText(size))
		}
		all = append(all, r.subject(title, st, set, size, launch))
	}
	return all
}

// subject sums up units of one size, and joins them where they are many.
func (r *residentSums) subject(name string, st rig.Stream, set *kernel.Set, size int, launch func(v *kernel.Vectors) error) *contest.Subject {
	g, u := r.g, kernel.OneRange(0, len(r.d.Vals), size)
	parts := kernel.Parts{Base: r.parts, Room: uint64(u.Units)}
	join, got := kernel.Units{}, parts
	if u.Units > vector.Block {
		join = kernel.OneRange(0, int(u.Units), vector.JoinedParts(r.kind))
		got = kernel.Parts{Base: r.joined, Room: uint64(join.Units)}
	}
	in := func(f func() error) error {
		usual := g.Stream
		g.Stream = st
		defer func() { g.Stream = usual }()
		return f()
	}
	work := func() error {
		if err := launch(&kernel.Vectors{Kind: r.kind, Units: u, Parts: parts}); err != nil || join.Units == 0 {
			return err
		}
		return set.JoinParts(st, &g.Params, r.kind.IsFloat(), parts, &join, got)
	}
	wipe := func() error { return g.Stream.Fill(got.Base, 0x55555555, int(got.Room)*kernel.PartBytes) }
	return &contest.Subject{System: name, OnGPU: true, Whole: true, Clock: g.Clock,
		Do:    func(int) error { return in(func() error { return g.Time(work, wipe) }) },
		Check: func(int) error { return in(func() error { return r.check(got) }) },
	}
}

// check compares parts with what they must come to.
func (r *residentSums) check(p kernel.Parts) error {
	n := int(p.Room)
	raw := make([]uint64, 4*n)
	if err := errors.Join(r.g.Stream.CopyOut(inside.Bytes(raw), p.Base), r.g.Stream.Synchronize()); err != nil {
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
func (r *residentSums) withFace(subjects []*contest.Subject, body func([]*contest.Subject) error) error {
	if r.kind.IsFloat() {
		return withFaces(r, floatsOf(r.d.Vals), subjects, body)
	}
	return withFaces(r, r.d.Vals, subjects, body)
}

func floatsOf(bits []uint64) []float64 {
	out := make([]float64, len(bits))
	for i, b := range bits {
		out[i] = math.Float64frombits(b)
	}
	return out
}

func withFaces[V pando.Number](r *residentSums, vals []V, subjects []*contest.Subject, body func([]*contest.Subject) error) error {
	n, sum := len(vals), work.LoopSum(vals)
	add := func(name string, ix pando.Index[uint64, V]) {
		subjects = append(subjects, warmSum(r.g.S, name, n, sum, func() (int, V) {
			got := pando.Aggregate(ix, 0, work.EveryKey)
			return got.Count, got.Sum
		}))
	}
	tree, err := pando.TreeOf(r.d.Keys, vals, pando.On(pando.GPU(r.g.S.GPU)), pando.DeviceOnly())
	if err != nil {
		return err
	}
	defer tree.Close()
	add("Pando Aggregate, Tree, DeviceOnly", tree)
	for _, on := range []pando.Device{pando.GPU(r.g.S.GPU), pando.CPU} {
		f, err := pando.Freeze(r.d.Keys, vals, pando.Layout(pando.Apart), pando.On(on), pando.Workers(contest.AllCores()))
		if err != nil {
			return err
		}
		defer f.Close()
		if got := f.Stats().Device; got != on {
			r.g.S.Skip("Aggregate of an index on %v: it is on %v, %s", on, got, f.Stats().Reason)
			continue
		}
		add(fmt.Sprintf("Pando Aggregate, Frozen, apart, %v", on), f)
	}
	flat, err := inside.NewBlock(8 * n) // on huge pages, as an index is
	if err != nil {
		return err
	}
	defer flat.Release()
	column := inside.As[V](flat.Segment(0))[:n]
	copy(column, vals)
	subjects = append(subjects, warmSum(r.g.S, work.NamePlain, n, sum, func() (int, V) { return n, work.ReadAll(column, contest.AllCores()) }))
	return body(subjects)
}

// warmSum returns a sum as a subject. It is repeated for as long as kernels are before
// they are timed, so that neither has a GPU that was idle.
func warmSum[V pando.Number](s *contest.Session, name string, n int, want V, do func() (count int, sum V)) *contest.Subject {
	var took time.Duration
	count, got := 0, V(0)
	return &contest.Subject{System: name, Whole: true,
		Do: func(int) error {
			for start := time.Now(); time.Since(start) < s.WarmUp; {
				do()
			}
			start := time.Now()
			count, got = do()
			took = time.Since(start)
			return nil
		},
		Clock: func() time.Duration { return took },
		Check: func(int) error { return work.CheckSum(count, n, got, want) },
	}
}

// compete runs the contest with cub, and fills the columns.
func (r *residentSums) compete(subjects []*contest.Subject) error {
	s, n := r.g.S, len(r.d.Vals)
	label := map[simd.NumberKind]string{simd.Uint64: "uint64", simd.Float64: "float64"}[r.kind]
	return peers.WithThrustOf(s, nameCub, gpu.Sum64, n, n, 8, func(peer *contest.Subject) error {
		if peer != nil && !r.kind.IsFloat() {
			peer.Whole = true
			subjects = append(subjects, peer)
		}
		subjects[0].Reference = true
		c := &contest.Contest{N: n, Threads: contest.AllCores(), Label: label, Ops: n, Subjects: subjects}
		if err := s.Compete(c); err != nil {
			return err
		}
		rows, cub := s.Rows[len(s.Rows)-len(subjects):], 0.0
		for _, row := range rows {
			if row.System == nameCub {
				cub = row.Best
			}
		}
		for _, row := range rows {
			if row.Best > 0 {
				row.Set(work.ColReads, 8/row.Best)
				row.Set(colOfCub, cub/row.Best)
			}
		}
		return nil
	})
}
