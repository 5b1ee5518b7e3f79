// Package consensus makes the replicas of a range agree. It is what this module asks of an engine: to
// propose entries, to read what is not stale, to hand over the lead, to change members, to take snapshots and
// to give them to members that are behind. The engine is hashicorp/raft, and nobody else knows.
package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/raftlog"
)

var (
	// ErrNotLeader is returned by a replica that does not lead: nothing was done.
	ErrNotLeader = errors.New("this replica does not lead its range")
	// ErrTooLong is returned for an entry of more than MostEntry bytes: nothing was done.
	ErrTooLong = fmt.Errorf("an entry has more than %d bytes", MostEntry)
	// ErrClosed is returned by a replica that was closed.
	ErrClosed = errors.New("this replica was closed")
)

// MostEntry is the most bytes of an entry. Members could not be sent a longer one, and would wait for it for ever.
const MostEntry = 2 * machine.MostEntry

// Send sends a request to a member, and returns its answer.
type Send func(ctx context.Context, to string, request []byte, body io.Reader) (answer []byte, err error)

// Config is what a replica needs.
type Config struct {
	ID        uint64 // of the range
	Self      string // which of its members this is
	Machine   *machine.Machine
	Log       *raftlog.Group
	Snapshots *Snapshots
	Claims    *Claims
	Send      Send
	Ask       func(ctx context.Context, leader string) (uint64, error) // ReadIndex of the leader, for a member that does not lead
	Beat      time.Duration                                            // how long a leader may be silent
	// Birth is called before a snapshot is written, with each range to which keys were given since the last. It makes durable with what
	// that begins, unless it is not to have a replica here: then its keys go. Settled is called when the snapshot is durable.
	Birth   func(context.Context, Birth) (here bool, err error)
	Settled func()
	// Renew is called when the replica must be closed, its log be cut by Cut, and be started again.
	Renew func(index, term uint64)
	// Fail is called when the node must end.
	Fail func(error)
	// SnapshotAt is how many bytes of entries are applied until a snapshot is taken; as many as the last
	// snapshot has, at least. Trail is how many stay behind it for members that are behind.
	SnapshotAt, Trail int64
}

// Birth is a range that begins.
type Birth struct {
	machine.Born
	At *machine.Moment
}

// Member is a member of a range.
type Member struct {
	ID    string
	Voter bool
}

// Replica is a member of a range.
type Replica struct {
	c      Config
	raft   *raft.Raft
	wire   *wire
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	failed atomic.Bool
	vote   []byte        // the term of a vote whose candidate raft is about to store
	made   chan struct{} // closed when raft is there

	// Held while a snapshot is taken, and while one of a leader's is installed. Raft does both beside each other, and goes back to the older
	// one where that ends last.
	one         sync.Mutex
	snapshotsOf *ofGroup

	mu     sync.Mutex
	births []Birth       // since the last snapshot
	moved  chan struct{} // closed when more is applied; nil if nobody waits

	behind, ahead instant // the last one whose index is applied, and one whose index is not yet

	reading bool   // a round of reads is under way
	next    *round // whose reads wait for the next one
	ready   uint64 // the last term in which this leader has applied all that leaders before had committed

	since, entries int64 // bytes and entries that were applied since a snapshot was asked for
	asked          bool  // a snapshot is being taken
}

// Begin notes a child; Machine's maker passes it on from there.
func (r *Replica) Begin(b machine.Born, at *machine.Moment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.births = append(r.births, Birth{b, at})
	r.snapshotLocked()
}

