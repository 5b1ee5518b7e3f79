package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
	"github.com/pando-index/pando/pandocluster/internal/raftlog"
)

// text is what a snapshot has.
type text string

func (s text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(s))
	return int64(n), err
}

// put writes a snapshot of range 1 at an index.
func put(t *testing.T, s *Snapshots, index uint64, what string) {
	t.Helper()
	if err := try(s, index, what); err != nil {
		t.Fatal(err)
	}
}

func try(s *Snapshots, index uint64, what string) error {
	g := &ofGroup{all: s, id: 1, ctx: context.Background()}
	to, err := g.Create(1, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, what)
	return errors.Join(err, to.Close())
}

// A snapshot that is read is there until that ends, and not longer, though there is a newer one.
func TestSnapshotInUse(t *testing.T) {
	dir := crash.New()
	s, err := OpenSnapshots(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, 5, "old")
	was, _ := dir.Names()
	f, err := s.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, 7, "new")
	if err := try(s, 6, "late"); !errors.Is(err, errLate) { // raft would go back to it
		t.Error(err)
	}
	if names, _ := dir.Names(); len(names) != 2 || !slices.Contains(names, was[0]) {
		t.Errorf("there are %v, and %v is being read", names, was)
	}
	if b, err := io.ReadAll(f); string(b) != "old" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	f.Close()
	f.Close()
	if names, _ := dir.Names(); len(names) != 1 || slices.Contains(names, was[0]) {
		t.Errorf("there are %v", names)
	}
	if meta, ok := s.Newest(1); !ok || meta.Index != 7 {
		t.Errorf("the newest is of entry %d", meta.Index)
	}
}

// Damaged snapshots are found when they are opened. What was not finished, and what is not the newest, goes.
func TestSnapshotsOpened(t *testing.T) {
	dir := crash.New()
	s, err := OpenSnapshots(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, 5, "old")
	old, _ := dir.Names()
	keep := dir.Bytes(old[0])
	put(t, s, 7, "new")
	dir.SetBytes(old[0], keep)
	dir.SetBytes(nameOf(1, 99)+temporary, []byte("half"))
	s.Close()
	if s, err = OpenSnapshots(dir, 0); err != nil {
		t.Fatal(err)
	}
	if names, _ := dir.Names(); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
	put(t, s, 9, "newest")
	s.Close()
	names, _ := dir.Names()
	b := bytes.Clone(dir.Bytes(names[0]))
	for i := len("newest"); i < len(b); i++ {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		dir.SetBytes(names[0], bad)
		if s, err := OpenSnapshots(dir, 0); err == nil {
			s.Close()
			t.Fatalf("byte %d of %d is damaged, and nobody says so", i, len(b))
		}
	}
}

// After a sync that has failed nothing is durable any more, and who runs the snapshots is told.
func TestFailedSync(t *testing.T) {
	for _, folder := range []bool{false, true} {
		dir := crash.New()
		s, err := OpenSnapshots(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, 5, "good")
		failed := 0
		dir.SetFail(func(_ int, call string) crash.Fault {
			if strings.HasPrefix(call, "sync") && (call == "sync folder") == folder {
				failed++
				return crash.Fault{Err: syscall.EIO}
			}
			return crash.Fault{}
		})
		if err := try(s, 7, "lost"); !errors.Is(err, syscall.EIO) || failed == 0 {
			t.Fatalf("%v, %d calls have failed", err, failed)
		}
		dir.SetFail(nil)
		select {
		case <-s.Failed():
		default:
			t.Error("nobody is told")
		}
		if err := try(s, 9, "late"); !errors.Is(err, syscall.EIO) || !errors.Is(s.Err(), syscall.EIO) {
			t.Errorf("%v, %v", err, s.Err())
		}
		if meta, _ := s.Newest(1); meta.Index != 5 {
			t.Errorf("the newest is of entry %d", meta.Index)
		}
	}
}

