package consensus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/raftlog"
)

// errBeside is returned for one of two snapshots at the same time. It is tried again.
var errBeside = errors.New("another snapshot of this replica is being written")

// install installs a snapshot of the leader's.
func (r *Replica) install(ctx context.Context, in *raft.InstallSnapshotRequest, body io.Reader) ([]byte, error) {
	if !(mutant.On && mutant.Is("cluster: one snapshot at a time")) {
		if !r.one.TryLock() {
			return nil, errBeside
		}
		defer r.one.Unlock()
	}
	if got, err := r.needless(in); got != nil || err != nil {
		return got, err
	}
	// Raft makes a snapshot durable before it asks whether there is room for it.
	var read bytes.Buffer
	b, err := machine.BoundsOf(io.TeeReader(body, &read))
	if err != nil {
		return nil, err
	}
	if !r.c.Claims.Free(r.c.ID, b) {
		return nil, ErrClaimed
	}
	body = io.MultiReader(&read, body)
	if mutant.On && mutant.Is("cluster: raft hears others beside a snapshot") {
		return r.wire.handle(ctx, in, body)
	}
	drop, err := r.snapshotsOf.receive(in.LastLogIndex, in.LastLogTerm, in.Size, &ending{body, r.ctx})
	if err != nil {
		return nil, err
	}
	defer drop()
	if got, err := r.needless(in); got != nil || err != nil { // it took its time
		return got, err
	}
	return r.wire.handle(ctx, in, new(bytes.Buffer))
}

// ending is a reader that ends with a context.
type ending struct {
	io.Reader
	ctx context.Context
}

func (e *ending) Read(b []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, ErrClosed
	}
	return e.Reader.Read(b)
}

// needless returns the answer for a snapshot that this replica does not need, and an error where its own log must go first.
func (r *Replica) needless(in *raft.InstallSnapshotRequest) ([]byte, error) {
	if in.Term < r.raft.CurrentTerm() {
		return nil, nil // raft refuses it
	}
	has, other, err := r.has(in)
	switch {
	case err != nil:
		return nil, err
	case has:
		return answer(&raft.InstallSnapshotResponse{Term: in.Term, Success: true})
	case other > 0:
		r.c.Renew(in.LastLogIndex, other)
		return nil, errors.New("the log of this replica has parted, and it begins again")
	}
	return nil, nil
}

// has reports whether this replica has all that is in a snapshot: by its log, or since it has applied more. Raft would go
// back to the snapshot all the same, and remove what is behind it in the log, which may have been acknowledged.
//
// Where the log has another entry in the place of the snapshot's last, its term is returned. Nobody has committed that. Raft would remove
// it, and believe that it is there yet.
func (r *Replica) has(in *raft.InstallSnapshotRequest) (yes bool, other uint64, err error) {
	if mutant.On && mutant.Is("cluster: entries behind a snapshot stay") {
		return false, 0, nil
	}
	if in.LastLogIndex <= r.raft.AppliedIndex() && !(mutant.On && mutant.Is("cluster: no way back to a snapshot")) {
		return true, 0, nil
	}
	var e raft.Log
	switch err := r.c.Log.GetLog(in.LastLogIndex, &e); {
	case errors.Is(err, raft.ErrLogNotFound):
		return false, 0, nil
	case err != nil:
		return false, 0, err
	case e.Term == in.LastLogTerm:
		return true, 0, nil
	}
	return false, e.Term, nil
}

// Cut removes what a log has from an index on, if the entry there is of that term: a leader has said that this one was not committed. It
// may have sent others in its place since.
func Cut(log *raftlog.Group, index, term uint64) error {
	var e raft.Log
	switch err := log.GetLog(index, &e); {
	case errors.Is(err, raft.ErrLogNotFound):
		return nil
	case err != nil:
		return err
	case e.Term != term && !(mutant.On && mutant.Is("cluster: only what was not committed is cut")):
		return nil
	}
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	return log.DeleteRange(index, last)
}

