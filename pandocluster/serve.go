package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// What nodes ask each other for. A request is: what it asks for, the cluster, the node it is for, a range, the rest.
const (
	askHello   byte = iota + 1 // who is there; tells who asks
	askReplica                 // what replicas say to each other
	askPropose                 // to propose an entry
	askIndex                   // for the index to read at
	askGet                     // for values of keys
	askPage                    // for entries of a span
	askCount                   // for the number of keys
	askAt                      // for an entry by its number
	askMember                  // whether somebody is a member of a range
	askState                   // how far a member is
	askStep                    // to do a step
	askPicture                 // for the picture
	askExport                  // to begin an export of a range
	askChunk                   // for some of it
)

// code says how a request went.
type code byte

const (
	okay      code = iota
	notHere        // there is no replica that can answer
	notLeader      // the replica does not lead: nothing was done. Behind it is who leads, "" if it does not know
	failed         // with a text
)

// answer is the answer to a request.
type answer struct {
	code code
	text string // of notLeader and failed
	body *packet.Reader
}

func (a *answer) err() error {
	switch a.code {
	case okay:
		return nil
	case notHere:
		return errors.New("the node has no such replica")
	case notLeader:
		return consensus.ErrNotLeader
	}
	return errors.New(a.text)
}

// bytes of answers
func answered(body []byte) []byte { return append([]byte{byte(okay)}, body...) }

func refused(c code, text string) []byte { return packet.Bytes([]byte{byte(c)}, text) }

// errored returns the answer for an error of a replica.
func errored(r *consensus.Replica, err error) []byte {
	if errors.Is(err, consensus.ErrNotLeader) {
		leader := r.Leader()
		if leader == r.Self() {
			leader = ""
		}
		return refused(notLeader, leader)
	}
	return refused(failed, err.Error())
}

// ask asks a node. An error says that nobody knows whether the request has arrived.
func (n *Node) ask(ctx context.Context, node string, what byte, id uint64, rest []byte, body io.Reader) (a answer, err error) {
	n.peersMu.Lock()
	p, ok := n.peers[node]
	n.peersMu.Unlock()
	if node == n.id {
		got, err := n.dispatch(ctx, what, id, packet.Read(rest), body)
		if err != nil {
			return answer{code: failed, text: err.Error()}, nil
		}
		return readAnswer(got)
	}
	if !ok || p.addr == "" {
		return answer{code: notHere}, nil
	}
	if err := n.usable(); err != nil { // a leader that cannot write must not keep others from leading
		return answer{code: failed, text: err.Error()}, nil
	}
	b := packet.Bytes(packet.Bytes([]byte{what}, n.Cluster()), node)
	b = append(packet.Uint(b, id), rest...)
	got, err := n.o.Transport.Call(ctx, Peer{node, p.addr}, b, body)
	if err != nil {
		return a, err
	}
	return readAnswer(got)
}

func readAnswer(got []byte) (a answer, err error) {
	a.body = packet.Read(got)
	if a.code = code(a.body.Byte()); a.code != okay {
		a.text = a.body.String()
	}
	return a, a.body.Err()
}

// Serve answers a request of another node, for which the transport has proved that it is one of the cluster.
// The request must not change afterwards.
func (n *Node) Serve(ctx context.Context, from string, request []byte, body io.Reader) ([]byte, error) {
	if err := n.usable(); err != nil {
		return nil, err
	}
	r := packet.Read(request)
	what, cluster, to, id := r.Byte(), r.String(), r.String(), r.Uint()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if what == askHello {
		return n.welcome(cluster, r)
	}
	if cluster != n.Cluster() {
		return nil, fmt.Errorf("this node is of another cluster")
	}
	if to != n.id {
		return nil, fmt.Errorf("this is %s, and not %s", n.id, to)
	}
	return n.dispatch(ctx, what, id, r, body)
}

