package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/raftlog"
)

const beat = 200 * time.Millisecond

// net is members in one process. What is between two of them may be cut, or held up.
type net struct {
	t   *testing.T
	rng *rand.Rand

	mu      sync.Mutex
	nodes   map[string]*node
	cut     map[[2]string]bool
	largest int           // request
	held    chan struct{} // answers wait until it is closed
	holding string        // to whom
	pace    time.Duration // that the last byte of a snapshot takes
}

// node is a process with one range.
type node struct {
	net        *net
	id         string
	logs, snap *crash.Folder

	log  *raftlog.Log
	all  *Snapshots
	tree *machine.Tree
	r    *Replica
	born []Birth
	slow chan struct{} // entries that split the range wait until it is closed

	claims  *Claims
	birth   func(Birth) (here bool, err error) // nil for one that is here
	renewed [][2]uint64                        // indices and terms
	settled func()                             // nil for nothing
}

func newNet(t *testing.T, members ...string) *net {
	n := &net{t: t, rng: seed.Rand(t), nodes: map[string]*node{}, cut: map[[2]string]bool{}}
	for _, id := range members {
		x := n.add(id)
		all, err := OpenSnapshots(x.snap, 0)
		if err != nil {
			t.Fatal(err)
		}
		empty, err := machine.Empty(1, machine.Bounds{})
		if err == nil {
			err = all.Put(context.Background(), 1, members, empty)
			empty.Close()
		}
		if err = errors.Join(err, all.Close()); err != nil {
			t.Fatal(err)
		}
		x.start()
	}
	return n
}

func (n *net) add(id string) *node {
	x := &node{net: n, id: id, logs: crash.New(), snap: crash.New()}
	n.mu.Lock()
	n.nodes[id] = x
	n.mu.Unlock()
	return x
}

func (n *net) of(id string) *Replica {
	n.mu.Lock()
	defer n.mu.Unlock()
	if x := n.nodes[id]; x != nil {
		return x.r
	}
	return nil
}

func (n *net) blocked(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[[2]string{a, b}] || n.cut[[2]string{b, a}]
}

func (x *node) send(ctx context.Context, to string, request []byte, body io.Reader) ([]byte, error) {
	n := x.net
	time.Sleep(time.Millisecond)
	r := n.of(to)
	if r == nil || n.blocked(x.id, to) {
		<-time.After(beat / 2)
		return nil, errors.New("nobody is there")
	}
	if body != nil && n.pace > 0 {
		body = io.MultiReader(body, late(n.pace))
	}
	answer, err := r.Handle(ctx, bytes.Clone(request), body)
	n.mu.Lock()
	n.largest = max(n.largest, len(request))
	held := n.held
	if n.holding != x.id {
		held = nil
	}
	n.mu.Unlock()
	if held != nil {
		<-held
		return answer, err
	}
	if n.blocked(x.id, to) {
		return nil, errors.New("the answer was lost")
	}
	return answer, err
}

func (x *node) start() {
	var err error
	if x.log, err = raftlog.Open(x.logs, raftlog.Options{SegmentSize: 64 << 10, ID: 1}); err == nil {
		if x.all, err = OpenSnapshots(x.snap, 0); err == nil {
			x.tree, err = pando.NewTree[string, []byte]()
		}
	}
	if err != nil {
		x.net.t.Fatal(err)
	}
	var r *Replica
	x.claims = NewClaims()
	m := machine.New(1, x.tree, func(b machine.Born, at *machine.Moment) {
		if x.slow != nil {
			<-x.slow
		}
		r.Begin(b, at)
	})
	_, err = Start(Config{
		ID: 1, Self: x.id, Machine: m, Log: x.log.Group(1), Snapshots: x.all, Claims: x.claims, Send: x.send, Beat: beat,
		Birth: func(_ context.Context, b Birth) (bool, error) {
			x.net.mu.Lock()
			birth := x.birth
			x.born = append(x.born, b)
			x.net.mu.Unlock()
			if birth != nil {
				return birth(b)
			}
			return true, nil
		},
		Settled: func() {
			x.net.mu.Lock()
			settled := x.settled
			x.net.mu.Unlock()
			if settled != nil {
				settled()
			}
		},
		Renew: func(index, term uint64) { x.renewed = append(x.renewed, [2]uint64{index, term}) }, Fail: func(err error) { x.net.t.Error(err) }, SnapshotAt: 4 << 10, Trail: 1 << 10,
	}, func(made *Replica) { r = made })
	if err != nil {
		x.net.t.Fatal(err)
	}
	x.net.mu.Lock()
	x.r = r
	x.net.mu.Unlock()
}

