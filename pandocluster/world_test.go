package pandocluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/pandocluster/internal/link"
	"github.com/pando-index/pando/pandocluster/internal/machine"
)

const beat = 200 * time.Millisecond

// world is a cluster in one process: machines with a disk each, and what is between them.
type world struct {
	t *testing.T

	mu    sync.Mutex
	rng   *rand.Rand
	all   map[string]*computer // by name, which is the address, too
	cut   map[[2]string]bool
	held  map[string]chan struct{} // computers that are paused: what they send and get waits
	plans bool
	scale int64 // of the log and of snapshots: small ones are for many of them
}

// computer is a machine with a disk, and perhaps a node.
type computer struct {
	w           *world
	name        string
	logs, snaps *crash.Folder
	join        []string
	node        atomic.Pointer[Node] // nil while it is down
	slow        atomic.Int64         // what a call to the disk takes
}

func newWorld(t *testing.T, rng *rand.Rand) *world {
	return &world{t: t, rng: rng, all: map[string]*computer{}, cut: map[[2]string]bool{}, held: map[string]chan struct{}{}, scale: 1}
}

// another returns another cluster of the same test. Its chances follow from those of the first, and are its own.
func another(w *world) *world {
	return newWorld(w.t, rand.New(rand.NewPCG(uint64(w.chance(1<<30)), 3)))
}

