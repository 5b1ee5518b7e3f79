package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/raftlog"
)

// Options are what a node needs to know.
type Options struct {
	Name      string // letters, digits, "-" and "_"
	Addr      string // under which other nodes reach it
	Transport Transport
	Join      []string                     // addresses of nodes of the cluster; none: the first start makes a cluster of one node
	Plan      func(Picture) []Step         // what the leader of the map asks for steps, nil for none
	PlanEvery time.Duration                // a second if 0
	Timeout   time.Duration                // of an operation, ten seconds if 0
	Beat      time.Duration                // how long a leader may be silent, a second if 0
	Pace      int64                        // bytes of snapshots that are written in a second, as many as the disk takes if 0
	Log       func(text string, err error) // what is worth to be told

	snapshotAt, trail int64 // as consensus.Config has them
	segment           int64
}

// ofNode is the group of the log that has what the node itself must not forget. Its values:
// "id", "cluster", "peers", and "left/" with a range, the number of the last replica of it that has left.
const ofNode = 1<<64 - 1

// mapRange is the range that knows all others, and the nodes. It has a tree of its own.
const mapRange = 0

// Node is a process of a cluster.
type Node struct {
	o         Options
	id        string
	tree      *machine.Tree // of the keys
	mapTree   *machine.Tree
	log       *raftlog.Log
	own       *raftlog.Group
	snapshots *consensus.Snapshots
	claims    *consensus.Claims
	ctx       context.Context
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	nudge     chan struct{} // tells keep that there is something to do
	adding    chan struct{} // has a token for whoever looks for a node among members, and adds it
	failed    chan struct{}

	mu       sync.Mutex
	cluster  string
	replicas map[uint64]*consensus.Replica
	starting map[uint64]bool // somebody starts or ends it
	settled  *sync.Cond      // nobody does so with any
	doubts   sync.Map        // of those about which others are being asked
	err      error
	closed   bool

	peersMu sync.Mutex
	peers   map[string]peer // by ID

	routes   routes
	exports  exports
	sessions sessions
	watch    watch
}

// peer is what is known of a node.
type peer struct {
	name, addr     string
	draining, gone bool
	removed        int64 // certificates of this name are refused that were made before, in seconds of Unix; 0 for none
}

// Open starts a node with what its folder has. One whose folder is empty joins a cluster, or makes one.
func Open(path string, o Options) (*Node, error) {
	logs, err := disk.Dir(filepath.Join(path, "log"))
	if err != nil {
		return nil, err
	}
	snapshots, err := disk.Dir(filepath.Join(path, "snapshots"))
	if err != nil {
		return nil, err
	}
	return open(logs, snapshots, o)
}