// stop ends a node, and crashes its disk.
func (x *node) stop() {
	x.net.mu.Lock()
	r := x.r
	x.r = nil
	x.net.mu.Unlock()
	if r == nil {
		return
	}
	logs, snap := x.logs.Image(x.net.rng), x.snap.Image(x.net.rng)
	r.Close()
	x.log.Close()
	x.all.Close()
	x.tree.Close()
	x.logs, x.snap = logs, snap
}

func (n *net) close() {
	for _, x := range n.nodes {
		x.stop()
	}
}

// leader waits until there is one that answers, and returns it.
func (n *net) leader(not ...string) *node {
	for range 400 {
		for id, x := range n.nodes {
			r := n.of(id)
			if r == nil || len(not) > 0 && id == not[0] {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), beat)
			_, err := r.ReadIndex(ctx)
			cancel()
			if err == nil {
				return x
			}
		}
		time.Sleep(beat / 4)
	}
	n.t.Fatal("nobody leads")
	return nil
}

// client proposes entries of a session, again until they are done.
type client struct {
	n           *net
	session, at uint64
}

func (n *net) client() *client {
	c := &client{n: n}
	c.session = c.do(machine.Open()).ID
	return c
}

func (c *client) do(entry []byte) machine.Result {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 4*beat)
		b, err := c.n.leader().r.Propose(ctx, entry)
		cancel()
		if err == nil {
			res, err := machine.ReadResult(b)
			if err != nil {
				c.n.t.Fatal(err)
			}
			return res
		}
	}
}

func (c *client) call() machine.Call {
	c.at++
	return machine.Call{Session: c.session, Seq: c.at, Acked: c.at}
}

func (c *client) set(key, val string) {
	b := machine.NewBatch(false)
	b.Set(key, []byte(val))
	if res := c.do(c.call().Batch(b)); res.Status != machine.Done {
		c.n.t.Fatalf("%+v", res)
	}
}

// get reads by the index of a leader, at one member.
func (n *net) get(at *node, key string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*beat)
	defer cancel()
	index, err := n.leader().r.ReadIndex(ctx)
	if err == nil {
		err = at.r.Wait(ctx, index)
	}
	if err != nil {
		return "", err
	}
	vals, found := [][]byte{nil}, []bool{false}
	at.r.Machine().Get([]string{key}, vals, found)
	return string(vals[0]), nil
}

// What was acknowledged before an instant is here when its index is applied, and not before.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1")
		defer n.close()
		c := n.client()
		r := n.nodes["a#1"].r
		time.Sleep(beat)
		now := time.Now()
		r.knew(now, r.Machine().Applied()+1)
		time.Sleep(beat)
		r.knew(time.Now(), r.Machine().Applied()+2)
		if at, ok := r.Since(); !ok || !at.Before(now) {
			t.Errorf("it is as of %v, %t, and an entry before %v is not applied", at, ok, now)
		}
		c.set("k", "v")
		if at, ok := r.Since(); !ok || at.Before(now) {
			t.Errorf("it is as of %v, %t, and not %v", at, ok, now)
		}
	})
}

// late is a reader that has nothing, and takes its time.
type late time.Duration

