package pandocluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// route is where a range is, as far as this node knows. It may be wrong: whoever is asked says so.
type route struct {
	id     uint64
	bounds machine.Bounds
	nodes  []string
}

// routes is what a node knows of ranges: the map as it was some time ago, and what others have said since.
type routes struct {
	mu      sync.Mutex
	list    []route           // by bounds.Lo
	maps    []string          // nodes with a replica of the map
	leaders map[uint64]string // nodes that were said to lead
}

// find returns the range that has a key: of several, where one has given keys to another, the one that begins last.
func (r *routes) find(key string) (found route, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end, _ := slices.BinarySearchFunc(r.list, key, func(at route, key string) int {
		if at.bounds.Lo <= key {
			return -1
		}
		return 1
	})
	for i := end - 1; i >= 0; i-- {
		if r.list[i].bounds.Contains(key) {
			return r.list[i], true
		}
	}
	return found, false
}

// of returns the range of an ID.
func (r *routes) of(id uint64) (found route, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == mapRange {
		return route{id: mapRange, nodes: slices.Clone(r.maps)}, true
	}
	for _, x := range r.list {
		if x.id == id {
			return x, true
		}
	}
	return found, false
}

// nodes returns the nodes that are said to have a replica of a range.
func (r *routes) nodes(id uint64) []string {
	found, _ := r.of(id)
	return found.nodes
}

// hint notes that a node has a replica of a range.
func (r *routes) hint(id uint64, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == mapRange && !slices.Contains(r.maps, node) {
		r.maps = append(r.maps, node)
	}
}

// lead notes who leads a range.
func (r *routes) lead(id uint64, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaders == nil {
		r.leaders = map[uint64]string{}
	}
	if node == "" {
		delete(r.leaders, id)
		return
	}
	r.leaders[id] = node
}

func (r *routes) leader(id uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaders[id]
}

// set replaces all by what the map says.
func (r *routes) set(list []route, maps []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(list, func(a, b route) int {
		return cmp.Or(strings.Compare(a.bounds.Lo, b.bounds.Lo), cmp.Compare(a.id, b.id))
	})
	r.list = list
	if len(maps) > 0 {
		r.maps = maps
	}
}

// born notes what a range has said: its bounds, and to whom it has given keys.
func (r *routes) born(id uint64, b machine.Bounds, children []machine.Born) {
	r.mu.Lock()
	list := slices.Clone(r.list)
	maps := r.maps
	r.mu.Unlock()
	for i := range list {
		if list[i].id == id {
			list[i].bounds = b
		}
	}
	for _, c := range children {
		if slices.ContainsFunc(list, func(x route) bool { return x.id == c.ID }) {
			continue
		}
		x := route{id: c.ID, bounds: c.Bounds}
		for _, s := range c.Servers {
			node, _ := member(s)
			x.nodes = append(x.nodes, node)
		}
		list = append(list, x)
	}
	r.set(list, maps)
}