// open is Open in any folders.
func open(logs, snapshots disk.Folder, o Options) (_ *Node, err error) {
	if o, err = o.whole(); err != nil {
		return nil, err
	}
	n := &Node{
		o: o, claims: consensus.NewClaims(), nudge: make(chan struct{}, 1), adding: make(chan struct{}, 1), failed: make(chan struct{}),
		replicas: map[uint64]*consensus.Replica{}, starting: map[uint64]bool{}, peers: map[string]peer{},
	}
	n.settled = sync.NewCond(&n.mu)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.sessions.of = map[sessionKey]*session{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	// Trees have no limit: replicas must do what they have agreed on, and one that cannot ends its node, each of them in turn.
	if n.tree, err = pando.NewTree[string, []byte](); err != nil {
		return nil, err
	}
	if n.mapTree, err = pando.NewTree[string, []byte](); err != nil {
		return nil, err
	}
	if n.log, err = raftlog.Open(logs, raftlog.Options{SegmentSize: o.segment}); err != nil {
		return nil, err
	}
	n.own = n.log.Group(ofNode)
	if n.snapshots, err = consensus.OpenSnapshots(snapshots, o.Pace); err != nil {
		return nil, err
	}
	if err = n.identify(); err != nil {
		return nil, err
	}
	if n.cluster == "" {
		// What a founder has written that ended before it had a cluster is nobody's.
		for _, id := range n.snapshots.Groups() {
			if mutant.On && mutant.Is("cluster: half a founder") {
				break
			}
			if err = n.snapshots.Drop(id); err != nil {
				return nil, err
			}
		}
		if err = n.enter(); err != nil {
			return nil, err
		}
	}
	n.reconcile()
	n.tasks.Go(n.keep)
	n.tasks.Go(n.announce)
	n.tasks.Go(n.report)
	n.tasks.Go(n.refresh)
	if o.Plan != nil {
		n.tasks.Go(n.plan)
	}
	n.tasks.Go(func() {
		select {
		case <-n.log.Failed():
			n.fail(n.log.Err())
		case <-n.snapshots.Failed():
			n.fail(n.snapshots.Err())
		case <-n.ctx.Done():
		}
	})
	return n, nil
}

// whole returns options with defaults in the place of zeros.
func (o Options) whole() (Options, error) {
	if o.Name == "" || strings.Trim(o.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return o, fmt.Errorf("pandocluster: %q cannot be the name of a node: take letters, digits, - and _", o.Name)
	}
	if o.Transport == nil {
		return o, errors.New("pandocluster: a node needs a transport")
	}
	for _, d := range []struct {
		of   *time.Duration
		want time.Duration
	}{{&o.Timeout, 10 * time.Second}, {&o.Beat, time.Second}, {&o.PlanEvery, time.Second}} {
		if *d.of <= 0 {
			*d.of = d.want
		}
	}
	if o.snapshotAt == 0 {
		o.snapshotAt, o.trail = 64<<20, 64<<20
	}
	if o.Log == nil {
		o.Log = func(string, error) {}
	}
	return o, nil
}

// identify reads who the node is, or draws it.
func (n *Node) identify() error {
	id, err := n.own.Get([]byte("id"))
	if err != nil {
		return err
	}
	if id == nil {
		id = fmt.Appendf(nil, "%s.%016x", n.o.Name, rand.Uint64())
		if err := n.own.Set([]byte("id"), id); err != nil {
			return err
		}
	}
	n.id = string(id)
	cluster, err := n.own.Get([]byte("cluster"))
	if err != nil {
		return err
	}
	n.cluster = string(cluster)
	known, err := n.own.Get([]byte("peers"))
	if err != nil {
		return err
	}
	n.learn(known)
	return nil
}

// enter joins a cluster, or makes one.
func (n *Node) enter() error {
	if len(n.o.Join) == 0 {
		return n.found()
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.o.Timeout)
	defer cancel()
	var err error
	for {
		for _, addr := range n.o.Join {
			var cluster string
			if cluster, err = n.hello(ctx, Peer{Addr: addr}); err == nil && cluster != "" {
				n.mu.Lock()
				n.cluster = cluster
				n.mu.Unlock()
				if err := n.savePeers(); err != nil {
					return err
				}
				return n.own.Set([]byte("cluster"), []byte(cluster))
			}
		}
		if !n.pause(ctx, n.o.Beat/2) {
			return wrong(ErrUnavailable, err)
		}
	}
}

// found makes a cluster of one.
func (n *Node) found() error {
	for id, b := range map[uint64]machine.Bounds{mapRange: {}, 1: {}} {
		empty, err := machine.Empty(id, b)
		if err != nil {
			return err
		}
		err = n.snapshots.Put(n.ctx, id, []string{n.id + "#1"}, empty)
		empty.Close()
		if err != nil {
			return err
		}
	}
	n.cluster = fmt.Sprintf("%016x", rand.Uint64())
	return n.own.Set([]byte("cluster"), []byte(n.cluster))
}

// ID returns the ID of the node. One that has lost its data has another.
func (n *Node) ID() string { return n.id }

// Cluster returns the ID of the cluster.
func (n *Node) Cluster() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cluster
}

// Failed returns a channel that is closed when the node can no longer keep what it promises, since its disk has failed, say: the process
// must end.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err returns why the node has failed.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

func (n *Node) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil && !n.closed {
		n.err = err
		close(n.failed)
		n.cancel()
	}
}

// Close ends the node. All calls return.
func (n *Node) Close() error {
	n.mu.Lock()
	was := n.closed
	n.closed = true
	n.mu.Unlock()
	if was {
		return nil
	}
	n.cancel()
	n.mu.Lock()
	for len(n.starting) > 0 && !(mutant.On && mutant.Is("cluster: close beside starts")) {
		n.settled.Wait()
	}
	n.mu.Unlock()
	n.tasks.Wait()
	for id := range n.running() {
		n.end(id)
	}
	var err error
	if n.log != nil {
		err = n.log.Close()
	}
	if n.snapshots != nil {
		err = errors.Join(err, n.snapshots.Close())
	}
	if n.tree != nil {
		n.tree.Close()
	}
	if n.mapTree != nil {
		n.mapTree.Close()
	}
	if n.Err() != nil {
		return nil // it was told before
	}
	return err
}

// usable returns why the node takes no operations.
func (n *Node) usable() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return wrong(ErrClosed, n.err)
	}
	if n.closed {
		return ErrClosed
	}
	return nil
}

// pause waits, and returns false if ctx ends meanwhile.
func (n *Node) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-n.ctx.Done():
		return false
	}
}