// Start starts a replica with what the log and the snapshots have of it. One of which they have nothing votes, and waits
// for a leader. made is called with it before anything is applied.
func Start(c Config, made func(*Replica)) (_ *Replica, err error) {
	r := &Replica{c: c, made: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.snapshotsOf = &ofGroup{all: c.Snapshots, id: c.ID, ctx: r.ctx}
	r.wire = &wire{
		self: raft.ServerAddress(c.Self), send: c.Send, consumer: make(chan raft.RPC), ctx: r.ctx, patience: c.Beat,
		heard: map[raft.ServerID]contact{},
	}
	if err := r.trim(); err != nil {
		r.cancel()
		return nil, err
	}
	made(r)
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(c.Self)
	conf.HeartbeatTimeout, conf.ElectionTimeout = c.Beat, c.Beat
	conf.LeaderLeaseTimeout, conf.CommitTimeout = c.Beat/2, c.Beat/20
	conf.MaxAppendEntries = mostAppend
	conf.ShutdownOnRemove = false
	conf.SnapshotThreshold, conf.SnapshotInterval = math.MaxUint64, 24*time.Hour // by bytes, see snapshotLocked
	conf.TrailingLogs = mostAppend
	conf.LogOutput, conf.LogLevel = io.Discard, "OFF"
	conf.NoLegacyTelemetry = true
	defer func() {
		if v := recover(); v != nil { // raft panics where the log fails
			r.cancel()
			r.dropBirths()
			err = fmt.Errorf("range %d cannot start: %v", c.ID, v)
		}
	}()
	if r.raft, err = raft.NewRaft(conf, (*fsm)(r), guarded{c.Log, r}, guarded{c.Log, r}, r.snapshotsOf, r.wire); err != nil {
		r.cancel()
		r.dropBirths()
		return nil, err
	}
	close(r.made)
	return r, nil
}

// mostAppend is how many entries a request has at most.
const mostAppend = 64

// trim removes the log of a replica that has a newer snapshot, or another one than the log belongs to: raft
// was about to, when the process ended.
func (r *Replica) trim() error {
	meta, ok := r.c.Snapshots.Newest(r.c.ID)
	if !ok {
		return nil
	}
	first, err := r.c.Log.FirstIndex()
	if err != nil || first == 0 {
		return err
	}
	last, err := r.c.Log.LastIndex()
	if err != nil {
		return err
	}
	void := last < meta.Index
	var e raft.Log
	switch err := r.c.Log.GetLog(meta.Index, &e); {
	case err == nil:
		void = void || e.Term != meta.Term
	case !errors.Is(err, raft.ErrLogNotFound):
		return err
	case first > meta.Index+1:
		return fmt.Errorf("range %d has a snapshot up to entry %d, and its log begins at %d", r.c.ID, meta.Index, first)
	}
	if !void || mutant.On && mutant.Is("cluster: a log before the snapshot is void") {
		return nil
	}
	return r.c.Log.DeleteRange(first, last)
}

// Close ends the replica. All calls return.
func (r *Replica) Close() {
	r.cancel()
	r.raft.Shutdown().Error()
	r.tasks.Wait()
	r.dropBirths()
	r.applied()
}

func (r *Replica) dropBirths() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.births {
		b.At.Close()
	}
	r.births = nil
}

// fail says that the node must end. Nothing is answered any more.
func (r *Replica) fail(err error) {
	r.failed.Store(true)
	r.c.Fail(err)
}

// use waits for a future of raft's. Raft forgets those who wait in its queues when it is shut down: the end of the replica
// ends them, as raft would by a field of the future that nobody outside has a name for.
func (r *Replica) use(ctx context.Context, f raft.Future) error {
	if v := reflect.ValueOf(f); v.Kind() == reflect.Pointer && !(mutant.On && mutant.Is("cluster: close waits")) {
		if end := v.Elem().FieldByName("ShutdownCh"); end.IsValid() && end.CanSet() {
			stop := make(chan struct{})
			undo := context.AfterFunc(ctx, func() { close(stop) })
			defer undo()
			end.Set(reflect.ValueOf(stop))
		}
	}
	err := f.Error()
	switch {
	case err == nil:
		return nil
	case r.ctx.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrNotLeader
	case errors.Is(err, raft.ErrRaftShutdown):
		return ErrClosed
	}
	return err
}

// until returns a context that ends with ctx, and with the replica.
func (r *Replica) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	undo := context.AfterFunc(r.ctx, cancel)
	return ctx, func() { undo(); cancel() }
}

// Propose proposes an entry, and returns the machine's result when it is applied. ErrNotLeader and ErrTooLong say that it was not
// proposed; with any other error nobody knows.
func (r *Replica) Propose(ctx context.Context, entry []byte) ([]byte, error) {
	if len(entry) > MostEntry {
		return nil, ErrTooLong
	}
	if err := machine.Known(entry); err != nil { // all members of this version would end
		return nil, err
	}
	ctx, end := r.until(ctx)
	defer end()
	f := r.raft.Apply(entry, r.c.Beat)
	if err := r.use(ctx, f); err != nil {
		return nil, err
	}
	if r.failed.Load() {
		return nil, ErrClosed
	}
	if b, ok := f.Response().([]byte); ok {
		return b, nil
	}
	return nil, ErrClosed
}

// Handle answers a request of another member.
func (r *Replica) Handle(ctx context.Context, request []byte, body io.Reader) ([]byte, error) {
	c, err := command(request)
	if err != nil {
		return nil, err
	}
	if r.failed.Load() {
		return nil, ErrClosed
	}
	if in, ok := c.(*raft.InstallSnapshotRequest); ok {
		if body == nil {
			return nil, errors.New("a snapshot has no bytes")
		}
		return r.install(ctx, in, body)
	}
	return r.wire.handle(ctx, c, body)
}
