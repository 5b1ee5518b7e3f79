package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// do does a step as a cluster would.
func (w *world) do(s Step) (changed []uint64) {
	i := slices.IndexFunc(w.Ranges, func(r Range) bool { return r.ID == s.Range })
	r := &w.Ranges[i]
	at := slices.IndexFunc(r.Replicas, func(x Replica) bool { return x.Node == s.Node })
	r.Version++
	r.Pending = Step{}
	r.Replicas = slices.Clone(r.Replicas)
	switch s.Kind {
	case Add:
		r.Replicas = append(r.Replicas, Replica{Node: s.Node})
	case Promote:
		r.Replicas[at].Votes = true
	case Remove:
		r.Replicas = slices.Delete(r.Replicas, at, at+1)
	case Lead:
		r.Leader = s.Node
	case Split:
		child := *r
		child.ID, child.Lo = w.nextID, r.Lo+"5"
		w.nextID++
		r.Size, r.Load = r.Size/2, r.Load/2
		child.Size, child.Load, child.Replicas = r.Size, r.Load, slices.Clone(r.Replicas)
		w.Ranges = append(w.Ranges, child)
		return []uint64{r.ID, child.ID}
	case Merge:
		j := slices.IndexFunc(w.Ranges, func(r Range) bool { return r.ID == s.Other })
		r.Size, r.Load = r.Size+w.Ranges[j].Size, r.Load+w.Ranges[j].Load
		w.Ranges = slices.Delete(w.Ranges, j, j+1)
		return []uint64{s.Range, s.Other}
	}
	return []uint64{s.Range}
}

// node returns a node of the picture.
func (w *world) node(name string) *Node {
	i := slices.IndexFunc(w.Nodes, func(n Node) bool { return n.Name == name })
	return &w.Nodes[i]
}

// live does plans until there is nothing to do, and returns how many it took. Steps take their time, in any order, and some
// fail; wild is called between two plans.
func (w *world) live(t *testing.T, p *Planner, most int, wild func(round int) bool) (rounds int) {
	t.Helper()
	tell := func(ids []uint64) {
		for _, id := range ids {
			if i := slices.IndexFunc(w.Ranges, func(r Range) bool { return r.ID == id }); i >= 0 {
				p.SetRange(w.Ranges[i])
			} else {
				p.RemoveRange(id)
			}
		}
	}
	steps, nothing := 0, 0
	kinds := map[Kind]int{}
	for round := range most {
		restless := wild(round)
		w.elect(p)
		plan := p.Steps()
		judge(t, w.Picture, w.o, plan)
		if t.Failed() {
			t.Fatalf("%+v\n%+v", w.o, w.Picture)
		}
		steps += len(plan)
		idle := len(plan) == 0
		for _, s := range plan {
			kinds[s.Kind]++
			if s.Kind == Merge { // it is done at once, or not
				tell(w.do(s))
				continue
			}
			i := slices.IndexFunc(w.Ranges, func(r Range) bool { return r.ID == s.Range })
			w.Ranges[i].Pending = s
			tell([]uint64{s.Range})
		}
		for i := 0; i < len(w.Ranges); i++ {
			r := &w.Ranges[i]
			if r.Pending.Kind != None {
				idle = false
				switch w.rnd.IntN(4) {
				case 0: // not yet
				case 1:
					r.Pending = Step{}
					tell([]uint64{r.ID})
				default:
					if r.Pending.Kind == Promote || r.Pending.Kind == Split || r.Pending.Kind == Remove || w.node(r.Pending.Node).State == Up {
						tell(w.do(r.Pending))
					} else {
						r.Pending = Step{}
						tell([]uint64{r.ID})
					}
				}
			}
			r = &w.Ranges[i]
			for j := range r.Replicas {
				if x := &r.Replicas[j]; !x.Votes && !x.Ready {
					idle = false
					if w.rnd.IntN(3) == 0 && w.node(x.Node).State == Up {
						x.Ready = true
						tell([]uint64{r.ID})
					}
				}
			}
		}
		if nothing++; !idle || restless {
			nothing = 0
		}
		if nothing == 2 {
			return round
		}
	}
	t.Fatalf("there is no end to it: %d ranges, %d nodes, %d steps in %d plans: %v; now %v\n%+v\n%+v", len(w.Ranges), len(w.Nodes), steps, most, kinds, p.Steps(), w.o, w.Picture)
	return 0
}