// Bytes that no member has sent are an error, and not the end of the process.
func TestBadRequests(t *testing.T) {
	header := func(kind byte) []byte { return appendHeader([]byte{kind}, &raft.RPCHeader{ProtocolVersion: 3}) }
	install := packet.Uint(packet.Uint(packet.Uint(packet.Uint(header(askInstall), 1), 1), 5), 1)
	install = packet.Uint(packet.Uint(packet.Bytes(install, "no members"), 1), 1)
	entry := func(of raft.LogType, data string) []byte {
		b := packet.Uint(packet.Uint(packet.Uint(packet.Uint(header(askAppend), 1), 1), 1), 1)
		b = packet.Uint(packet.Uint(append(packet.Uint(b, 1), byte(of)), 2), 1)
		return packet.Bytes(packet.Bytes(packet.Uint(b, 0), data), "")
	}
	if _, err := command(entry(raft.LogCommand, "x")); err != nil {
		t.Error(err)
	}
	for what, b := range map[string][]byte{"snapshot": install, "members": entry(raft.LogConfiguration, "x"), "type": entry(200, ""), "old type": entry(raft.LogAddPeerDeprecated, "")} {
		if c, err := command(b); err == nil {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

// Snapshots are written at a pace.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenSnapshots(crash.New(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := s.Put(context.Background(), 1, []string{"a#1"}, text(strings.Repeat("x", 5<<20))); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 4*time.Second || d > 6*time.Second {
			t.Errorf("5 MiB at one a second take %v", d)
		}
	})
}

// No two ranges of a node have a key at the same time; one that gave keys away has them until its snapshot says so.
func TestClaims(t *testing.T) {
	c := NewClaims()
	all, low, high := machine.Bounds{}, machine.Bounds{Hi: "m"}, machine.Bounds{Lo: "m"}
	if err := c.take(1, all); err != nil {
		t.Fatal(err)
	}
	if c.Free(2, high) || c.take(2, high) == nil || !c.Free(1, low) {
		t.Error("two ranges have the same keys")
	}
	c.settle(1, low)
	c.settle(1, all) // by an older snapshot
	if err := c.take(2, high); err != nil {
		t.Error(err)
	}
	if b, ok := c.Of(1); !ok || b != low {
		t.Error(b, ok)
	}
	c.Release(1)
	if !c.Free(3, low) || c.Free(3, all) {
		t.Error("what is released is free, and nothing else")
	}
}

// Bounds of a range that has become smaller since are known by its children; their keys are left alone, and what nobody has is told.
func TestOvertaken(t *testing.T) {
	b := machine.Bounds{Lo: "d", Hi: "p"}
	for _, c := range []struct {
		others []machine.Bounds
		want   bool
		clear  string
	}{
		{nil, false, ""},
		{[]machine.Bounds{{Lo: "", Hi: "d"}, {Lo: "p", Hi: ""}}, false, ""},
		{[]machine.Bounds{{Lo: "", Hi: "p"}}, false, ""},
		{[]machine.Bounds{{Lo: "a", Hi: "e"}, {Lo: "f", Hi: "p"}}, false, ""},
		{[]machine.Bounds{{Lo: "f", Hi: "p"}}, true, "d-f "},
		{[]machine.Bounds{{Lo: "k", Hi: "m"}, {Lo: "f", Hi: "h"}, {Lo: "h", Hi: "i"}}, true, "d-f i-k m-p "},
		{[]machine.Bounds{{Lo: "k", Hi: ""}}, true, "d-k "},
	} {
		claims := NewClaims()
		for i, o := range c.others {
			if err := claims.take(uint64(2+i), o); err != nil {
				t.Fatal(err)
			}
		}
		cleared := ""
		got := claims.Overtaken(1, b, func(b machine.Bounds) { cleared += b.Lo + "-" + b.Hi + " " })
		if got != c.want || cleared != c.clear {
			t.Errorf("beside %v: %t, and %q is nobody's; want %t, %q", c.others, got, cleared, c.want, c.clear)
		}
	}
}

