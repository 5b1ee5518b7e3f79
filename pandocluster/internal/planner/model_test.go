package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// What a model's machines do, and what was measured of raft with a heartbeat timeout of a second: shared/store.md.
const (
	modelPace  = 64 << 20 // bytes a second of one snapshot on its way
	modelBeats = 14       // heartbeats a second of a range with three replicas
	modelRacks = 25
)

// model is a cluster that the planner steers by its own clock, a plan a second.
type model struct {
	*Planner
	rs     map[uint64]*Range
	nodes  []Node
	now    int              // seconds
	events map[int][]func() // by second
	moved  int64            // bytes
	got    map[string]int64 // bytes, by node
	spent  time.Duration    // by plans
	slow   time.Duration    // the slowest of them
	plans  int
	steps  map[Reason]int
}

func newModel(nodes, ranges int) *model {
	o := Defaults()
	o.MinSize = 0
	m := &model{Planner: New(o), rs: map[uint64]*Range{}, events: map[int][]func(){}, got: map[string]int64{}, steps: map[Reason]int{}}
	for i := range nodes {
		n := Node{Name: fmt.Sprintf("n%04d", i), Rack: fmt.Sprint("r", i%modelRacks), Capacity: int64(ranges*3/nodes+1) * 512 << 20}
		m.nodes = append(m.nodes, n)
		m.SetNode(n)
	}
	for i := range ranges {
		r := &Range{ID: uint64(i + 1), Lo: fmt.Sprintf("key %012d", i), Size: int64(256+i%128) << 20, Load: 100}
		for j := range 3 { // in three racks: the nodes of a rack follow each other at a distance of racks
			r.Replicas = append(r.Replicas, Replica{Node: m.nodes[(i*7+j*(modelRacks/3+i%5))%nodes].Name, Votes: true})
		}
		r.Leader = r.Replicas[0].Node
		m.rs[r.ID] = r
		m.SetRange(*r)
	}
	return m
}

func (m *model) at(second int, f func()) { m.events[second] = append(m.events[second], f) }

// run goes on until there is nothing to do, calling each with every second.
func (m *model) run(t *testing.T, most int, each func()) {
	t.Helper()
	idle := 0
	for end := m.now + most; m.now < end && idle < 3; m.now++ {
		for _, f := range m.events[m.now] {
			f()
		}
		delete(m.events, m.now)
		begin := time.Now()
		plan := m.Steps()
		took := time.Since(begin)
		m.spent, m.slow, m.plans = m.spent+took, max(m.slow, took), m.plans+1
		for _, s := range plan {
			m.steps[s.Reason]++
			m.begin(s)
		}
		each()
		if idle++; len(plan)+len(m.events) > 0 {
			idle = 0
		}
	}
	if idle < 3 {
		t.Errorf("there is no end to it within %d s: %+v", most, m.Counts())
	}
}

// begin does a step a second later, and has a new replica catch up in the time that its bytes take.
func (m *model) begin(s Step) {
	r := m.rs[s.Range]
	r.Pending = s
	m.SetRange(*r)
	m.at(m.now+1, func() {
		at := slices.IndexFunc(r.Replicas, func(x Replica) bool { return x.Node == s.Node })
		r.Pending = Step{}
		switch s.Kind {
		case Add:
			r.Replicas = append(r.Replicas, Replica{Node: s.Node})
			m.moved += r.Size
			m.got[s.Node] += r.Size
			m.at(m.now+1+int(r.Size/modelPace), func() {
				if at := slices.IndexFunc(r.Replicas, func(x Replica) bool { return x.Node == s.Node }); at >= 0 {
					r.Replicas[at].Ready = true
					m.SetRange(*r)
				}
			})
		case Promote:
			r.Replicas[at].Votes = true
		case Remove:
			r.Replicas = slices.Delete(r.Replicas, at, at+1)
		case Lead:
			r.Leader = s.Node
		}
		m.SetRange(*r)
	})
}

// fail has a rack fail, and ranges elect another leader.
func (m *model) fail(rack string) (lost int) {
	for i := range m.nodes {
		if n := &m.nodes[i]; n.Rack == rack {
			n.State = Down
			m.SetNode(*n)
		}
	}
	there := func(x Replica) bool {
		return x.Votes && m.nodes[slices.IndexFunc(m.nodes, func(n Node) bool { return n.Name == x.Node })].State == Up
	}
	for _, r := range m.rs {
		if slices.ContainsFunc(r.Replicas, func(x Replica) bool { return x.Node == r.Leader && !there(x) }) {
			r.Leader = r.Replicas[slices.IndexFunc(r.Replicas, there)].Node
			m.SetRange(*r)
		}
		if slices.ContainsFunc(r.Replicas, func(x Replica) bool { return !there(x) }) {
			lost++
		}
	}
	return lost
}

