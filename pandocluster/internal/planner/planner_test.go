package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// world is a cluster that does the steps of a plan, and whose nodes fail.
type world struct {
	Picture
	o      Options
	rnd    *rand.Rand
	nextID uint64
}

// draw draws a picture. If whole is set it is one of a cluster that has worked for a while; else anything goes that has
// names in the right places.
func draw(rnd *rand.Rand, nodes, ranges int, whole bool) *world {
	o := Options{Replicas: 3, Transfers: 1 + rnd.IntN(3), Steps: 1 + rnd.IntN(8), MaxSize: 1000 << 20, MinSize: 100 << 20}
	if rnd.IntN(3) == 0 {
		o.Replicas = 1 + 2*rnd.IntN(3)
	}
	if rnd.IntN(2) == 0 {
		o.MaxLoad = 1000
	}
	if rnd.IntN(3) == 0 {
		o.MinSize = 0
	}
	w := &world{o: o, rnd: rnd, nextID: uint64(ranges) + 1}
	zones, racks := rnd.IntN(4), 1+rnd.IntN(max(1, nodes))
	for i := range nodes {
		n := Node{Name: fmt.Sprintf("n%03d", i), Capacity: int64(1+rnd.IntN(4)) * int64(ranges+4) * 1500 << 20}
		if zones > 0 {
			n.Zone = fmt.Sprint("z", i%zones)
		}
		if rnd.IntN(8) > 0 {
			n.Rack = fmt.Sprint("r", i%racks)
		}
		if !whole {
			n.State = State(max(0, rnd.IntN(9)-4))
			if rnd.IntN(8) == 0 {
				n.Capacity = int64(rnd.IntN(3000)) << 20
			}
		}
		w.Nodes = append(w.Nodes, n)
	}
	for i := range ranges {
		w.Ranges = append(w.Ranges, w.drawRange(uint64(i+1), whole))
	}
	return w
}

func (w *world) drawRange(id uint64, whole bool) Range {
	rnd := w.rnd
	r := Range{ID: id, Version: rnd.Uint64N(100), Lo: fmt.Sprintf("%06d", id*10), Size: rnd.Int64N(600 << 20), Load: rnd.Int64N(600)}
	if rnd.IntN(6) == 0 {
		r.Size, r.Load = rnd.Int64N(2000<<20), rnd.Int64N(2000)
	}
	if rnd.IntN(4) == 0 {
		r.Size = rnd.Int64N(100 << 20)
	}
	n := 1
	if !whole {
		n = rnd.IntN(2 + w.o.Replicas)
	}
	for _, i := range rnd.Perm(len(w.Nodes))[:min(n, len(w.Nodes))] {
		x := Replica{Node: w.Nodes[i].Name, Votes: whole || rnd.IntN(8) > 0, Ready: rnd.IntN(2) == 0}
		x.Ready = x.Ready && !x.Votes
		r.Replicas = append(r.Replicas, x)
		if x.Votes && rnd.IntN(5) > 0 || whole {
			r.Leader = x.Node
		}
	}
	if whole {
		return r
	}
	if rnd.IntN(30) == 0 && len(r.Replicas) > 0 {
		r.Replicas[0].Node = "stranger"
	}
	if rnd.IntN(6) == 0 {
		r.Wish = Wish{w.Nodes[rnd.IntN(len(w.Nodes))].Name, w.Nodes[rnd.IntN(len(w.Nodes))].Name}
	}
	if rnd.IntN(6) == 0 {
		r.Pending = Step{Kind: Kind(1 + rnd.IntN(6)), Range: id, Node: w.Nodes[rnd.IntN(len(w.Nodes))].Name}
	}
	r.Whole, r.Apart = rnd.IntN(10) == 0, rnd.IntN(10) == 0
	return r
}

