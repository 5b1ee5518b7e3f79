package pandocluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// The map has
//
//	n/ID      a node: its name and address, whether it drains, whether it is gone
//	r/number  a range, as its leader has told
//	c/next    the number of the next range
const nextKey = "c/next"

func nodeKey(id string) string  { return "n/" + id }
func rangeKey(id uint64) string { return fmt.Sprintf("r/%016x", id) }

// record is a range in the map.
type record struct {
	id          uint64
	bounds      machine.Bounds
	term, index uint64 // when it was so: a later leader, or a later entry, knows better
	leader      string // a node
	members     []consensus.Member
	keys, bytes int64
}

func (r *record) encode() []byte {
	b := packet.Bytes(packet.Bytes(nil, r.bounds.Lo), r.bounds.Hi)
	b = packet.Bytes(packet.Uint(packet.Uint(b, r.term), r.index), r.leader)
	b = packet.Uint(b, uint64(len(r.members)))
	for _, m := range r.members {
		b = packet.Bool(packet.Bytes(b, m.ID), m.Voter)
	}
	return packet.Uint(packet.Uint(b, uint64(r.keys)), uint64(r.bytes))
}

func readRecord(key string, val []byte) (r record, ok bool) {
	text, ok := strings.CutPrefix(key, "r/")
	if !ok {
		return r, false
	}
	id, err := strconv.ParseUint(text, 16, 64)
	p := packet.Read(val)
	r = record{id: id, bounds: machine.Bounds{Lo: p.String(), Hi: p.String()}, term: p.Uint(), index: p.Uint(), leader: p.String()}
	for range p.Count() {
		r.members = append(r.members, consensus.Member{ID: p.String(), Voter: p.Bool()})
	}
	r.keys, r.bytes = int64(p.Uint()), int64(p.Uint())
	return r, err == nil && p.Err() == nil
}

func (p *peer) encode() []byte {
	b := packet.Bool(packet.Bool(packet.Bytes(packet.Bytes(nil, p.name), p.addr), p.draining), p.gone)
	return packet.Uint(b, uint64(p.removed))
}

func readPeer(val []byte) (p peer, ok bool) {
	r := packet.Read(val)
	p = peer{name: r.String(), addr: r.String(), draining: r.Bool(), gone: r.Bool()}
	if len(r.Rest()) > 0 {
		p.removed = int64(r.Uint())
	}
	return p, r.Err() == nil
}

// seen notes what the map says of a node.
func (n *Node) seen(id string, val []byte) {
	p, ok := readPeer(val)
	if !ok {
		return
	}
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	if old, ok := n.peers[id]; ok && old.addr != "" {
		p.name, p.addr = old.name, old.addr // the node itself has told, or the map did before
	}
	n.peers[id] = p
}

// watch is what a node has heard of others, and when.
type watch struct {
	mu     sync.Mutex
	nodes  map[string]time.Time
	ranges map[uint64]heardRange
}

type heardRange struct {
	term, index uint64
	at          time.Time
}

func (w *watch) heard(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]time.Time{}
	}
	w.nodes[id] = time.Now()
}

// silent returns for how long nothing was heard of a node. One that was never heard of begins to be silent now.
func (w *watch) silent(id string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]time.Time{}
	}
	at, ok := w.nodes[id]
	if !ok {
		at = time.Now()
		w.nodes[id] = at
	}
	return time.Since(at)
}

func (w *watch) age(r *record) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ranges == nil {
		w.ranges = map[uint64]heardRange{}
	}
	h := w.ranges[r.id]
	if h.term != r.term || h.index != r.index || h.at.IsZero() {
		h = heardRange{r.term, r.index, time.Now()}
		w.ranges[r.id] = h
	}
	return time.Since(h.at)
}

// report tells the map of this node, and of ranges that it leads.
func (n *Node) report() {
	told := map[uint64]record{}
	registered := false
	for n.pause(n.ctx, n.o.Beat) {
		if !registered {
			registered = n.register() == nil
		}
		for id, r := range n.running() {
			if !r.Leads() {
				delete(told, id)
				continue
			}
			n.tidy(r)
			m := r.Machine()
			rec := record{id: id, term: r.Term(), index: m.Applied(), leader: n.id, members: r.Members()}
			var there bool
			if rec.bounds, there = m.Bounds(); !there {
				continue
			}
			old, ok := told[id]
			if ok && old.bounds == rec.bounds && old.term == rec.term && slices.Equal(old.members, rec.members) && rec.index-old.index < 1000 {
				continue
			}
			rec.keys, rec.bytes = m.Size()
			if n.tell(&rec) == nil {
				told[id] = rec
			}
		}
	}
}