// A process that ended when it had a snapshot of a leader's, and its log of before yet, goes on behind the snapshot.
func TestLogBeforeSnapshot(t *testing.T) {
	for _, c := range []struct {
		name        string
		entries     uint64
		term, stays uint64
	}{{"shorter", 5, 1, 0}, {"another", 60, 2, 0}, {"longer", 60, 1, 60}} {
		log, err := raftlog.Open(crash.New(), raftlog.Options{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		g := log.Group(1)
		for i := range c.entries {
			if err := g.StoreLog(&raft.Log{Index: i + 1, Term: c.term}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := OpenSnapshots(crash.New(), 0)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, 40, "it")
		r := &Replica{c: Config{ID: 1, Log: g, Snapshots: s}}
		if err := r.trim(); err != nil {
			t.Fatal(err)
		}
		if last, err := g.LastIndex(); last != c.stays || err != nil {
			t.Errorf("%s: the log ends at %d, want %d, %v", c.name, last, c.stays, err)
		}
		log.Close()
	}
}

// A snapshot of what a replica has already does not remove what it has behind it, nor take it back there: also where its log
// does not reach back to that entry any more.
func TestSnapshotOfBefore(t *testing.T) {
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, "a#1", "b#1", "c#1")
			defer n.close()
			c := n.client()
			c.set("k", "old")
			l := n.leader()
			o := l.r.Machine().Moment()
			at := l.r.Machine().Applied()
			var body bytes.Buffer
			if _, err := o.WriteTo(&body); err != nil {
				t.Fatal(err)
			}
			o.Close()
			c.set("k", "new")
			f := n.nodes["a#1"]
			if f == l {
				f = n.nodes["b#1"]
			}
			if cut {
				for range 100 {
					c.set("k", "new")
				}
				n.get(f, "k")
				if err := f.r.Snapshot(context.Background()); err != nil {
					t.Fatal(err)
				}
				if first, _ := f.log.Group(1).FirstIndex(); first <= at {
					t.Fatalf("the log begins at %d yet", first)
				}
			}
			if v, err := n.get(f, "k"); v != "new" || err != nil {
				t.Fatal(v, err)
			}
			last := f.r.LastIndex()
			if err := l.install(f, at, l.r.Term(), body.Len(), &body); err != nil {
				t.Error(err)
			}
			var e raft.Log
			if err := f.log.Group(1).GetLog(last, &e); err != nil {
				t.Errorf("entry %d, which was acknowledged: %v", last, err)
			}
			vals, found := [][]byte{nil}, []bool{false}
			if f.r.Machine().Get([]string{"k"}, vals, found); string(vals[0]) != "new" {
				t.Errorf("the replica is back at %q", vals[0])
			}
		})
	}
}

// snapshot returns the bytes of the range as it is now, and the index of its last entry.
func (x *node) snapshot() (b []byte, index uint64) {
	o := x.r.Machine().Moment()
	defer o.Close()
	var to bytes.Buffer
	if _, err := o.WriteTo(&to); err != nil {
		x.net.t.Fatal(err)
	}
	return to.Bytes(), x.r.Machine().Applied()
}

// install lets a leader give another member a snapshot.
func (x *node) install(on *node, index, term uint64, size int, body io.Reader) error {
	config := raft.Configuration{}
	for _, m := range x.r.Members() {
		config.Servers = append(config.Servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.ID)})
	}
	b := appendHeader([]byte{askInstall}, &raft.RPCHeader{ProtocolVersion: 3, ID: []byte(x.id), Addr: []byte(x.id)})
	b = packet.Uint(packet.Uint(packet.Uint(packet.Uint(b, 1), x.r.Term()), index), term)
	b = packet.Uint(packet.Uint(packet.Bytes(b, raft.EncodeConfiguration(config)), 1), uint64(size))
	got, err := on.r.Handle(context.Background(), b, body)
	if err != nil {
		return err
	}
	r := packet.Read(got)
	readHeader(r)
	if term, ok := r.Uint(), r.Bool(); !ok || term != x.r.Term() {
		return fmt.Errorf("term %d, %t", term, ok)
	}
	return nil
}