// elect has ranges elect leaders where one is not there.
func (w *world) elect(p *Planner) {
	for i := range w.Ranges {
		r := &w.Ranges[i]
		there := func(x Replica) bool { s := w.node(x.Node).State; return s == Up || s == Draining }
		if slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == r.Leader && x.Votes && there(x) }) {
			continue
		}
		was := r.Leader
		r.Leader = ""
		if j := slices.IndexFunc(r.Replicas, func(x Replica) bool { return x.Votes && there(x) }); j >= 0 {
			r.Leader = r.Replicas[j].Node
		}
		if r.Leader != was {
			p.SetRange(*r)
		}
	}
}

func (w *world) planner() *Planner {
	p := New(w.o)
	for _, n := range w.Nodes {
		p.SetNode(n)
	}
	for _, r := range w.Ranges {
		p.SetRange(r)
	}
	return p
}

// rackOf names the rack of a node: its own where it is not known.
func rackOf(n Node) string {
	if n.Rack == "" {
		return n.Name
	}
	return n.Zone + "/" + n.Rack
}

// healed demands what a cluster is to come to when it is left alone.
func (w *world) healed(t *testing.T, p *Planner) {
	t.Helper()
	usable, up := 0, 0
	racks := map[string]bool{}
	for _, n := range w.Nodes {
		if n.State == Up || n.State == Silent {
			usable++
			racks[rackOf(n)] = true
		}
		if n.State == Up {
			up++
		}
	}
	want := min(w.o.Replicas, usable)
	want -= 1 - want%2
	for _, r := range w.Ranges {
		good, in := 0, map[string]int{}
		for _, x := range r.Replicas {
			n := w.node(x.Node)
			if !x.Votes {
				t.Errorf("a replica has no vote: %+v", r)
			}
			if n.State == Up || n.State == Silent {
				good++
				in[rackOf(*n)]++
			} else if usable >= w.o.Replicas {
				t.Errorf("%s, which is %v, has one: %+v", n.Name, n.State, r)
			}
		}
		if good < want || good > w.o.Replicas {
			t.Errorf("%d votes, not %d: %+v", good, want, r)
		}
		if len(in) < min(good, len(racks)) && usable == up {
			t.Errorf("racks are shared, of %v: %+v", racks, r)
		}
		if r.Size > w.o.MaxSize && !r.Whole {
			t.Errorf("too large: %+v", r)
		}
		if n := w.node(r.Leader); n.State == Draining && usable >= w.o.Replicas {
			t.Errorf("%s leads, and is %v", n.Name, n.State)
		}
	}
	if c := p.Counts(); c.Stuck+c.Urgent*(want/2)+c.Begun > 0 {
		t.Errorf("%+v", c)
	}
}

// Clusters whose nodes come, fail, are drained and come back are whole when they are left alone, and then nothing
// is done any more. The promises hold for each plan on the way.
func TestClustersHeal(t *testing.T) {
	rnd := seed.Rand(t)
	for i := range seed.Count(160) {
		w := draw(rnd, 1+rnd.IntN(14), 1+rnd.IntN(60), true)
		p := w.planner()
		failures := rnd.IntN(40)
		w.live(t, p, 4000, func(round int) bool {
			if round >= failures {
				if round == failures {
					for i := range w.Nodes { // all come back but those that are drained, for good
						if w.Nodes[i].State != Draining {
							w.Nodes[i].State = Up
						}
						p.SetNode(w.Nodes[i])
					}
				}
				return false
			}
			if n := &w.Nodes[rnd.IntN(len(w.Nodes))]; rnd.IntN(3) == 0 {
				n.State = []State{Up, Up, Up, Silent, Down, Draining}[rnd.IntN(6)]
				p.SetNode(*n)
			}
			return true
		})
		if w.healed(t, p); t.Failed() {
			t.Fatalf("cluster %d\n%+v\n%+v", i, w.o, w.Picture)
		}
	}
}

