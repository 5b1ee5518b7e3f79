package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// This file is the replicas that a node has: when they begin, and when they end.

// replica returns the replica of a range, nil if there is none.
func (n *Node) replica(id uint64) *consensus.Replica {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.replicas[id]
}

// running returns the replicas.
func (n *Node) running() map[uint64]*consensus.Replica {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[uint64]*consensus.Replica, len(n.replicas))
	for id, r := range n.replicas {
		all[id] = r
	}
	return all
}

// member returns the node and the number of a member.
func member(server string) (node string, number uint64) {
	node, text, _ := strings.Cut(server, "#")
	number, _ = strconv.ParseUint(text, 10, 64)
	return node, number
}

// begin takes a range, so that nobody else starts or ends its replica. When the node is closed nobody can.
func (n *Node) begin(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.starting[id] || n.closed && !(mutant.On && mutant.Is("cluster: close beside starts")) {
		return false
	}
	n.starting[id] = true
	return true
}

func (n *Node) done(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.starting, id)
	if len(n.starting) == 0 {
		n.settled.Broadcast()
	}
}

// left returns the number of the last replica of a range that has left this node.
func (n *Node) left(id uint64) (uint64, error) {
	if mutant.On && mutant.Is("cluster: left and forgotten") {
		return 0, nil
	}
	return n.own.GetUint64(fmt.Appendf(nil, "left/%d", id))
}

// hasSnapshot reports whether there is a snapshot of a range, and its bounds.
func (n *Node) hasSnapshot(id uint64) (b machine.Bounds, ok bool, err error) {
	if _, ok := n.snapshots.Newest(id); !ok {
		return b, false, nil
	}
	f, err := n.snapshots.Open(id)
	if err != nil {
		return b, true, err
	}
	defer f.Close()
	b, err = machine.BoundsOf(f)
	return b, true, err
}

// resume starts the replica of a range that has something on disk, if its keys are free. The caller has begun it.
func (n *Node) resume(id uint64) error {
	if n.replica(id) != nil {
		return nil
	}
	self, err := n.log.Group(id).Get([]byte("self"))
	if err != nil {
		return err
	}
	ran := self != nil
	meta, snapshot := n.snapshots.Newest(id)
	if !ran && snapshot {
		for _, s := range meta.Configuration.Servers {
			if node, _ := member(string(s.ID)); node == n.id {
				self = []byte(s.ID)
			}
		}
	}
	last, err := n.left(id)
	if err != nil {
		return err
	}
	if _, number := member(string(self)); number <= last {
		return n.forget(id)
	}
	if b, ok, err := n.hasSnapshot(id); err != nil || ok && id != mapRange && !n.claims.Free(id, b) {
		if err == nil && !ran && n.claims.Overtaken(id, b, func(b machine.Bounds) { clearBounds(n.tree, b) }) {
			return n.snapshots.Drop(id) // the others have begun it, and give it what it has now
		}
		return err // its parent's snapshot has its keys yet
	}
	return n.start(id, string(self))
}

// start starts a replica. The caller has begun it.
func (n *Node) start(id uint64, self string) error {
	group := n.log.Group(id)
	if err := group.Set([]byte("self"), []byte(self)); err != nil {
		return err
	}
	tree, claims := n.tree, n.claims
	if id == mapRange {
		tree, claims = n.mapTree, consensus.NewClaims()
	}
	var made *consensus.Replica
	m := machine.New(id, tree, func(b machine.Born, at *machine.Moment) { made.Begin(b, at) })
	r, err := consensus.Start(consensus.Config{
		ID: id, Self: self, Machine: m, Log: group, Snapshots: n.snapshots, Claims: claims, Beat: n.o.Beat,
		Send: n.sender(id, self), Ask: n.indexOf(id), SnapshotAt: n.o.snapshotAt, Trail: n.o.trail,
		Birth:   n.birth,
		Settled: n.hurry,
		Renew:   func(index, term uint64) { n.renew(id, self, index, term) },
		Fail:    n.fail,
	}, func(r *consensus.Replica) { made = r })
	if err != nil {
		n.claims.Release(id)
		return err
	}
	n.mu.Lock()
	n.replicas[id] = r
	n.mu.Unlock()
	return nil
}

// renew ends a replica, cuts its log, and starts it again, as soon as nobody else does something with it.
func (n *Node) renew(id uint64, self string, index, term uint64) {
	if !n.begin(id) {
		return // it is asked for again
	}
	n.tasks.Go(func() {
		defer n.done(id)
		if r := n.replica(id); r == nil || r.Self() != self || n.ctx.Err() != nil {
			return
		}
		n.end(id)
		err := consensus.Cut(n.log.Group(id), index, term)
		if err == nil {
			err = n.resume(id)
		}
		if err != nil {
			n.o.Log(fmt.Sprintf("range %d cannot begin again", id), err)
		}
	})
}