// targets returns whom to ask for a range: who is said to lead, this node, the others.
func (n *Node) targets(id uint64) (nodes []string) {
	add := func(node string) {
		if node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	r := n.replica(id)
	if r != nil {
		leader, _ := member(r.Leader())
		add(leader)
	}
	add(n.routes.leader(id))
	if r != nil {
		add(n.id)
		for _, m := range r.Members() {
			node, _ := member(m.ID)
			add(node)
		}
	}
	for _, node := range n.routes.nodes(id) {
		add(node)
	}
	return nodes
}

// read asks replicas of a range in turn, until one answers.
func (n *Node) read(ctx context.Context, id uint64, what byte, rest []byte) (*packet.Reader, error) {
	err := error(ErrUnavailable)
	for _, node := range n.targets(id) {
		sub, cancel := context.WithTimeout(ctx, 3*n.o.Beat)
		a, failed := n.ask(sub, node, what, id, rest, nil)
		cancel()
		if failed == nil {
			failed = a.err()
		}
		if failed == nil {
			return a.body, nil
		}
		err = failed
		if ctx.Err() != nil || n.ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// retry does something until it is done, or ctx ends. In between it looks at the map.
func (n *Node) retry(ctx context.Context, f func() error) error {
	for wait := n.o.Beat / 50; ; wait = min(2*wait, n.o.Beat/2) {
		if err := n.usable(); err != nil {
			return err
		}
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !n.pause(ctx, wait) {
			if err := n.usable(); err != nil {
				return err
			}
			return wrong(ErrUnavailable, err)
		}
		n.look(ctx)
	}
}

// look reads the map, if it can be read soon.
func (n *Node) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.o.Beat)
	defer cancel()
	var list []route
	var maps []string
	from := ""
	for {
		r, err := n.read(ctx, mapRange, askPage, packet.Uint(packet.Bool(machine.Span{Lo: from, After: from != ""}.AppendTo(nil), false), 1<<20))
		if err != nil {
			return
		}
		_ = machine.Bounds{Lo: r.String(), Hi: r.String()}
		more := r.Bool()
		for range r.Count() {
			key, val := r.String(), r.Bytes()
			from = key
			if id, ok := strings.CutPrefix(key, "n/"); ok {
				n.seen(id, val)
			}
			if rec, ok := readRecord(key, val); ok {
				x := route{id: rec.id, bounds: rec.bounds}
				for _, m := range rec.members {
					node, _ := member(m.ID)
					x.nodes = append(x.nodes, node)
				}
				if rec.id == mapRange {
					maps = x.nodes
				} else {
					list = append(list, x)
				}
			}
		}
		if r.Err() != nil {
			return
		}
		if !more {
			break
		}
	}
	n.routes.set(list, maps)
}

// refresh reads the map now and then.
func (n *Node) refresh() {
	for {
		n.look(n.ctx)
		if !n.pause(n.ctx, 2*n.o.Beat) {
			return
		}
	}
}

// sessions are those that this node has opened, by range. Batches in parts have sessions of their own: one takes long, and keeps what is done after it
// from being acked.
type sessions struct {
	mu sync.Mutex
	of map[sessionKey]*session
}

type sessionKey struct {
	id    uint64 // of a range
	parts bool
}

// session is this node as a client of a range.
type session struct {
	opening chan struct{} // has a token for whoever opens it

	mu   sync.Mutex
	id   uint64 // 0 if none is open
	next uint64
	open map[uint64]bool // numbers under way
	room chan struct{}
}

// mostUnderWay is how many changes of a node are under way in a range.
const mostUnderWay = 256

func (n *Node) session(k sessionKey) *session {
	n.sessions.mu.Lock()
	defer n.sessions.mu.Unlock()
	s := n.sessions.of[k]
	if s == nil {
		s = &session{open: map[uint64]bool{}, room: make(chan struct{}, mostUnderWay), opening: make(chan struct{}, 1)}
		n.sessions.of[k] = s
	}
	return s
}

// call numbers a change, as long as the session is that one.
func (s *session) call() (c machine.Call, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == 0 {
		return c, false
	}
	s.next++
	s.open[s.next] = true
	c = machine.Call{Session: s.id, Seq: s.next, Acked: s.next}
	for seq := range s.open {
		c.Acked = min(c.Acked, seq)
	}
	return c, true
}

func (s *session) done(c machine.Call, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == c.Session {
		delete(s.open, c.Seq)
		if lost {
			s.id, s.next, s.open = 0, 0, map[uint64]bool{}
		}
	}
}

// beginCall numbers a change of a range, in a session that is opened if there is none.
func (n *Node) beginCall(ctx context.Context, id uint64, s *session) (machine.Call, error) {
	for {
		if c, ok := s.call(); ok {
			return c, nil
		}
		select {
		case s.opening <- struct{}{}:
		case <-ctx.Done():
			return machine.Call{}, ctx.Err()
		}
		s.mu.Lock()
		there := s.id != 0
		s.mu.Unlock()
		if !there {
			res, _, err := n.propose(ctx, id, machine.Open())
			if err != nil {
				<-s.opening
				return machine.Call{}, err
			}
			s.mu.Lock()
			s.id, s.next, s.open = res.ID, 0, map[uint64]bool{}
			s.mu.Unlock()
		}
		<-s.opening
	}
}

// change makes a change of a range: entries by build, the last of which when all others are there. Whatever the result says, is so;
// ErrUnavailable and errRefused say that nothing was done, and ErrUnknown that nobody knows.
func (n *Node) change(ctx context.Context, id uint64, build func(machine.Call) (parts [][]byte, last []byte)) (machine.Result, error) {
	return n.changeIn(ctx, sessionKey{id: id}, build)
}

// changeIn is change in a session.
func (n *Node) changeIn(ctx context.Context, k sessionKey, build func(machine.Call) (parts [][]byte, last []byte)) (machine.Result, error) {
	id, s := k.id, n.session(k)
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-ctx.Done():
		return machine.Result{}, ErrUnavailable
	case <-n.ctx.Done():
		return machine.Result{}, ErrClosed
	}
	for {
		c, err := n.beginCall(ctx, id, s)
		if err != nil {
			return machine.Result{}, wrong(ErrUnavailable, err)
		}
		res, unsure, err := n.proposeAll(ctx, id, c, build)
		lost := err == nil && res.Status == machine.NoSession
		s.done(c, lost)
		switch {
		case err != nil && unsure:
			return res, wrong(ErrUnknown, err)
		case errors.Is(err, ErrTooLong):
			return res, err
		case err != nil:
			return res, wrong(ErrUnavailable, err)
		case lost && unsure:
			return res, ErrUnknown
		case res.Status == machine.Refused:
			return res, errRefused
		case !lost:
			return res, nil
		}
	}
}