// One node more gets its part, and what is drained has nothing then.
func TestGrowAndDrain(t *testing.T) {
	rnd := seed.Rand(t)
	o := Defaults()
	w := &world{o: o, rnd: rnd, nextID: 301}
	add := func(name string) {
		w.Nodes = append(w.Nodes, Node{Name: name, Capacity: 1 << 40})
	}
	add("a")
	for i := range 300 {
		w.Ranges = append(w.Ranges, Range{ID: uint64(i + 1), Lo: fmt.Sprintf("%04d", i), Size: 300 << 20, Leader: "a", Replicas: []Replica{{Node: "a", Votes: true}}})
	}
	p := w.planner()
	calm := func(int) bool { return false }
	has := func(name string) (replicas, leads int) {
		for _, r := range w.Ranges {
			if slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == name }) {
				replicas++
			}
			if r.Leader == name {
				leads++
			}
		}
		return replicas, leads
	}
	for n, name := range []string{"a", "b", "c", "d", "e"} {
		if n > 0 {
			add(name)
			p.SetNode(w.Nodes[n])
		}
		t.Logf("%d nodes: %d plans", n+1, w.live(t, p, 4000, calm))
		w.healed(t, p)
		replicas := min(3, n+1)
		replicas -= 1 - replicas%2
		for _, x := range w.Nodes {
			want := 300 * replicas / (n + 1)
			got, leads := has(x.Name)
			if n == 1 {
				continue // one of them has a vote, and either will do
			}
			if got < want*8/10 || got > want*12/10 || leads < 300/(n+1)*8/10 {
				t.Errorf("%s of %d nodes has %d of %d replicas, leads %d", x.Name, n+1, got, want, leads)
			}
		}
	}
	w.Nodes[1].State = Draining
	p.SetNode(w.Nodes[1])
	w.live(t, p, 4000, calm)
	if r, l := has("b"); r+l > 0 {
		t.Errorf("a node that is drained has %d replicas, and leads %d", r, l)
	}
	w.Nodes[2].State = Down
	p.SetNode(w.Nodes[2])
	w.live(t, p, 4000, calm)
	w.healed(t, p)
}

// A wish is fulfilled, and nothing brings it back.
func TestWishes(t *testing.T) {
	rnd := seed.Rand(t)
	for range seed.Count(100) {
		w := draw(rnd, 5+rnd.IntN(5), 20, true)
		for i := range w.Nodes {
			w.Nodes[i].Rack, w.Nodes[i].Zone = "", ""
		}
		w.o.MinSize = 0 // neighbours that are to be merged go where the first is
		p := w.planner()
		calm := func(int) bool { return false }
		w.live(t, p, 4000, calm)
		r := &w.Ranges[rnd.IntN(len(w.Ranges))]
		id := r.ID
		r.Wish.From = r.Replicas[0].Node
		for _, n := range w.Nodes {
			if !slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == n.Name }) {
				r.Wish.To = n.Name
			}
		}
		if r.Wish.To == "" {
			continue
		}
		p.SetRange(*r)
		w.live(t, p, 4000, calm)
		i := slices.IndexFunc(w.Ranges, func(r Range) bool { return r.ID == id })
		if r := w.Ranges[i]; !r.Fulfilled() {
			t.Fatalf("%+v", r)
		}
		w.healed(t, p)
	}
}

// Ranges that have become small are merged, until no two neighbours are.
func TestMerges(t *testing.T) {
	w := draw(rand.New(rand.NewPCG(seed.Of(t), 2)), 6, 60, true)
	w.o = Defaults()
	for i := range w.Ranges {
		w.Ranges[i].Size, w.Ranges[i].Load = 1<<20, 0
	}
	p := w.planner()
	w.live(t, p, 8000, func(int) bool { return false })
	w.healed(t, p)
	if len(w.Ranges) != 1 {
		t.Errorf("of 60 ranges %d are left: %+v", len(w.Ranges), w.Ranges)
	}
}