func (d late) Read([]byte) (int, error) {
	time.Sleep(time.Duration(d))
	return 0, io.EOF
}

// A member with a vote hears its leader while it is sent a snapshot, and so it could vote.
func TestHearsBesideSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		n.nodes["c#1"].stop()
		for i := range 200 {
			c.set(fmt.Sprint(i%10), strings.Repeat("x", 200))
		}
		n.pace = 40 * beat
		x := n.nodes["c#1"]
		x.start()
		time.Sleep(10 * beat)
		if heard := x.r.Heard(); heard > 2*beat {
			t.Errorf("it has heard of no leader for %v", heard)
		}
		if n.leader() == x {
			t.Error("it leads with nothing")
		}
		time.Sleep(60 * beat)
		if v, err := n.get(x, "7"); len(v) != 200 || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// Members that are killed one after the other, with what a crash leaves of their disks, keep all that was acknowledged; those that were away come back
// by the log or by a snapshot.
func TestKilledMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		ids := []string{"a#1", "b#1", "c#1"}
		for i := range seed.Times(12, 60) {
			x := n.nodes[ids[n.rng.IntN(3)]]
			x.stop()
			for j := range 20 {
				c.set(fmt.Sprint(j), fmt.Sprint(i)+strings.Repeat("x", 50*n.rng.IntN(3)))
			}
			c.set("k", fmt.Sprint(i))
			x.start()
			if v, err := n.get(x, "k"); err != nil || v != fmt.Sprint(i) {
				t.Fatalf("round %d: %s has %q, %v", i, x.id, v, err)
			}
		}
		var states [3]bytes.Buffer
		n.get(n.nodes["a#1"], "k")
		for i, id := range ids {
			n.get(n.nodes[id], "k")
			o := n.of(id).Machine().Moment()
			if _, err := o.WriteTo(&states[i]); err != nil || !bytes.Equal(states[i].Bytes(), states[0].Bytes()) {
				t.Errorf("%s has another state, %v", id, err)
			}
			o.Close()
		}
	})
}

// A leader that was held up while answers to it were on their way, and another took over, does not take these for answers to a
// read that begins later.
func TestReadAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		c.set("k", "old")
		was := n.leader()
		// From now on answers to the leader wait, as they do for a process that is stopped.
		n.mu.Lock()
		n.held, n.holding = make(chan struct{}), was.id
		n.mu.Unlock()
		time.Sleep(beat / 5) // heartbeats are under way
		for id := range n.nodes {
			if id != was.id {
				n.mu.Lock()
				n.cut[[2]string{was.id, id}] = true
				n.mu.Unlock()
			}
		}
		// It would give up its lead by itself, unless it is stopped. So its term stays while reads begin at once when it goes on.
		results := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*beat)
			defer cancel()
			_, err := was.r.ReadIndex(ctx)
			results <- err
		}()
		time.Sleep(beat / 20)
		n.mu.Lock()
		close(n.held)
		n.held = nil
		n.mu.Unlock()
		if err := <-results; err == nil {
			t.Error("a leader whom nobody hears any more takes answers of before for a majority")
		}
		if n.leader(was.id) == was {
			t.Error("it leads yet")
		}
	})
}

// A leader that is behind with what is committed lets nobody read less than another member has shown already.
func TestReadBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		c.set("k", "old")
		x := n.leader()
		x.slow = make(chan struct{})
		propose := func(entry []byte) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*beat)
			go func() {
				defer cancel()
				x.r.Propose(ctx, entry)
			}()
			time.Sleep(beat / 2)
		}
		b := machine.NewBatch(false)
		b.Set("k", []byte("new"))
		split := c.call()
		propose(split.Split("m", 2, []string{"a#1"}))
		propose(c.call().Batch(b))
		shown := uint64(0)
		for id, y := range n.nodes {
			if id != x.id {
				shown = max(shown, y.r.Machine().Applied())
			}
		}
		if shown <= x.r.Machine().Applied() {
			t.Fatal("the leader is not behind")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*beat)
		defer cancel()
		if index, err := x.r.ReadIndex(ctx); err != nil || index < shown {
			t.Errorf("it says %d, %v: another member has shown %d", index, err, shown)
		}
		close(x.slow)
	})
}