// birth makes durable with what a child begins, if it is to have a replica here.
func (n *Node) birth(ctx context.Context, b consensus.Birth) (here bool, err error) {
	mine := ""
	for _, s := range b.Servers {
		if node, _ := member(s); node == n.id {
			mine = s
		}
	}
	_, number := member(mine)
	last, err := n.left(b.ID)
	if err != nil {
		return false, err
	}
	// One that has come by itself, since others were quicker to begin it, gets its keys from them.
	self, err := n.log.Group(b.ID).Get([]byte("self"))
	if err != nil {
		return false, err
	}
	if mine == "" || number <= last || self != nil {
		return false, nil
	}
	if _, ok := n.snapshots.Newest(b.ID); ok {
		return true, nil
	}
	return true, n.snapshots.Put(ctx, b.ID, b.Servers, b.At)
}

// clearBounds removes keys that no range of the node has.
func clearBounds(tree *machine.Tree, b machine.Bounds) {
	machine.New(0, tree, nil).Forget(b)
}

// end ends a replica. What it has stays, but nobody reads it.
func (n *Node) end(id uint64) {
	n.mu.Lock()
	r := n.replicas[id]
	delete(n.replicas, id)
	n.mu.Unlock()
	if r != nil {
		r.Close()
		r.Machine().End()
	}
}

// leave ends a replica for good. The caller has begun it.
func (n *Node) leave(id uint64, self string) error {
	_, number := member(self)
	if err := n.own.SetUint64(fmt.Appendf(nil, "left/%d", id), number); err != nil {
		return err
	}
	n.end(id)
	return n.forget(id)
}

// forget removes what is there of a replica that has left.
func (n *Node) forget(id uint64) error {
	if err := errors.Join(n.snapshots.Drop(id), n.log.Drop(id)); err != nil {
		return err
	}
	if b, ok := n.claims.Of(id); ok && id != mapRange {
		clearBounds(n.tree, b)
		n.claims.Release(id)
	}
	n.hurry()
	return nil
}

func (n *Node) hurry() {
	select {
	case n.nudge <- struct{}{}:
	default:
	}
}

// reconcile starts what is on disk and does not run.
func (n *Node) reconcile() {
	ids := append(n.log.Groups(), n.snapshots.Groups()...)
	for _, id := range ids {
		if id == ofNode || n.replica(id) != nil || !n.begin(id) {
			continue
		}
		if err := n.resume(id); err != nil && n.ctx.Err() == nil {
			n.o.Log(fmt.Sprintf("range %d cannot start", id), err)
		}
		n.done(id)
	}
}

// keep starts replicas that can be started, and ends those that others say have left.
func (n *Node) keep() {
	for {
		select {
		case <-n.nudge:
		case <-time.After(n.o.Beat):
		case <-n.ctx.Done():
			return
		}
		n.reconcile()
		for id, r := range n.running() {
			if r.Heard() <= 5*n.o.Beat || n.ctx.Err() != nil {
				continue
			}
			if _, doubted := n.doubts.LoadOrStore(id, true); !doubted {
				n.tasks.Go(func() {
					defer n.doubts.Delete(id)
					n.doubt(id, r)
				})
			}
		}
	}
}

// doubt asks others whether a replica that hears of no leader is a member yet.
func (n *Node) doubt(id uint64, r *consensus.Replica) {
	ask := map[string]bool{}
	for _, m := range r.Members() {
		node, _ := member(m.ID)
		ask[node] = true
	}
	for _, node := range n.routes.nodes(id) {
		ask[node] = true
	}
	delete(ask, n.id)
	for node := range ask {
		ctx, cancel := context.WithTimeout(n.ctx, n.o.Beat)
		a, err := n.ask(ctx, node, askMember, id, packet.Bytes(nil, r.Self()), nil)
		cancel()
		if err != nil || a.code != okay {
			continue
		}
		if !a.body.Bool() && a.body.Err() == nil && n.begin(id) {
			if n.replica(id) == r {
				if err := n.leave(id, r.Self()); err != nil {
					n.o.Log(fmt.Sprintf("range %d cannot leave", id), err)
				}
			}
			n.done(id)
		}
		return
	}
}

// addressed returns the replica to which a message of another member is, which is made if this node has none, and never had it.
func (n *Node) addressed(id uint64, to string) (*consensus.Replica, error) {
	node, number := member(to)
	if node != n.id {
		return nil, fmt.Errorf("this is %s, and not %s", n.id, node)
	}
	for {
		r := n.replica(id)
		if r != nil {
			_, has := member(r.Self())
			if has == number {
				return r, nil
			}
			if has > number {
				return nil, fmt.Errorf("%s has left range %d", to, id)
			}
		}
		if !n.begin(id) {
			return nil, errors.New("the replica is about to start, or to end")
		}
		err := n.replace(id, to, r)
		n.done(id)
		if err != nil {
			return nil, err
		}
	}
}

// replace starts a replica that knows nothing, in the place of an older one if there is one. The caller has begun it.
func (n *Node) replace(id uint64, to string, old *consensus.Replica) error {
	if now := n.replica(id); now != old {
		return nil
	}
	_, number := member(to)
	last, err := n.left(id)
	if err != nil {
		return err
	}
	if number <= last {
		return fmt.Errorf("%s has left range %d", to, id)
	}
	if old != nil {
		if err := n.leave(id, old.Self()); err != nil {
			return err
		}
	}
	self, err := n.log.Group(id).Get([]byte("self"))
	if err != nil {
		return err
	}
	if _, ok := n.snapshots.Newest(id); ok || self != nil {
		return errors.New("the replica waits for its keys")
	}
	return n.start(id, to)
}