// apart returns the leader and a member that hears nothing of it any more, and that does not try to lead.
func (n *net) apart() (l, f *node) {
	l = n.leader()
	for _, x := range n.nodes {
		if x != l {
			f = x
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.nodes {
		n.cut[[2]string{f.id, id}] = true
	}
	return l, f
}

// Of two snapshots of a leader's, the older of which comes slowly, and of one of a leader's beside one of its own, a replica never goes back to the
// older one: also not with what it believes to have in its log.
func TestSnapshotsBesideEachOther(t *testing.T) {
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, "a#1", "b#1", "c#1")
			defer n.close()
			c := n.client()
			c.set("k", "before")
			l, f := n.apart()
			slow, wait := io.Pipe()
			olds := make(chan error, 1)
			var ends func()
			if own { // it is the newest, and raft does not know yet
				ready := make(chan struct{})
				var first atomic.Bool
				n.mu.Lock()
				f.settled = func() {
					if first.CompareAndSwap(false, true) {
						<-ready
					}
				}
				n.mu.Unlock()
				ends = func() { close(ready) }
				go func() { olds <- f.r.Snapshot(context.Background()) }()
			} else {
				c.set("k", "old")
				old, at := l.snapshot()
				ends = func() { wait.Write(old); wait.Close() }
				go func() { olds <- l.install(f, at, l.r.Term(), len(old), slow) }()
			}
			synctest.Wait()
			c.set("k", "new")
			b, at := l.snapshot()
			install := func() error { return l.install(f, at, l.r.Term(), len(b), bytes.NewReader(b)) }
			first := install()
			ends()
			<-olds
			if first != nil { // it is asked for again
				if err := install(); err != nil {
					t.Error(err)
				}
			}
			if now := f.r.Machine().Applied(); now < at {
				t.Errorf("entry %d was acknowledged, and the replica is back at %d", at, now)
			}
			if last := f.r.LastIndex(); last < at {
				t.Errorf("entry %d was acknowledged, and its log ends at %d", at, last)
			}
		})
	}
}

// A snapshot is taken of what is there when it is its turn.
func TestSnapshotInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1")
		defer n.close()
		c := n.client()
		c.set("k", "old")
		l := n.leader()
		done, _ := l.all.inTurn(context.Background())
		ended := make(chan error)
		go func() { ended <- l.r.Snapshot(context.Background()) }()
		time.Sleep(beat)
		c.set("k", "new")
		done()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if meta, _ := l.all.Newest(1); meta.Index < l.r.Machine().Applied() {
			t.Errorf("the snapshot is of entry %d, and %d was applied before its turn", meta.Index, l.r.Machine().Applied())
		}
	})
}

// What a replica's log has in the place of a snapshot's last entry is cut, as far as the leader has said: not where it cannot be read, and not
// what has come since.
func TestPartedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		c.set("k", "old")
		was := n.leader()
		n.mu.Lock()
		for id := range n.nodes {
			n.cut[[2]string{was.id, id}] = id != was.id
		}
		n.mu.Unlock()
		term, at := was.r.Term(), was.r.LastIndex()+1
		for range 10 {
			go was.r.Propose(t.Context(), c.call0().Batch(machine.NewBatch(false)))
		}
		l := n.leader(was.id)
		for l.r.Machine().Applied() < at+5 {
			c.set("k", "new")
		}
		if was.r.LastIndex() < at+5 {
			t.Fatal("nothing was proposed")
		}
		time.Sleep(4 * beat)
		was.logs.SetFailRead(func(string) error { return errors.New("it cannot be read") })
		if err := l.install(was, at+2, l.r.Term(), 1, strings.NewReader("x")); err == nil || len(was.renewed) > 0 {
			t.Errorf("%v, %v", err, was.renewed)
		}
		was.logs.SetFailRead(nil)
		if err := l.install(was, at+2, l.r.Term(), 1, strings.NewReader("x")); err == nil || len(was.renewed) != 1 || was.renewed[0] != [2]uint64{at + 2, term} {
			t.Errorf("%v, %v, want entry %d of term %d", err, was.renewed, at+2, term)
		}
	})
}