// judge is the promises of the package, asked of one plan, by means as simple as possible.
func judge(t *testing.T, pic Picture, o Options, steps []Step) {
	t.Helper()
	nodes := map[string]Node{}
	used := map[string]int64{}
	in, out, leads := map[string]int{}, map[string]int{}, map[string]int{}
	for _, n := range pic.Nodes {
		nodes[n.Name] = n
	}
	state := func(name string) State {
		if n, ok := nodes[name]; ok {
			return n.State
		}
		return Removed
	}
	there := func(name string) bool { return state(name) == Up || state(name) == Draining }
	usable := func(name string) bool { return state(name) == Up || state(name) == Silent }
	ranges := map[uint64]*Range{}
	for i := range pic.Ranges {
		copied := pic.Ranges[i]
		r := &copied
		ranges[r.ID] = r
		sent := 0
		for _, x := range r.Replicas {
			used[x.Node] += r.Size + overhead
			if !x.Votes && !x.Ready {
				in[x.Node]++
				sent++
			}
		}
		leader := slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == r.Leader })
		if r.Pending.Kind == Add && !slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == r.Pending.Node }) {
			used[r.Pending.Node] += r.Size + overhead
			in[r.Pending.Node]++
			sent++
		}
		if leader {
			out[r.Leader] += sent
			if r.Pending.Kind != None {
				leads[r.Leader]++
			}
		} else {
			r.Leader = ""
		}
	}
	votes := func(r *Range, without string) (all, live, good int) {
		for _, x := range r.Replicas {
			if !x.Votes || x.Node == without {
				continue
			}
			all++
			if there(x.Node) {
				live++
			}
			if usable(x.Node) {
				good++
			}
		}
		return all, live, good
	}
	racks := func(a, b string) bool {
		return nodes[a].Rack != "" && nodes[a].Rack == nodes[b].Rack && nodes[a].Zone == nodes[b].Zone
	}
	done := map[uint64]bool{}
	once := func(s Step, id uint64) {
		if done[id] {
			t.Errorf("%v: a second step", s)
		}
		done[id] = true
	}
	balanced := false
	for _, s := range steps {
		r := ranges[s.Range]
		once(s, s.Range)
		all, live, _ := votes(r, "")
		at := slices.IndexFunc(r.Replicas, func(x Replica) bool { return x.Node == s.Node })
		switch {
		case r.Version != s.Version:
			t.Errorf("%v: of version %d, not %d", s, s.Version, r.Version)
		case r.Pending.Kind != None:
			t.Errorf("%v: while %v", s, r.Pending)
		case !there(r.Leader) || live < all/2+1:
			t.Errorf("%v: without a leader or a majority: %v", s, r)
		}
		if leads[r.Leader]++; leads[r.Leader] > o.Steps {
			t.Errorf("%v: %s has %d steps at once", s, r.Leader, leads[r.Leader])
		}
		switch s.Kind {
		case Add:
			balanced = balanced || s.Reason == Balance
			if at >= 0 || state(s.Node) != Up {
				t.Errorf("%v: has one, or is %v", s, state(s.Node))
			}
			for _, x := range r.Replicas {
				if !x.Votes {
					t.Errorf("%v: beside %v", s, x)
				}
			}
			in[s.Node]++
			out[r.Leader]++
			used[s.Node] += r.Size + overhead
			if in[s.Node] > max(1, o.Transfers) || out[r.Leader] > max(1, o.Transfers) {
				t.Errorf("%v: %d are received, %d sent at once", s, in[s.Node], out[r.Leader])
			}
			if float64(used[s.Node]) > mostFull*float64(nodes[s.Node].Capacity) {
				t.Errorf("%v: there is no room", s)
			}
			if s.Reason == Wished || s.Reason == Size {
				break
			}
			// Nobody with room, elsewhere, is passed over.
			stays := func(x Replica) bool { return usable(x.Node) && x.Node != s.Node }
			shared := slices.ContainsFunc(r.Replicas, func(x Replica) bool { return stays(x) && racks(x.Node, s.Node) })
			for _, n := range pic.Nodes {
				free := n.State == Up && float64(used[n.Name]+r.Size+overhead) <= mostFull*float64(n.Capacity) &&
					!slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == n.Name || stays(x) && racks(x.Node, n.Name) })
				if free && shared && (s.Reason == Repair || s.Reason == Drain) {
					t.Errorf("%v: shares a rack, and %s does not: %v", s, n.Name, r)
				}
			}
		case Promote:
			if at < 0 || r.Replicas[at].Votes || !r.Replicas[at].Ready || state(s.Node) != Up {
				t.Errorf("%v: %v", s, r)
			}
		case Remove:
			if at < 0 || r.Leader == s.Node {
				t.Errorf("%v: leads, or has none", s)
				break
			}
			if !r.Replicas[at].Votes {
				break
			}
			a, l, good := votes(r, s.Node)
			if l < a/2+1 {
				t.Errorf("%v: no majority is left: %v", s, r)
			}
			if l-(a/2+1) < min(live-(all/2+1), o.Replicas/2) {
				t.Errorf("%v: fewer may fail: %v", s, r)
			}
			if usable(s.Node) && good < o.Replicas && s.Reason != Wished {
				t.Errorf("%v: fewer than wanted are left: %v", s, r)
			}
		case Lead:
			if at < 0 || !r.Replicas[at].Votes || state(s.Node) != Up || r.Leader == s.Node {
				t.Errorf("%v: %v", s, r)
			}
		case Split:
			if r.Whole || r.Size <= o.MaxSize && (o.MaxLoad == 0 || r.Load <= o.MaxLoad) {
				t.Errorf("%v: %v", s, r)
			}
		case Merge:
			other := ranges[s.Other]
			once(s, s.Other)
			same := len(r.Replicas) == len(other.Replicas)
			for _, x := range other.Replicas {
				same = same && x.Votes && slices.ContainsFunc(r.Replicas, func(y Replica) bool { return y.Node == x.Node && y.Votes })
			}
			for _, between := range pic.Ranges {
				same = same && (between.Lo <= r.Lo || between.Lo >= other.Lo)
			}
			if !same || other.Lo <= r.Lo || other.Leader != r.Leader || other.Apart || other.Pending.Kind != None || r.Size+other.Size > o.MaxSize {
				t.Errorf("%v: %v %v", s, r, other)
			}
		}
	}
	if !balanced {
		return
	}
	// What could be repaired, if not now for want of a turn, comes before balance.
	want := 0
	for _, n := range pic.Nodes {
		if usable(n.Name) && want < o.Replicas {
			want++
		}
	}
	want -= 1 - want%2
	for _, r := range ranges {
		all, live, good := votes(r, "")
		if !there(r.Leader) || live < all/2+1 || done[r.ID] || r.Pending.Kind != None || all < len(r.Replicas) || good >= want {
			continue
		}
		for _, n := range pic.Nodes {
			if n.State == Up && float64(used[n.Name]+r.Size+overhead) <= mostFull*float64(n.Capacity) &&
				!slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == n.Name }) {
				t.Errorf("a move for balance, and %s could have %v", n.Name, r)
			}
		}
	}
}