// tidy removes a member of a node that has another one, with a higher number: two leaders in turn may have added
// it, and only the last is there.
func (n *Node) tidy(r *consensus.Replica) {
	newest := map[string]uint64{}
	members := r.Members()
	for _, m := range members {
		node, number := member(m.ID)
		newest[node] = max(newest[node], number)
	}
	for _, m := range members {
		if node, number := member(m.ID); number < newest[node] && m.ID != r.Self() {
			now, index, err := r.Configuration()
			if err != nil || !slices.Equal(now, members) {
				return
			}
			ctx, cancel := context.WithTimeout(n.ctx, 5*n.o.Beat)
			_ = r.Remove(ctx, m.ID, index) // else again
			cancel()
			return
		}
	}
}

// register puts this node into the map.
func (n *Node) register() error {
	ctx, cancel := context.WithTimeout(n.ctx, 5*n.o.Beat)
	defer cancel()
	return n.onMap(ctx, nodeKey(n.id), func(old []byte, had bool) ([]byte, bool) {
		p, _ := readPeer(old)
		p.name, p.addr = n.o.Name, n.o.Addr
		return p.encode(), true
	})
}

// tell puts a range into the map, unless the map knows better.
func (n *Node) tell(rec *record) error {
	ctx, cancel := context.WithTimeout(n.ctx, 5*n.o.Beat)
	defer cancel()
	return n.onMap(ctx, rangeKey(rec.id), func(old []byte, had bool) ([]byte, bool) {
		if is, ok := readRecord(rangeKey(rec.id), old); had && ok && (is.term > rec.term || is.term == rec.term && is.index > rec.index) {
			return old, true
		}
		return rec.encode(), true
	})
}

// onMap changes a value of the map by what it is.
func (n *Node) onMap(ctx context.Context, key string, f func(old []byte, had bool) (val []byte, keep bool)) error {
	for {
		old, had, err := n.mapValue(ctx, key)
		if err != nil {
			return err
		}
		val, keep := f(old, had)
		if keep == had && bytes.Equal(val, old) {
			return nil
		}
		done, differs, err := n.swap(ctx, mapRange, key, old, had, val, keep)
		if err != nil || done && !differs {
			return err
		}
	}
}

// mapValue reads a value of the map.
func (n *Node) mapValue(ctx context.Context, key string) (val []byte, had bool, err error) {
	err = n.retry(ctx, func() error {
		r, err := n.read(ctx, mapRange, askGet, packet.Bytes(packet.Uint(nil, 1), key))
		if err != nil {
			return err
		}
		if r.Uint() != 1 {
			return packet.ErrBad
		}
		if had = r.Bool(); had {
			val = r.Bytes()
		}
		return r.Err()
	})
	return val, had, err
}

// Picture returns what the leader of the map knows of the cluster.
func (n *Node) Picture(ctx context.Context) (p Picture, err error) {
	err = n.retry(ctx, func() error {
		r, err := n.read(ctx, mapRange, askPicture, nil)
		if err != nil {
			return err
		}
		p = Picture{}
		return json.Unmarshal(r.Rest(), &p)
	})
	return p, err
}

func (n *Node) servePicture(ctx context.Context) ([]byte, error) {
	r := n.replica(mapRange)
	if r == nil {
		return refused(notHere, ""), nil
	}
	if !r.Leads() {
		return errored(r, consensus.ErrNotLeader), nil
	}
	if err := n.fresh(ctx, r); err != nil {
		return errored(r, err), nil
	}
	b, err := json.Marshal(n.picture(r.Machine()))
	return answered(b), err
}

// picture makes a picture of the map.
func (n *Node) picture(m *machine.Machine) (p Picture) {
	m.Page(machine.Span{}, false, 1<<30, 1<<40, func(key string, val []byte) {
		if id, ok := strings.CutPrefix(key, "n/"); ok {
			if x, ok := readPeer(val); ok {
				info := NodeInfo{ID: id, Name: x.name, Addr: x.addr, Draining: x.draining, Gone: x.gone}
				if id != n.id {
					info.Silent = n.watch.silent(id)
				}
				p.Nodes = append(p.Nodes, info)
			}
		}
		if rec, ok := readRecord(key, val); ok {
			info := RangeInfo{ID: rec.id, Lo: rec.bounds.Lo, Hi: rec.bounds.Hi, Leader: rec.leader, Keys: rec.keys, Bytes: rec.bytes, Age: n.watch.age(&rec)}
			for _, s := range rec.members {
				node, _ := member(s.ID)
				info.Replicas = append(info.Replicas, ReplicaInfo{node, s.Voter})
			}
			p.Ranges = append(p.Ranges, info)
		}
	})
	slices.SortFunc(p.Ranges, func(a, b RangeInfo) int {
		if (a.ID == mapRange) != (b.ID == mapRange) {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.ID, b.ID))
	})
	return p
}