// A member that was away gets what it has missed in requests that are not too large to be answered in time.
func TestLargeEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		_, f := n.apart()
		sent := func() int {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.largest
		}
		for range 12 {
			c.set("k", strings.Repeat("x", 500_000))
		}
		if sent() > 1<<20 {
			t.Fatalf("%d bytes in a request", sent())
		}
		n.mu.Lock()
		clear(n.cut)
		n.mu.Unlock()
		if v, err := n.get(f, "k"); len(v) != 500_000 || err != nil {
			t.Errorf("%d bytes, %v", len(v), err)
		}
		if sent() < mostSent/2 || sent() > mostSent+1<<10 {
			t.Errorf("%d bytes in a request", sent())
		}
	})
}

// Members come without a vote, get one, hand over, and leave, the leader among them; who joins gets a snapshot if
// the log does not reach back.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1")
		defer n.close()
		c := n.client()
		for i := range 200 {
			c.set(fmt.Sprint(i), strings.Repeat("x", 100))
		}
		ctx := context.Background()
		for _, id := range []string{"b#7", "c#9"} {
			x := n.add(id)
			x.start()
			if err := n.leader().r.Add(ctx, id); err != nil {
				t.Fatal(err)
			}
			if v, err := n.get(x, "17"); err != nil || len(v) != 100 {
				t.Fatal(len(v), err)
			}
			if err := n.leader().r.Promote(ctx, id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.leader().r.Transfer(ctx, "c#9"); err != nil {
			t.Fatal(err)
		}
		if l := n.leader(); l.id != "c#9" {
			t.Errorf("%s leads", l.id)
		}
		l := n.leader()
		if err := l.r.Remove(ctx, l.id, 0); err != nil {
			t.Fatal(err)
		}
		l.stop()
		delete(n.nodes, l.id)
		c.set("17", "new")
		if m := n.leader().r.Members(); len(m) != 2 || !m[0].Voter || !m[1].Voter {
			t.Errorf("%v", m)
		}
	})
}

// A snapshot can be taken behind a change of the members, and behind what is not the machine's, though nobody writes; and who begins with such a
// snapshot can be read when it leads.
func TestSnapshotBehindMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1")
		defer n.close()
		c := n.client()
		for i := range 200 {
			c.set(fmt.Sprint(i), strings.Repeat("x", 100))
		}
		l, ctx := n.leader(), context.Background()
		b := n.add("b#7")
		b.start()
		if err := l.r.Add(ctx, b.id); err != nil {
			t.Fatal(err)
		}
		at := l.r.LastIndex()
		if err := l.r.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
		if meta, _ := l.all.Newest(1); meta.Index < at {
			t.Errorf("the snapshot is of entry %d, and members have changed with %d", meta.Index, at)
		}
		for _, id := range []string{"c#8", "d#9"} {
			x := n.add(id)
			x.start()
			l := n.leader()
			for l.r.Barrier(ctx) != nil { // it has just got the lead
				time.Sleep(beat)
				l = n.leader()
			}
			err := l.r.Add(ctx, id)
			if err == nil {
				_, err = n.get(x, "17")
			}
			if err = errors.Join(err, l.r.Promote(ctx, id, 0)); err != nil {
				t.Fatal(err)
			}
			if err := n.leader().r.Transfer(ctx, id); err != nil {
				t.Fatal(err)
			}
			if v, err := n.get(x, "17"); err != nil || len(v) != 100 {
				t.Errorf("%s has %q, %v", id, v, err)
			}
		}
	})
}