// Of any picture, the plan keeps the promises.
func TestPromises(t *testing.T) {
	rnd := seed.Rand(t)
	kinds, reasons := map[Kind]int{}, map[Reason]int{}
	for range seed.Count(20000) {
		w := draw(rnd, 1+rnd.IntN(12), rnd.IntN(40), false)
		steps := Plan(w.Picture, w.o)
		judge(t, w.Picture, w.o, steps)
		if t.Failed() {
			t.Fatalf("%+v\n%+v\n%v", w.o, w.Picture, steps)
		}
		for _, s := range steps {
			kinds[s.Kind]++
			reasons[s.Reason]++
		}
	}
	for k := Add; k <= Merge; k++ {
		if kinds[k] == 0 && !testing.Short() {
			t.Errorf("no plan has a step %v", k)
		}
	}
	for r := Repair; r <= Surplus; r++ {
		if reasons[r] == 0 && !testing.Short() {
			t.Errorf("no plan has a step for %v", r)
		}
	}
	t.Log(kinds, reasons)
}

// A picture that is kept up to date, in any order, gives the plan of one that is new.
func TestIncremental(t *testing.T) {
	rnd := seed.Rand(t)
	for range seed.Count(400) {
		w := draw(rnd, 1+rnd.IntN(12), rnd.IntN(40), false)
		p := w.planner()
		for range 1 + rnd.IntN(20) {
			for range 1 + rnd.IntN(6) {
				w.change(p)
			}
			got := p.Steps()
			if rnd.IntN(4) == 0 && !slices.Equal(got, p.Steps()) {
				t.Fatal("the second plan of one picture is another one")
			}
			if want := Plan(w.Picture, w.o); !slices.Equal(got, want) {
				t.Fatalf("%+v\n%v\n%v", w.Picture, got, want)
			}
			if len(p.ranges) != len(w.Ranges) || p.Counts().Ranges != len(w.Ranges) {
				t.Fatal("ranges were lost")
			}
		}
		for len(w.Ranges) > 0 {
			p.RemoveRange(w.Ranges[0].ID)
			w.Ranges = w.Ranges[1:]
		}
		for _, n := range w.Nodes {
			p.RemoveNode(n.Name)
		}
		if p.Steps(); len(p.nodes) > 0 || len(p.order) > 0 || len(p.small)+len(p.large) > 0 {
			t.Fatalf("of an empty cluster there are left %v, %v", p.nodes, p.order)
		}
	}
}

// change changes something of a picture, and tells a planner.
func (w *world) change(p *Planner) {
	rnd := w.rnd
	switch i := rnd.IntN(len(w.Nodes)); rnd.IntN(8) {
	case 0:
		w.Nodes[i].State = State(rnd.IntN(5))
		p.SetNode(w.Nodes[i])
	case 1:
		fresh := draw(rnd, len(w.Nodes), 0, false).Nodes[i]
		fresh.Name = w.Nodes[i].Name
		w.Nodes[i] = fresh
		p.SetNode(fresh)
	case 2:
		if len(w.Nodes) > 1 && rnd.IntN(4) == 0 {
			p.RemoveNode(w.Nodes[i].Name)
			w.Nodes = slices.Delete(w.Nodes, i, i+1)
		}
	case 3:
		if j := rnd.IntN(len(w.Ranges) + 1); j < len(w.Ranges) && rnd.IntN(3) == 0 {
			p.RemoveRange(w.Ranges[j].ID)
			w.Ranges = slices.Delete(w.Ranges, j, j+1)
			break
		}
		w.Ranges = append(w.Ranges, w.drawRange(w.nextID, rnd.IntN(2) == 0))
		w.nextID++
		p.SetRange(w.Ranges[len(w.Ranges)-1])
	default:
		if len(w.Ranges) == 0 {
			break
		}
		j := rnd.IntN(len(w.Ranges))
		r := w.drawRange(w.Ranges[j].ID, rnd.IntN(2) == 0)
		if rnd.IntN(8) == 0 {
			r.Lo += "x"
		}
		w.Ranges[j] = r
		p.SetRange(r)
	}
}