// Snapshot takes a snapshot now.
func (r *Replica) Snapshot(ctx context.Context) error {
	// Raft holds on to a moment while it waits, and that to values that are gone: so it is asked when it is its turn.
	ctx, end := r.until(ctx)
	defer end()
	done, ok := r.c.Snapshots.inTurn(ctx)
	if !ok {
		return ctx.Err()
	}
	defer done()
	if !r.one.TryLock() {
		return errBeside
	}
	defer r.one.Unlock()
	// It lasts until raft says so, or the replica ends, whatever becomes of ctx.
	err := r.use(r.ctx, r.raft.Snapshot())
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

// snapshotLocked has a snapshot taken, unless one is.
func (r *Replica) snapshotLocked() {
	if r.asked || r.ctx.Err() != nil {
		return
	}
	r.asked = true
	r.tasks.Add(1)
	go r.snapshots()
}

// snapshots takes a snapshot, again until there is one that has all births.
func (r *Replica) snapshots() {
	defer r.tasks.Done()
	for wait := r.c.Beat; ; wait = min(2*wait, 60*r.c.Beat) {
		select {
		case <-r.made:
		case <-r.ctx.Done():
			r.mu.Lock()
			r.asked = false
			r.mu.Unlock()
			return
		}
		r.mu.Lock()
		bytes, entries := r.since, r.entries
		r.mu.Unlock()
		r.trail(bytes, entries)
		err := r.Snapshot(r.ctx)
		r.mu.Lock()
		if err == nil {
			r.since, r.entries = r.since-bytes, r.entries-entries
		}
		if err == nil && len(r.births) == 0 || r.ctx.Err() != nil {
			r.asked = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		select {
		case <-time.After(wait): // members have just changed, say
		case <-r.ctx.Done():
		}
	}
}

// trail sets how many entries raft leaves behind a snapshot, by their bytes.
func (r *Replica) trail(bytes, entries int64) {
	n := int64(10_000)
	if entries > 0 && bytes > 0 {
		n = min(100*n, max(mostAppend, r.trailBytes()*entries/bytes))
	}
	rc := r.raft.ReloadableConfig()
	if rc.TrailingLogs != uint64(n) {
		rc.TrailingLogs = uint64(n)
		_ = r.raft.ReloadConfig(rc) // it was valid before
	}
}

// trailBytes is more for larger snapshots: who gets one must find what comes behind it.
func (r *Replica) trailBytes() int64 {
	meta, _ := r.c.Snapshots.Newest(r.c.ID)
	return max(r.c.Trail, meta.Size/2)
}

// guarded is the log as raft uses it. Where that fails raft panics, or goes on: the node must end, and raft's goroutine
// waits for that.
type guarded struct {
	*raftlog.Group
	r *Replica
}

func (g guarded) end(err error) error {
	select {
	case <-g.r.made:
	default:
		return err
	}
	g.r.fail(err)
	<-g.r.ctx.Done()
	runtime.Goexit()
	return err
}

// Raft stores a vote in two steps, its term and then its candidate. A crash between them would leave an older candidate with the new
// term, and who has that vote gets it again whatever its log has: so the term waits for the candidate.
const (
	voteTerm      = "LastVoteTerm"
	voteCandidate = "LastVoteCand"
)

func (g guarded) Set(key, val []byte) error {
	values := []raftlog.Value{{Key: key, Data: val}}
	if string(key) == voteCandidate && g.r.vote != nil {
		values = append(values, raftlog.Value{Key: []byte(voteTerm), Data: g.r.vote})
		g.r.vote = nil
	}
	if err := g.SetAll(values...); err != nil {
		return g.end(err)
	}
	return nil
}

func (g guarded) SetUint64(key []byte, n uint64) error {
	if string(key) == voteTerm && !(mutant.On && mutant.Is("cluster: a vote is one write")) {
		g.r.vote = binary.LittleEndian.AppendUint64(nil, n)
		return nil
	}
	if err := g.Group.SetUint64(key, n); err != nil {
		return g.end(err)
	}
	return nil
}

// GetLog returns an entry. Where a snapshot ends and the log has nothing of it, a member that does not lead gets an entry there, too,
// of which nothing but the term is true: raft looks in the log alone for the entry before those that a leader sends. A
// leader whose answer was lost would else send them for ever, or a log that is another's could never be cut.
func (g guarded) GetLog(index uint64, to *raft.Log) error {
	err := g.Group.GetLog(index, to)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, raft.ErrLogNotFound):
		return g.end(err)
	}
	select {
	case <-g.r.made:
	default:
		return err
	}
	meta, ok := g.r.c.Snapshots.Newest(g.r.c.ID)
	if !ok || meta.Index != index || g.r.raft.State() == raft.Leader || mutant.On && mutant.Is("cluster: the entry before the log") {
		return err
	}
	*to = raft.Log{Index: index, Term: meta.Term, Type: inSnapshot}
	return nil
}