// Of many reads at once few ask the members, and each is answered.
func TestReadsShareRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		n.client().set("k", "v")
		l := n.leader()
		before := l.r.wire.sent.Load()
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if _, err := l.r.ReadIndex(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if sent := l.r.wire.sent.Load() - before; sent > 60 {
			t.Errorf("%d requests for 1000 reads", sent)
		}
	})
}

// An entry that members could not be sent is not begun.
func TestLongEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1")
		defer n.close()
		c := n.client()
		l := n.leader()
		at := l.r.LastIndex()
		if _, err := l.r.Propose(context.Background(), make([]byte, MostEntry+1)); !errors.Is(err, ErrTooLong) || l.r.LastIndex() != at {
			t.Errorf("%v, entry %d behind %d", err, l.r.LastIndex(), at)
		}
		c.set("k", "v")
	})
}

// What is under way when a replica is closed returns, and Close does.
func TestCloseBesideCalls(t *testing.T) {
	for range seed.Times(10, 30) {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, "a#1", "b#1", "c#1")
			c := n.client()
			l := n.leader()
			r := l.r
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() {
					for {
						if _, err := r.Propose(context.Background(), c.call0().Batch(machine.NewBatch(false))); errors.Is(err, ErrClosed) {
							return
						}
					}
				})
				all.Go(func() { r.ReadIndex(context.Background()) })
				all.Go(func() { r.Barrier(context.Background()) })
			}
			time.Sleep(time.Duration(n.rng.IntN(int(beat / 10))))
			l.stop()
			all.Wait()
			n.close()
		})
	}
}

// Raft has a queue that it never looks at again when it is shut down: who waits there is told all the same.
func TestForgottenByRaft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1")
		r := n.leader().r
		n.close()
		ctx, end := r.until(context.Background())
		defer end()
		for range 50 {
			if err := r.use(ctx, r.raft.VerifyLeader()); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// call0 is of no session.
func (c *client) call0() machine.Call { return machine.Call{} }

// A split is passed on with the next snapshot, and again after a crash before it.
func TestBirths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		for i := range 10 {
			c.set(fmt.Sprint(i), "v")
		}
		if res := c.do(c.call().Split("5", 2, []string{"a#1"})); res.Status != machine.Done {
			t.Fatalf("%+v", res)
		}
		x := n.leader()
		x.stop()
		x.start()
		if _, err := n.get(x, "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * beat)
		for id, x := range n.nodes {
			n.mu.Lock()
			born := x.born
			n.mu.Unlock()
			if len(born) == 0 || born[0].ID != 2 || born[0].At.Bounds() != (machine.Bounds{Lo: "5"}) {
				t.Errorf("%s: %+v", id, born)
			}
		}
	})
}

// A member whose log begins behind its snapshot takes entries that begin there: again, where the leader did not hear that
// it has them, and others in their place, where another leader has others.
func TestEntriesBehindSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		b := n.of("b#1")
		n.nodes["a#1"].stop()
		n.nodes["c#1"].stop()
		leader := &wire{self: "a#1", ctx: t.Context(), patience: beat, heard: map[raft.ServerID]contact{}, send: func(ctx context.Context, _ string, request []byte, body io.Reader) ([]byte, error) {
			return b.Handle(ctx, request, body)
		}}
		for i, term := range []uint64{50, 50, 60} {
			var resp raft.AppendEntriesResponse
			err := leader.AppendEntries("b#1", "b#1", &raft.AppendEntriesRequest{
				RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a#1"), Addr: []byte("a#1")}, Term: term, PrevLogEntry: 1, PrevLogTerm: 1,
				Entries: []*raft.Log{{Index: 2, Term: term, Type: raft.LogNoop}},
			}, &resp)
			if err != nil || !resp.Success {
				t.Errorf("request %d: %+v, %v", i, resp, err)
			}
			var e raft.Log
			if err := b.c.Log.GetLog(2, &e); err != nil || e.Term != term {
				t.Errorf("request %d: the entry is of term %d, and not of %d: %v", i, e.Term, term, err)
			}
		}
	})
}