// even returns the most that a node has, and leads, of the mean of those that are up; and how many ranges have two
// replicas in one rack.
func (m *model) even() (bytes, leads float64, shared int) {
	has, led, racks, up := map[string]int64{}, map[string]int64{}, map[string]string{}, 0
	var all, most, mostLed int64
	for _, n := range m.nodes {
		racks[n.Name] = n.Rack
		if n.State == Up {
			up++
		}
	}
	for _, r := range m.rs {
		in := map[string]bool{}
		for _, x := range r.Replicas {
			has[x.Node] += r.Size
			most, all = max(most, has[x.Node]), all+r.Size
			in[racks[x.Node]] = true
		}
		if len(in) < len(r.Replicas) {
			shared++
		}
		led[r.Leader]++
		mostLed = max(mostLed, led[r.Leader])
	}
	return float64(most) * float64(up) / float64(all), float64(mostLed) * float64(up) / float64(len(m.rs)), shared
}

// TestModel is a cluster beyond the machines that there are, steered by the real planner: it loses a rack. docs/cluster.md
// has what it found at full size: PANDO_LONG=1.
func TestModel(t *testing.T) {
	nodes, ranges := seed.Size(50, 1000), seed.Size(1000, 100_000)
	m := newModel(nodes, ranges)
	m.run(t, 4000, func() {})
	bytes, leads, shared := m.even()
	t.Logf("%d nodes, %d ranges: laid out by %d plans, the fullest has %.2f of the mean, leads %.2f", nodes, ranges, m.plans, bytes, leads)
	if shared > 0 || bytes > 1.3 || leads > 1.3 {
		t.Errorf("%d ranges share racks, the fullest has %.2f of the mean, leads %.2f", shared, bytes, leads)
	}
	calm := m.plans
	for range 10 {
		begin := time.Now()
		if s := m.Steps(); len(s) > 0 {
			t.Errorf("after %d plans there is %v to do", calm, s)
		}
		m.slow = time.Since(begin)
	}
	t.Logf("a plan of a calm cluster takes %v", m.slow)

	lost := m.fail("r3")
	m.moved, m.spent, m.slow, m.plans = 0, 0, 0, 0
	clear(m.got)
	clear(m.steps)
	begin, safe, half := m.now, 0, 0
	m.run(t, 20_000, func() {
		c := m.Counts()
		if c.Stuck > 0 {
			t.Fatalf("%+v", c)
		}
		if c.Urgent+c.Few > lost/2 {
			half = m.now - begin
		}
		if c.Urgent+c.Few+c.Pending > 0 {
			safe = m.now - begin
		}
	})
	bytes, leads, shared = m.even()
	if c := m.Counts(); c.Urgent+c.Few+c.Begun+c.Leaving+c.Shared > 0 || shared > 0 {
		t.Errorf("%+v, %d ranges share racks", c, shared)
	}
	if bytes > 1.3 || leads > 1.3 {
		t.Errorf("the fullest has %.2f of the mean, leads %.2f", bytes, leads)
	}
	var most int64
	for _, n := range m.got {
		most = max(most, n)
	}
	t.Logf("a rack of %d nodes lost: %d ranges have a replica less; half have three again after %d s, all after %d s, the rest of the work after %d s; %d GiB moved, %d GiB to one node at most",
		nodes/modelRacks, lost, half, safe, m.now-begin, m.moved>>30, most>>30)
	t.Logf("then the fullest has %.2f of the mean, leads %.2f; steps by reason %v", bytes, leads, m.steps)
	t.Logf("%d plans, %v each, the slowest %v", m.plans, m.spent/time.Duration(m.plans), m.slow)

	for i := range m.nodes { // the rack comes back, with nothing
		if n := &m.nodes[i]; n.State == Down {
			n.State = Up
			m.SetNode(*n)
		}
	}
	m.moved, m.spent, m.slow, m.plans = 0, 0, 0, 0
	begin = m.now
	m.run(t, 20_000, func() {})
	bytes, leads, shared = m.even()
	if shared > 0 || bytes > 1.3 || leads > 1.3 {
		t.Errorf("%d ranges share racks, the fullest has %.2f of the mean, leads %.2f", shared, bytes, leads)
	}
	t.Logf("the rack comes back empty: even after %d s, %d GiB moved; %d plans, %v each, the slowest %v", m.now-begin, m.moved>>30, m.plans, m.spent/time.Duration(m.plans), m.slow)

	names, bytesOf := 0, 0
	for _, r := range m.rs {
		bytesOf += len(r.Lo) + 8 + 8
		for _, x := range r.Replicas {
			names++
			bytesOf += len(x.Node) + 17 + 8 + 1 // name, its 16 digits, the replica's number, whether it votes
		}
	}
	t.Logf("map: %d bytes a range, %.1f MiB in all; heartbeats: %d led ranges a node, %d a second sent and as many received, %d in all",
		bytesOf/ranges, float64(bytesOf)/(1<<20), ranges/nodes, ranges/nodes*modelBeats, ranges*modelBeats)
}