// inSnapshot is the type of an entry that is known by a snapshot alone. None is ever sent.
const inSnapshot raft.LogType = 0xff

// fsm is the replica as raft's machine.
type fsm Replica

// Apply applies an entry.
func (f *fsm) Apply(l *raft.Log) any {
	r := (*Replica)(f)
	if r.failed.Load() {
		return nil
	}
	result, err := r.c.Machine.Apply(l.Index, l.Data)
	if err != nil {
		r.fail(fmt.Errorf("range %d: entry %d cannot be applied: %w", r.c.ID, l.Index, err))
		return nil
	}
	r.mu.Lock()
	r.since, r.entries = r.since+int64(len(l.Data)), r.entries+1
	due := r.since >= r.c.SnapshotAt
	r.mu.Unlock()
	if due {
		meta, _ := r.c.Snapshots.Newest(r.c.ID)
		r.mu.Lock()
		if r.since >= meta.Size {
			r.snapshotLocked()
		}
		r.mu.Unlock()
	}
	r.applied()
	return result
}

// StoreConfiguration does nothing: raft keeps the members. That it is there lets raft take a snapshot
// behind a change of members while no entry has followed; a child's keys may wait for that snapshot.
func (f *fsm) StoreConfiguration(uint64, raft.Configuration) {}

// Snapshot returns the moment that is now, and the births before it.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	r := (*Replica)(f)
	if r.failed.Load() {
		return nil, ErrClosed // raft counts entries that were not applied
	}
	s := &taken{r: r, at: r.c.Machine.Moment()}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.births, r.births = r.births, nil
	return s, nil
}

// Restore gives the machine the state of a snapshot.
func (f *fsm) Restore(from io.ReadCloser) error {
	r := (*Replica)(f)
	var bounds machine.Bounds
	claimed := false
	err := r.c.Machine.Restore(from, func(b machine.Bounds) error {
		err := r.c.Claims.take(r.c.ID, b)
		bounds, claimed = b, err == nil
		return err
	})
	if err != nil {
		if claimed { // the state may be half another
			r.fail(fmt.Errorf("range %d: a snapshot cannot be restored: %w", r.c.ID, err))
		}
		return err
	}
	r.mu.Lock()
	for _, b := range r.births { // they are before the snapshot: others have them
		r.forget(b)
		b.At.Close()
	}
	r.births = nil
	r.mu.Unlock()
	r.c.Claims.settle(r.c.ID, bounds)
	r.c.Settled()
	r.applied()
	return nil
}

// forget removes the keys of a child that has no replica here.
func (r *Replica) forget(b Birth) {
	r.c.Claims.while(r.c.ID, b.Bounds, func() { r.c.Machine.Forget(b.Bounds) })
}

// taken is a snapshot to be written.
type taken struct {
	r      *Replica
	at     *machine.Moment
	births []Birth
	done   bool
}

// Persist makes the births durable, and then the snapshot: in that order, since the snapshot does not have their keys any more.
func (s *taken) Persist(to raft.SnapshotSink) error {
	r := s.r
	for _, b := range s.births {
		if mutant.On && mutant.Is("cluster: a child's snapshot first") {
			break
		}
		here, err := r.c.Birth(r.ctx, b)
		if err != nil {
			return err
		}
		if !here {
			r.forget(b)
		}
	}
	if _, err := s.at.WriteTo(to); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return err
	}
	s.done = true
	r.c.Claims.settle(r.c.ID, s.at.Bounds())
	r.c.Settled()
	return nil
}

// Release frees the moment; births that are not durable wait for the next snapshot.
func (s *taken) Release() {
	s.at.Close()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if !s.done && s.r.ctx.Err() == nil {
		s.r.births = append(s.births, s.r.births...)
		return
	}
	for _, b := range s.births {
		b.At.Close()
	}
}