// dispatch answers a request.
func (n *Node) dispatch(ctx context.Context, what byte, id uint64, r *packet.Reader, body io.Reader) ([]byte, error) {
	switch what {
	case askStep:
		return n.serveStep(ctx, r)
	case askPicture:
		return n.servePicture(ctx)
	case askChunk:
		return n.serveChunk(ctx, r.Uint()), nil
	case askReplica:
		// A replica that is asked may be begun by that.
		to := r.String()
		replica, err := n.addressed(id, to)
		if err != nil {
			return nil, err
		}
		got, err := replica.Handle(ctx, r.Rest(), body)
		if err != nil {
			return nil, err
		}
		return answered(got), nil
	}
	replica := n.replica(id)
	if replica == nil {
		return refused(notHere, ""), nil
	}
	switch what {
	case askPropose:
		got, err := replica.Propose(ctx, r.Rest())
		if err != nil {
			return errored(replica, err), nil
		}
		return answered(got), nil
	case askIndex:
		if !replica.Leads() {
			return errored(replica, consensus.ErrNotLeader), nil
		}
		index, err := replica.ReadIndex(ctx)
		if err != nil {
			return errored(replica, err), nil
		}
		return answered(packet.Uint(nil, index)), nil
	case askExport:
		return n.serveExport(ctx, replica, r.String()), nil
	case askMember:
		is, err := isMember(ctx, replica, r.String())
		if err != nil {
			return errored(replica, err), nil
		}
		return answered(packet.Bool(nil, is)), nil
	case askState:
		if r.String() != replica.Self() && !(mutant.On && mutant.Is("cluster: another member has caught up")) {
			return refused(notHere, ""), nil // the node has one that was a member before, or none
		}
		return answered(packet.Uint(nil, replica.Machine().Applied())), nil
	case askGet, askPage, askCount, askAt:
		if err := n.fresh(ctx, replica); err != nil {
			return errored(replica, err), nil
		}
		return n.serveRead(what, replica.Machine(), r), nil
	}
	return nil, fmt.Errorf("a node asks for %d, which this program does not know", what)
}

// judge is what of a replica says who is a member.
type judge interface {
	Term() uint64
	Leads() bool
	Members() []consensus.Member
	Barrier(ctx context.Context) error
}

// isMember says whether a member is one by what is committed: a removal that is in the log before the barrier is, if one leader has
// seen both. One that led before, and leads again, may have seen a removal that another leader has undone.
func isMember(ctx context.Context, r judge, id string) (is bool, err error) {
	term, leads, members := r.Term(), r.Leads(), r.Members()
	if err := r.Barrier(ctx); err != nil {
		return false, err
	}
	if (!leads || r.Term() != term) && !(mutant.On && mutant.Is("cluster: removed under one leader")) {
		return false, consensus.ErrNotLeader
	}
	return slices.ContainsFunc(members, func(m consensus.Member) bool { return m.ID == id }), nil
}

// fresh waits until a replica has all that was acknowledged before.
func (n *Node) fresh(ctx context.Context, r *consensus.Replica) error {
	index, err := r.ReadIndex(ctx)
	if err != nil {
		return err
	}
	return r.Wait(ctx, index)
}

// sender returns how a replica sends to others.
func (n *Node) sender(id uint64, self string) consensus.Send {
	return func(ctx context.Context, to string, request []byte, body io.Reader) ([]byte, error) {
		node, _ := member(to)
		a, err := n.ask(ctx, node, askReplica, id, append(packet.Bytes(nil, to), request...), body)
		if err == nil {
			err = a.err()
		}
		if err != nil {
			return nil, err
		}
		return a.body.Rest(), nil
	}
}

// indexOf returns how a replica asks its leader for an index.
func (n *Node) indexOf(id uint64) func(context.Context, string) (uint64, error) {
	return func(ctx context.Context, leader string) (uint64, error) {
		node, _ := member(leader)
		a, err := n.ask(ctx, node, askIndex, id, nil, nil)
		if err == nil {
			err = a.err()
		}
		if err != nil {
			return 0, err
		}
		index := a.body.Uint()
		return index, a.body.Err()
	}
}

// pageBytes is about how many bytes of entries are in one answer, and answerBytes how many of values that were asked for: a
// single one may have more.
const (
	pageBytes   = 1 << 20
	answerBytes = 8 << 20
)

// serveRead reads a range. Its answer begins with its bounds, since who asks may be wrong about them.
func (n *Node) serveRead(what byte, m *machine.Machine, r *packet.Reader) []byte {
	switch what {
	case askGet:
		keys := make([]string, r.Count())
		for i := range keys {
			keys[i] = r.Text()
		}
		vals, found := make([][]byte, len(keys)), make([]bool, len(keys))
		if r.Err() != nil {
			return refused(failed, r.Err().Error())
		}
		if !m.Get(keys, vals, found) {
			return readFailed()
		}
		// As many as fit: who asks asks again for the others.
		n, size := 0, 0
		for ; n < len(keys) && (n == 0 || size+len(vals[n]) <= answerBytes); n++ {
			size += len(vals[n])
		}
		b := packet.Uint([]byte{byte(okay)}, uint64(n))
		for i, f := range found[:n] {
			if b = packet.Bool(b, f); f {
				b = packet.Bytes(b, vals[i])
			}
		}
		return b
	case askPage:
		s, down, limit := machine.ReadSpan(r), r.Bool(), r.Uint()
		var entries []byte
		count := 0
		more, of, ok := m.Page(s, down, int(min(limit, 1<<30)), pageBytes, func(k string, v []byte) {
			entries = packet.Bytes(packet.Bytes(entries, k), v)
			count++
		})
		if !ok {
			return readFailed()
		}
		b := packet.Bool(boundsOf([]byte{byte(okay)}, of), more)
		return append(packet.Uint(b, uint64(count)), entries...)
	case askCount:
		count, of, ok := m.Count(machine.ReadSpan(r))
		if !ok {
			return readFailed()
		}
		return packet.Uint(boundsOf([]byte{byte(okay)}, of), uint64(count))
	}
	// Where there is no such entry, how many there are is counted at another moment: it must not have come meanwhile.
	for i := int(r.Uint()); ; {
		k, v, found := m.At(i)
		count, of, ok := m.Count(machine.Span{})
		if !ok || r.Err() != nil {
			return readFailed()
		}
		if found || count <= i {
			b := packet.Bool(packet.Uint(boundsOf([]byte{byte(okay)}, of), uint64(count)), found)
			return packet.Bytes(packet.Bytes(b, k), v)
		}
	}
}