// plan does what the planner asks for, while this node leads the map.
func (n *Node) plan() {
	for n.pause(n.ctx, n.o.PlanEvery) {
		r := n.replica(mapRange)
		if r == nil || !r.Leads() {
			continue
		}
		ctx, cancel := context.WithTimeout(n.ctx, 5*n.o.Beat)
		err := n.fresh(ctx, r)
		cancel()
		if err != nil {
			continue
		}
		for _, s := range n.o.Plan(n.picture(r.Machine())) {
			ctx, cancel := context.WithTimeout(n.ctx, n.o.Timeout)
			if err := n.Do(ctx, s); err != nil && n.ctx.Err() == nil {
				n.o.Log(fmt.Sprintf("%+v is put off", s), err)
			}
			cancel()
		}
	}
}

// errNot is an error of a step that will not go away by itself.
type errNot struct{ text string }

func (e *errNot) Error() string { return e.text }

// Do does a step, and returns when it is done, or why it is not.
func (n *Node) Do(ctx context.Context, s Step) error {
	id := s.Range
	switch s.Kind {
	case Drain, Undrain, Forget:
		return n.mark(ctx, s)
	}
	var final error
	err := n.retry(ctx, func() error {
		err := error(ErrUnavailable)
		if s.Kind == Split && s.Key != "" { // else of a range that is named
			of, ok := n.routes.find(s.Key)
			if !ok {
				return err
			}
			id, s.Range = of.id, of.id
		}
		text, failed := json.Marshal(s)
		if failed != nil {
			return failed
		}
		for _, node := range n.targets(id) {
			a, failed := n.ask(ctx, node, askStep, id, packet.Bytes(nil, text), nil)
			if failed != nil {
				err = failed
				continue
			}
			if err = a.err(); a.code == okay {
				if final = nil; !a.body.Bool() {
					final = errors.New("pandocluster: " + a.body.String())
				}
				return nil
			}
			if a.code == notLeader {
				leader, _ := member(a.text)
				n.routes.lead(id, leader)
			}
		}
		return err
	})
	if err == nil {
		err = final
	}
	return err
}

// mark notes something of a node in the map.
func (n *Node) mark(ctx context.Context, s Step) error {
	known := false
	if s.Kind == Forget {
		n.look(ctx) // whether another node has its name by now
	}
	err := n.onMap(ctx, nodeKey(s.Node), func(old []byte, had bool) ([]byte, bool) {
		p, ok := readPeer(old)
		if known = had && ok; !known {
			return old, had
		}
		switch s.Kind {
		case Drain:
			p.draining = true
		case Undrain:
			p.draining = false
		case Forget:
			if p.gone = true; p.removed == 0 && !n.another(s.Node) {
				p.removed = time.Now().Unix()
			}
		}
		return p.encode(), true
	})
	if err == nil && !known {
		err = fmt.Errorf("pandocluster: nobody knows a node %q", s.Node)
	}
	if err == nil && s.Kind == Forget { // this node refuses it from now on; others soon
		n.look(ctx)
		err = n.savePeers()
	}
	return err
}

// serveStep does a step of a range that this node leads.
func (n *Node) serveStep(ctx context.Context, r *packet.Reader) ([]byte, error) {
	var s Step
	if err := json.Unmarshal(r.Bytes(), &s); err != nil {
		return nil, err
	}
	replica := n.replica(s.Range)
	if replica == nil {
		return refused(notHere, ""), nil
	}
	if !replica.Leads() {
		return errored(replica, consensus.ErrNotLeader), nil
	}
	err := n.step(ctx, replica, s)
	var not *errNot
	switch {
	case errors.As(err, &not):
		return packet.Bytes(packet.Bool([]byte{byte(okay)}, false), not.text), nil
	case err != nil:
		return errored(replica, err), nil
	}
	return packet.Bool([]byte{byte(okay)}, true), nil
}