// A log is cut only where it has what was said to be in nobody else's.
func TestCut(t *testing.T) {
	log, err := raftlog.Open(crash.New(), raftlog.Options{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	g := log.Group(1)
	for i := uint64(1); i <= 20; i++ {
		if err := g.StoreLog(&raft.Log{Index: i, Term: 1 + i/11}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ index, term, last uint64 }{{30, 1, 20}, {15, 1, 20}, {15, 2, 14}, {15, 2, 14}, {5, 2, 14}, {5, 1, 4}, {1, 1, 0}} {
		if err := Cut(g, c.index, c.term); err != nil {
			t.Fatal(err)
		}
		if last, _ := g.LastIndex(); last != c.last {
			t.Errorf("cut from entry %d of term %d on, the log ends at %d, want %d", c.index, c.term, last, c.last)
		}
	}
}

// Keys that a range has given away go where nobody has them: not if they are another's by now.
func TestKeysOfAChild(t *testing.T) {
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, "a#1")
			defer n.close()
			c := n.client()
			for i := range 10 {
				c.set(fmt.Sprint(i), "v")
			}
			x := n.leader()
			n.mu.Lock()
			x.birth = func(b Birth) (bool, error) {
				if taken {
					x.claims.settle(1, machine.Bounds{Hi: "5"})
					if err := x.claims.take(3, b.Bounds); err != nil {
						t.Error(err)
					}
				}
				return false, nil
			}
			n.mu.Unlock()
			c.do(c.call().Split("5", 2, nil))
			time.Sleep(10 * beat)
			if keys := x.tree.Len(); keys != map[bool]int{false: 5, true: 10}[taken] {
				t.Errorf("taken %t: %d keys", taken, keys)
			}
		})
	}
}

// A leader that has just been elected may not know yet that the last entries of before are committed: its first read waits
// for them.
func TestFirstReadOfALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		c := n.client()
		for i := range 10 {
			c.set("k", fmt.Sprint(i))
			was := n.leader()
			was.stop()
			var now *node
			for now == nil {
				time.Sleep(time.Millisecond / 4)
				for id, x := range n.nodes {
					if r := n.of(id); r != nil && r.Leads() {
						now = x
					}
				}
			}
			for {
				index, err := now.r.ReadIndex(context.Background())
				if err == nil {
					err = now.r.Wait(context.Background(), index)
				}
				if err != nil {
					break // it does not lead any more
				}
				vals, found := [][]byte{nil}, []bool{false}
				now.r.Machine().Get([]string{"k"}, vals, found)
				if string(vals[0]) != fmt.Sprint(i) {
					t.Fatalf("a new leader reads %q, and %d was acknowledged", vals[0], i)
				}
				break
			}
			was.start()
		}
	})
}

// A crash while a vote is stored leaves that vote or the one before, and never the candidate of one with the term of the other.
func TestVoteIsWhole(t *testing.T) {
	rng := seed.Rand(t)
	logs := crash.New()
	open := func(dir *crash.Folder) (*raftlog.Log, guarded) {
		log, err := raftlog.Open(dir, raftlog.Options{ID: 1, SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		return log, guarded{log.Group(1), &Replica{}}
	}
	log, g := open(logs)
	vote := func(term uint64) {
		if err := errors.Join(g.SetUint64([]byte(voteTerm), term), g.Set([]byte(voteCandidate), fmt.Append(nil, term))); err != nil {
			t.Fatal(err)
		}
	}
	vote(1)
	var images []*crash.Folder
	logs.SetBefore(func(int, string) { images = append(images, logs.Image(rng)) })
	vote(2)
	logs.SetBefore(nil)
	log.Close()
	seen := map[uint64]bool{}
	for _, image := range append(images, logs) {
		log, g := open(image)
		term, err := g.GetUint64([]byte(voteTerm))
		candidate, err2 := g.Get([]byte(voteCandidate))
		if err != nil || err2 != nil || string(candidate) != fmt.Sprint(term) {
			t.Errorf("the vote of term %d is for %q, %v, %v", term, candidate, err, err2)
		}
		seen[term] = true
		log.Close()
	}
	if !seen[1] || !seen[2] {
		t.Errorf("votes of terms %v", seen)
	}
}

// What raft calls the parts of a vote is what this package waits for.
func TestVotesAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, "a#1", "b#1", "c#1")
		defer n.close()
		n.leader()
		for id, x := range n.nodes {
			g := x.log.Group(1)
			term, _ := g.GetUint64([]byte(voteTerm))
			candidate, _ := g.Get([]byte(voteCandidate))
			if voted := x.r.Leads(); (voted || term > 0) && (term == 0 || n.nodes[string(candidate)] == nil) {
				t.Errorf("%s has voted in term %d for %q", id, term, candidate)
			}
		}
	})
}