// readFailed says that a range does not have what was asked for, or has no state yet.
func readFailed() []byte {
	return refused(notHere, "")
}

func boundsOf(b []byte, of machine.Bounds) []byte { return packet.Bytes(packet.Bytes(b, of.Lo), of.Hi) }

// hello tells a node who this one is, and learns from it.
func (n *Node) hello(ctx context.Context, to Peer) (cluster string, err error) {
	b := packet.Bytes(packet.Bytes([]byte{askHello}, n.Cluster()), to.ID)
	b = packet.Bytes(packet.Bytes(packet.Bytes(packet.Uint(b, 0), n.id), n.o.Name), n.o.Addr)
	ctx, cancel := context.WithTimeout(ctx, 2*n.o.Beat)
	defer cancel()
	got, err := n.o.Transport.Call(ctx, to, b, nil)
	if err != nil {
		return "", err
	}
	r := packet.Read(got)
	cluster = r.String()
	n.learn(r.Bytes())
	for range r.Count() {
		n.routes.hint(mapRange, r.String())
	}
	return cluster, r.Err()
}

// welcome answers a hello.
func (n *Node) welcome(cluster string, r *packet.Reader) ([]byte, error) {
	mine := n.Cluster()
	if mine == "" {
		return nil, errors.New("this node has joined no cluster yet")
	}
	if cluster != "" && cluster != mine {
		return nil, errors.New("this node is of another cluster")
	}
	id, name, addr := r.String(), r.String(), r.String()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if id != n.id {
		n.know(id, peer{name: name, addr: addr})
		n.watch.heard(id)
	}
	nodes := n.routes.nodes(mapRange)
	b := packet.Uint(packet.Bytes(packet.Bytes(nil, mine), n.peersBytes()), uint64(len(nodes)))
	for _, node := range nodes {
		b = packet.Bytes(b, node)
	}
	return b, nil
}

// know notes where a node is. It reports whether that is new.
func (n *Node) know(id string, p peer) bool {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	if old, ok := n.peers[id]; ok {
		p.draining, p.gone, p.removed = old.draining || p.draining, old.gone || p.gone, max(p.removed, old.removed)
		if p == old {
			return false
		}
	}
	n.peers[id] = p
	return true
}

// learn notes what another node knows of nodes, where this one knows nothing.
func (n *Node) learn(peers []byte) {
	r := packet.Read(peers)
	for range r.Count() {
		id, p := r.String(), peer{name: r.String(), addr: r.String()}
		n.peersMu.Lock()
		if _, ok := n.peers[id]; !ok && r.Err() == nil {
			n.peers[id] = p
		}
		n.peersMu.Unlock()
	}
	n.learnRemoved(r)
}

func (n *Node) peersBytes() []byte {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	b := packet.Uint(nil, uint64(len(n.peers)))
	for id, p := range n.peers {
		b = packet.Bytes(packet.Bytes(packet.Bytes(b, id), p.name), p.addr)
	}
	return appendRemoved(b, n.peers)
}

// savePeers keeps where nodes are, for the next start.
func (n *Node) savePeers() error { return n.own.Set([]byte("peers"), n.peersBytes()) }

// announce tells all nodes that this one is there, at its address: when it starts, and now and then.
func (n *Node) announce() {
	n.know(n.id, peer{name: n.o.Name, addr: n.o.Addr})
	saved := 0
	for {
		n.peersMu.Lock()
		all := make([]Peer, 0, len(n.peers))
		for id, p := range n.peers {
			if id != n.id && !p.gone {
				all = append(all, Peer{id, p.addr})
			}
		}
		n.peersMu.Unlock()
		for _, p := range all {
			n.tasks.Go(func() { _, _ = n.hello(n.ctx, p) })
		}
		if len(all) != saved {
			if err := n.savePeers(); err == nil {
				saved = len(all)
			}
		}
		if !n.pause(n.ctx, 2*n.o.Beat+time.Duration(len(all))*n.o.Beat/20) {
			return
		}
	}
}