// proposeAll proposes the entries of a change.
func (n *Node) proposeAll(ctx context.Context, id uint64, c machine.Call, build func(machine.Call) ([][]byte, []byte)) (res machine.Result, unsure bool, err error) {
	parts, last := build(c)
	if len(last) > consensus.MostEntry {
		return res, false, ErrTooLong
	}
	const atOnce = 16
	for lo := 0; lo < len(parts); lo += atOnce {
		some := parts[lo:min(lo+atOnce, len(parts))]
		results, errs := make([]machine.Result, len(some)), make([]error, len(some))
		var all sync.WaitGroup
		for i, p := range some {
			all.Go(func() { results[i], _, errs[i] = n.propose(ctx, id, p) })
		}
		all.Wait()
		for i := range some {
			if errs[i] != nil || results[i].Status != machine.Done {
				return results[i], false, errs[i]
			}
		}
	}
	return n.propose(ctx, id, last)
}

// propose proposes an entry until it has a result, or ctx ends: unsure says whether it may have been applied before, or may be later.
func (n *Node) propose(ctx context.Context, id uint64, entry []byte) (res machine.Result, unsure bool, err error) {
	err = ErrUnavailable
	for wait := n.o.Beat / 50; ; wait = min(2*wait, n.o.Beat/2) {
		for _, node := range n.targets(id) {
			if err := ctx.Err(); err != nil {
				return res, unsure, err
			}
			sub, cancel := context.WithTimeout(ctx, 4*n.o.Beat)
			a, failed := n.ask(sub, node, askPropose, id, entry, nil)
			cancel()
			if failed != nil {
				unsure, err = true, failed
				continue
			}
			switch a.code {
			case okay:
				res, err = machine.ReadResult(a.body.Rest())
				if err != nil || res.Status != machine.Busy {
					n.routes.lead(id, node)
					return res, unsure, err
				}
				if !(mutant.On && mutant.Is("cluster: busy is not done")) {
					err = errBusy
				}
			case notLeader:
				leader, _ := member(a.text)
				n.routes.lead(id, leader)
				err = a.err()
			case notHere:
				err = a.err()
			default:
				unsure, err = true, a.err()
			}
		}
		if !n.pause(ctx, wait) {
			return res, unsure, err
		}
		n.look(ctx)
	}
}