func (n *Node) step(ctx context.Context, r *consensus.Replica, s Step) error {
	if s.Kind == AddReplica {
		select {
		case n.adding <- struct{}{}:
			defer func() { <-n.adding }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	members, index, err := r.Configuration()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(m consensus.Member) bool { node, _ := member(m.ID); return node == s.Node })
	switch s.Kind {
	case AddReplica:
		if i >= 0 {
			return nil
		}
		return r.Add(ctx, fmt.Sprintf("%s#%d", s.Node, memberNumber(r.Term(), r.LastIndex())))
	case Promote:
		if i < 0 {
			return &errNot{s.Node + " has no replica of the range"}
		}
		if members[i].Voter {
			return nil
		}
		if err := n.caughtUp(ctx, r, s.Range, members[i].ID); err != nil {
			return err
		}
		return r.Promote(ctx, members[i].ID, index)
	case RemoveReplica:
		if i < 0 {
			return nil
		}
		return n.remove(ctx, r, members, index, members[i])
	case MoveLead:
		if i < 0 || !members[i].Voter {
			return &errNot{s.Node + " has no replica of the range with a vote"}
		}
		if s.Node == n.id {
			return nil
		}
		return r.Transfer(ctx, members[i].ID)
	case Split:
		return n.split(ctx, r, members, s)
	}
	return &errNot{fmt.Sprintf("nobody knows a step %d", s.Kind)}
}

// memberNumber numbers a member by the leader's term and the last entry of its log. No number comes twice, nor does one go back: a later leader's
// log may end before what an earlier one had, and what is before the entry that adds the member has others.
func memberNumber(term, last uint64) uint64 {
	if mutant.On && mutant.Is("cluster: numbers of members by term") {
		return last + 1
	}
	return term<<40 | (last + 1)
}

// caughtUp waits until a member has what its leader has now.
func (n *Node) caughtUp(ctx context.Context, r *consensus.Replica, id uint64, of string) error {
	want := r.Machine().Applied()
	node, _ := member(of)
	for {
		a, err := n.ask(ctx, node, askState, id, packet.Bytes(nil, of), nil)
		if err == nil && a.code == okay && a.body.Uint() >= want && a.body.Err() == nil {
			return nil
		}
		if !n.pause(ctx, n.o.Beat/10) {
			return wrong(ErrUnavailable, err)
		}
	}
}

// remove removes a member; a leader hands over first, and whoever leads then does it.
func (n *Node) remove(ctx context.Context, r *consensus.Replica, members []consensus.Member, index uint64, m consensus.Member) error {
	voters := slices.DeleteFunc(slices.Clone(members), func(o consensus.Member) bool { return !o.Voter || o.ID == m.ID })
	if m.Voter && len(voters) == 0 {
		return &errNot{"it is the last replica of the range"}
	}
	if m.ID != r.Self() {
		return r.Remove(ctx, m.ID, index)
	}
	for _, v := range voters {
		if r.Transfer(ctx, v.ID) == nil {
			return consensus.ErrNotLeader
		}
	}
	return errors.New("nobody takes over")
}

// split gives the keys from one on to a new range, with a replica on each node that has one with a vote.
func (n *Node) split(ctx context.Context, r *consensus.Replica, members []consensus.Member, s Step) error {
	if s.Range == mapRange {
		return &errNot{"the map cannot be split"}
	}
	if s.Key == "" {
		keys, _ := r.Machine().Size()
		s.Key, _, _ = r.Machine().At(int(keys / 2))
	}
	if b, _ := r.Machine().Bounds(); s.Key == b.Lo {
		return nil
	}
	var child uint64
	err := n.onMap(ctx, nextKey, func(old []byte, had bool) ([]byte, bool) {
		child = max(2, packet.Read(old).Uint())
		return packet.Uint(nil, child+1), true
	})
	if err != nil {
		return err
	}
	var servers []string
	for _, m := range members {
		if node, _ := member(m.ID); m.Voter {
			servers = append(servers, node+"#1")
		}
	}
	res, err := n.change(ctx, s.Range, func(c machine.Call) ([][]byte, []byte) { return nil, c.Split(s.Key, child, servers) })
	if errors.Is(err, ErrTooLong) {
		return &errNot{err.Error()}
	}
	if err != nil {
		return err
	}
	if res.Status == machine.Outside {
		n.routes.born(s.Range, res.Bounds, res.Born)
		if slices.ContainsFunc(res.Born, func(b machine.Born) bool { return b.Bounds.Lo == s.Key }) {
			return nil
		}
		return errors.New("the key is not in the range any more") // whoever asks looks again which has it
	}
	return nil
}
