package exec

import (
	"math"
	"testing"

	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// Use takes the splits that suit what the GPU holds, and no other.
func TestUseRefusesWhatTheGPUDoesNotHold(t *testing.T) {
	r := newRig[uint64, uint64](t, seed.Rand(t), shape{implicit.Pairs, 8, 0, 1500}, 1)
	depth := r.tree.Depth()
	for _, keep := range keeps(depth) {
		g := r.open(t, keep)
		for _, split := range splits(depth) {
			p := Plan{split, 64, flow.Sequential}
			if err := g.Use(p); (err == nil) != legal(split, keep, depth) {
				t.Errorf("GPU has %v of %d levels: %+v: %v", keep, depth, split, err)
			}
		}
	}
}

// What is refused would go wrong: forced on a GPU all the same, it reads
// outside of what is there, or gives other answers. Only where no level is
// left to the GPU, or none but those it has, may it do no harm.
func TestRefusedPlansWouldGoWrong(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig[uint64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 1500}, 1)
	depth, wrong := r.tree.Depth(), 0
	keys := append(r.questions(rng, 64), r.held[:64]...)
	want, got := make([]int, len(keys)), make([]int, len(keys))
	r.cpu.Rank(order.KeysOf(keys), want)
	for _, keep := range keeps(depth) {
		for _, split := range splits(depth) {
			if legal(split, keep, depth) || !readsElsewhere(split, keep, depth) || !pick(rng, 8) {
				continue
			}
			g := r.open(t, keep, ptx.RaceCheck(false))
			g.runBy(batch[uint64]{ask: rank, keys: order.KeysOf(keys), ranks: got}, &Plan{split, 64, flow.Sequential}, nil)
			if g.Down() == nil {
				t.Errorf("GPU has %v of %d levels: %+v reads elsewhere, and nothing is noticed", keep, depth, split)
			}
			wrong++
			g.Close()
		}
	}
	if wrong == 0 {
		t.Error("no plan that reads elsewhere was tried")
	}
}

// readsElsewhere reports whether a search by a split reads a level that the GPU
// does not hold: those from where it begins, for one query at least, to where
// it ends.
func readsElsewhere(s Split, k Keep, depth int) bool {
	first := s.Upper
	if s.Share == 1 {
		first++
	}
	last := min(s.Lower, depth+1)
	return first <= depth && first < last && (first < k.First || last > k.Last)
}

func TestUseRefusesNonsense(t *testing.T) {
	r := newRig[uint64, uint64](t, seed.Rand(t), shape{implicit.Pairs, 8, 0, 1500}, 1)
	g, depth := r.open(t, whole(r.image)), r.tree.Depth()
	good := Plan{Split{1, 0.5, depth}, 64, flow.DoubleBuffered}
	if err := g.Use(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Plan){
		"no bucket":         func(p *Plan) { p.Bucket = 0 },
		"less than none":    func(p *Plan) { p.Bucket = -1 },
		"too large":         func(p *Plan) { p.Bucket = MaxBucket + 1 },
		"no such overlap":   func(p *Plan) { p.Overlap = flow.DoubleBuffered + 1 },
		"share below 0":     func(p *Plan) { p.Share = -0.1 },
		"share above 1":     func(p *Plan) { p.Share = 1.1 },
		"share no number":   func(p *Plan) { p.Share = math.NaN() },
		"begins before 0":   func(p *Plan) { p.Upper = -1 },
		"ends before 0":     func(p *Plan) { p.Upper, p.Share, p.Lower = 0, 0, -1 },
		"ends behind all":   func(p *Plan) { p.Lower = depth + 2 },
		"begins behind all": func(p *Plan) { p.Upper, p.Share, p.Lower = depth+1, 0, depth+1 },
		"begins after end":  func(p *Plan) { p.Upper, p.Share, p.Lower = 2, 0, 1 },
	} {
		p := good
		spoil(&p)
		if g.Use(p) == nil {
			t.Errorf("%s: %+v was taken", name, p)
		}
		if _, err := g.Measure(order.KeysOf(r.held[:10]), p); err == nil {
			t.Errorf("%s: %+v was measured", name, p)
		}
	}
	if g.Plan() != good {
		t.Errorf("after what was refused the plan is %+v", g.Plan())
	}
}