// chance returns a number below n.
func (w *world) chance(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// image returns what a crash leaves of a disk.
func (w *world) image(f *crash.Folder) *crash.Folder {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f.Image(w.rng)
}

func (w *world) add(name string, join ...string) *computer {
	c := &computer{w: w, name: name, logs: crash.New(), snaps: crash.New(), join: join}
	w.mu.Lock()
	w.all[name] = c
	w.mu.Unlock()
	c.start()
	return c
}

// start starts a node with what the disk has, again until it runs.
func (c *computer) start() {
	c.setDisk()
	var err error
	for range 20 {
		var n *Node
		n, err = open(c.logs, c.snaps, Options{
			Name: c.name, Addr: c.name, Transport: c, Join: c.join, Beat: beat, Timeout: 20 * beat, Plan: c.w.planner(), PlanEvery: 2 * beat,
			snapshotAt: 8 << 10 * c.w.scale, trail: 2 << 10 * c.w.scale, segment: 64 << 10 * c.w.scale,
		})
		if err == nil {
			c.node.Store(n)
			return
		}
	}
	c.w.t.Errorf("%s does not start: %v", c.name, err)
}

func (c *computer) setDisk() {
	for _, f := range []*crash.Folder{c.logs, c.snaps} {
		f.SetBefore(func(int, string) {
			if d := c.slow.Load(); d > 0 {
				time.Sleep(time.Duration(d))
			}
		})
	}
}

// kill ends a node as a power loss does.
func (c *computer) kill() {
	n := c.node.Swap(nil)
	if n == nil {
		return
	}
	logs, snaps := c.w.image(c.logs), c.w.image(c.snaps)
	n.Close()
	c.logs, c.snaps = logs, snaps
}

// wipe ends a node and loses its disk. It comes back as another.
func (c *computer) wipe() {
	c.kill()
	c.logs, c.snaps = crash.New(), crash.New()
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.join = nil
	for name := range c.w.all {
		if name != c.name {
			c.join = append(c.join, name)
		}
	}
	slices.Sort(c.join)
}

func (w *world) close() {
	for _, c := range w.all {
		if n := c.node.Swap(nil); n != nil {
			n.Close()
		}
	}
}

// Call is the network.
func (c *computer) Call(ctx context.Context, to Peer, request []byte, body io.Reader) ([]byte, error) {
	me := c.node.Load()
	if len(request) > link.Most {
		return nil, errors.New("the request is too long")
	}
	if err := c.w.travel(ctx, c.name, to.Addr); err != nil {
		return nil, err
	}
	c.w.mu.Lock()
	other := c.w.all[to.Addr]
	c.w.mu.Unlock()
	if other == nil {
		return nil, errors.New("there is no such address")
	}
	n := other.node.Load()
	if n == nil {
		return nil, errors.New("the connection was refused")
	}
	answer, err := n.Serve(ctx, c.name, bytes.Clone(request), body)
	if len(answer) > link.Most {
		return nil, errors.New("the answer is too long")
	}
	if other.node.Load() != n {
		return nil, errors.New("the connection was reset")
	}
	if err := c.w.travel(ctx, to.Addr, c.name); err != nil {
		return nil, err
	}
	if now := c.node.Load(); now != me && me != nil { // this node is down by now
		return nil, errors.New("nobody is here any more")
	}
	return bytes.Clone(answer), err
}

// travel takes the time from one computer to another.
func (w *world) travel(ctx context.Context, from, to string) error {
	for {
		w.mu.Lock()
		cut := w.cut[[2]string{from, to}] || w.cut[[2]string{to, from}]
		held := w.held[from]
		if held == nil {
			held = w.held[to]
		}
		d := time.Duration(100+w.rng.IntN(900)) * time.Microsecond
		if w.rng.IntN(50) == 0 {
			d *= 20
		}
		w.mu.Unlock()
		var wait <-chan struct{} = held
		if held == nil {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-t.C:
				if cut {
					select {
					case <-ctx.Done():
					case <-time.After(20 * beat):
					}
					return errors.New("nothing comes through")
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) setCut(a, b string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[[2]string{a, b}] = cut
}

func (w *world) pause(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[name] == nil {
		w.held[name] = make(chan struct{})
	}
}

func (w *world) resume(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[name] != nil {
		close(w.held[name])
		delete(w.held, name)
	}
}

// planner returns the simplest planner that keeps three replicas of each range on nodes that are there.
func (w *world) planner() func(Picture) []Step {
	if !w.plans {
		return nil
	}
	return func(p Picture) (steps []Step) {
		alive := map[string]bool{}
		for _, n := range p.Nodes {
			alive[n.ID] = n.Silent < 15*beat && !n.Gone
		}
		for _, r := range p.Ranges {
			good, lost := 0, ""
			has := map[string]bool{}
			waiting, spare := "", ""
			for _, x := range r.Replicas {
				has[x.Node] = true
				switch {
				case !alive[x.Node]:
					lost = x.Node
				case x.Voter:
					if good++; x.Node != r.Leader {
						spare = x.Node
					}
				default:
					waiting = x.Node
				}
			}
			other := ""
			for _, n := range p.Nodes {
				if alive[n.ID] && !has[n.ID] {
					other = n.ID
				}
			}
			switch {
			case waiting != "":
				steps = append(steps, Step{Kind: Promote, Range: r.ID, Node: waiting})
			case good < 3 && other != "":
				steps = append(steps, Step{Kind: AddReplica, Range: r.ID, Node: other})
			case good >= 3 && lost != "":
				steps = append(steps, Step{Kind: RemoveReplica, Range: r.ID, Node: lost})
			case good > 3:
				steps = append(steps, Step{Kind: RemoveReplica, Range: r.ID, Node: spare})
			}
		}
		return steps
	}
}

// some returns a node that runs.
func (w *world) some() *Node {
	w.mu.Lock()
	names := make([]string, 0, len(w.all))
	for name := range w.all {
		names = append(names, name)
	}
	slices.Sort(names)
	from := w.rng.IntN(len(names))
	w.mu.Unlock()
	for i := range names {
		if n := w.all[names[(from+i)%len(names)]].node.Load(); n != nil {
			return n
		}
	}
	return nil
}

// whole waits until each range has three replicas with a vote, all of them on nodes that run, and no others.
func (w *world) whole(ranges int) error {
	var p Picture
	var err error
	for range 600 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*beat)
		if n := w.some(); n != nil {
			p, err = n.Picture(ctx)
		}
		cancel()
		if err == nil && w.isWhole(p, ranges) {
			return nil
		}
		time.Sleep(beat)
	}
	return fmt.Errorf("after %v the cluster is %+v, %v", 600*beat, p, err)
}

func (w *world) isWhole(p Picture, ranges int) bool {
	running := map[string]bool{}
	for _, c := range w.all {
		if n := c.node.Load(); n != nil {
			running[n.ID()] = true
		}
	}
	for _, r := range p.Ranges {
		if len(r.Replicas) != 3 || !running[r.Leader] {
			return false
		}
		for _, x := range r.Replicas {
			if !x.Voter || !running[x.Node] {
				return false
			}
		}
	}
	return len(p.Ranges) >= ranges
}

// agree demands that replicas of a range have the same state, all ranges that have one replica on each of the nodes that
// should. It waits for those that are behind.
func (w *world) agree() error {
	var err error
	for range 200 {
		if err = w.differs(); err == nil {
			return nil
		}
		time.Sleep(beat)
	}
	return err
}

// near returns some bytes of a from where it differs from b, and before.
func near(a, b []byte) []byte {
	at := 0
	for at < min(len(a), len(b)) && (a[at] == b[at] || at < 16) { // 16 bytes are a size and a sum
		at++
	}
	return a[max(0, at-1000):min(len(a), at+400)]
}

func (w *world) differs() error {
	type state struct {
		of   string
		data []byte
	}
	states := map[uint64]state{}
	for name, c := range w.all {
		n := c.node.Load()
		if n == nil {
			return fmt.Errorf("%s is down", name)
		}
		for id, r := range n.running() {
			o := r.Machine().Moment()
			var b bytes.Buffer
			_, err := o.WriteTo(&b)
			o.Close()
			if err != nil {
				return err
			}
			if s, ok := states[id]; !ok {
				states[id] = state{name, b.Bytes()}
			} else if !bytes.Equal(s.data, b.Bytes()) {
				return fmt.Errorf("range %d has %d bytes on %s and %d on %s, at %d there; they begin to differ in\n%q\n%q", id, len(s.data), s.of, b.Len(), name, r.Machine().Applied(), near(s.data, b.Bytes()), near(b.Bytes(), s.data))
			}
		}
	}
	// Nothing is in a tree that no range has.
	for name, c := range w.all {
		n := c.node.Load()
		keys := 0
		for id, r := range n.running() {
			if id != mapRange {
				count, _, _ := r.Machine().Count(machine.Span{})
				keys += count
			}
		}
		if keys != n.tree.Len() {
			return fmt.Errorf("%s has %d keys, and its ranges %d", name, n.tree.Len(), keys)
		}
	}
	return nil
}
