package consensus

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/machine"
)

// round is reads that share what makes sure that this replica leads.
type round struct {
	done  chan struct{}
	index uint64
	err   error
}

// ReadIndex returns the index of an entry: a replica that has applied it has all that was acknowledged before the call. A
// leader asks a majority whether it leads, and others ask the leader; once for all that wait.
func (r *Replica) ReadIndex(ctx context.Context) (uint64, error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	mine := r.next
	if !r.reading {
		r.reading = true
		r.tasks.Add(1)
		go r.rounds()
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.index, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (r *Replica) rounds() {
	defer r.tasks.Done()
	for {
		r.mu.Lock()
		now := r.next
		r.next = nil
		r.reading = now != nil
		r.mu.Unlock()
		if now == nil {
			return
		}
		begin := time.Now()
		if now.index, now.err = r.verify(); now.err == nil {
			r.knew(begin, now.index)
		}
		close(now.done)
	}
}

// instant is a time at which nothing behind an index was acknowledged.
type instant struct {
	at    time.Time
	index uint64
}

// knew notes an instant, unless an earlier one is not applied yet: that one will be sooner.
func (r *Replica) knew(at time.Time, index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reachLocked()
	if r.ahead.at.IsZero() {
		r.ahead = instant{at, index}
		r.reachLocked()
	}
}

func (r *Replica) reachLocked() {
	if !r.ahead.at.IsZero() && (r.ahead.index <= r.c.Machine.Applied() || mutant.On && mutant.Is("cluster: as old as what is applied")) {
		r.behind, r.ahead = r.ahead, instant{}
	}
}

// Since returns a time so that what was acknowledged before it is applied here; false if it knows none. It asks nobody.
func (r *Replica) Since() (at time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reachLocked()
	return r.behind.at, !r.behind.at.IsZero()
}

// verify is a round.
func (r *Replica) verify() (index uint64, err error) {
	asked := r.wire.sent.Add(1)
	term := r.raft.CurrentTerm()
	if r.raft.State() != raft.Leader {
		leader := r.Leader()
		if leader == "" || leader == r.c.Self || r.c.Ask == nil {
			return 0, ErrNotLeader
		}
		ctx, cancel := context.WithTimeout(r.ctx, 2*r.c.Beat)
		defer cancel()
		return r.c.Ask(ctx, leader)
	}
	if r.ready != term && !(mutant.On && mutant.Is("cluster: a leader's first read waits")) {
		if err := r.Barrier(r.ctx); err != nil {
			return 0, err
		}
		if r.raft.CurrentTerm() != term {
			return 0, ErrNotLeader
		}
		r.ready = term
	}
	if mutant.On && mutant.Is("cluster: read by the index") {
		return r.c.Machine.Applied(), nil
	}
	index = r.committed()
	for begin := time.Now(); time.Since(begin) < 2*r.c.Beat; {
		if err := r.use(r.ctx, r.raft.VerifyLeader()); err != nil {
			return 0, ErrNotLeader
		}
		if r.raft.CurrentTerm() != term {
			return 0, ErrNotLeader
		}
		// Raft takes any answer for one, also to what was asked before, and those of members without a vote: a leader that was paused
		// in between has others' answers of long ago before it.
		if r.heardSince(term, asked) || mutant.On && mutant.Is("cluster: answers to this read") {
			return index, nil
		}
	}
	return 0, ErrNotLeader
}

// committed returns the index of the last entry for the machine that is committed, which another member may have
// applied already.
func (r *Replica) committed() uint64 {
	applied := r.c.Machine.Applied()
	if mutant.On && mutant.Is("cluster: what is committed, not what is applied") {
		return applied
	}
	for index := r.raft.CommitIndex(); index > applied; index-- {
		var e raft.Log
		switch err := r.c.Log.GetLog(index, &e); {
		case errors.Is(err, raft.ErrLogNotFound): // all up to it is in a snapshot, so it is applied
			if !(mutant.On && mutant.Is("cluster: a snapshot's last entry may be none of the machine's")) {
				return r.c.Machine.Applied()
			}
			return index
		case err != nil: // this member is about to end
			return index
		case e.Type == raft.LogCommand:
			return index
		}
	}
	return applied
}

// heardSince reports whether a majority has answered what this leader has asked since.
func (r *Replica) heardSince(term, sent uint64) bool {
	voters, heard := 0, 0
	for _, s := range r.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(s.ID) == r.c.Self || r.wire.heardSince(s.ID, term, sent) {
			heard++
		}
	}
	return heard > voters/2
}

// Wait waits until an entry is applied here.
func (r *Replica) Wait(ctx context.Context, index uint64) error {
	for {
		r.mu.Lock()
		if r.moved == nil {
			r.moved = make(chan struct{})
		}
		moved := r.moved
		r.mu.Unlock()
		switch {
		case r.ctx.Err() != nil || r.failed.Load():
			return ErrClosed
		case r.c.Machine.Applied() >= index || mutant.On && mutant.Is("cluster: read when applied"):
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// applied wakes those who wait.
func (r *Replica) applied() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moved != nil {
		close(r.moved)
		r.moved = nil
	}
}

// Barrier returns when all that was committed before is applied here. The replica must lead.
func (r *Replica) Barrier(ctx context.Context) error {
	ctx, end := r.until(ctx)
	defer end()
	return r.use(ctx, r.raft.Barrier(r.c.Beat))
}

// Leader returns the member that leads, as far as this one knows; "" if it does not.
func (r *Replica) Leader() string {
	_, id := r.raft.LeaderWithID()
	return string(id)
}

// Leads reports whether this replica believes that it leads.
func (r *Replica) Leads() bool { return r.raft.State() == raft.Leader }

// Self returns which member this is.
func (r *Replica) Self() string { return r.c.Self }

// Machine returns the range.
func (r *Replica) Machine() *machine.Machine { return r.c.Machine }

// Term returns the term of this replica.
func (r *Replica) Term() uint64 { return r.raft.CurrentTerm() }

// Heard returns how long ago this replica has heard of a leader.
func (r *Replica) Heard() time.Duration {
	if r.Leads() {
		return 0
	}
	return time.Since(r.raft.LastContact())
}

// LastIndex returns the index of the last entry that is in the log here.
func (r *Replica) LastIndex() uint64 { return r.raft.LastIndex() }

// Members returns the members as this replica knows them, which may not be committed.
func (r *Replica) Members() []Member { return membersOf(r.raft.GetConfiguration().Configuration()) }

// Configuration returns the members by the newest entry that names them, which may not be committed, and its index.
func (r *Replica) Configuration() (members []Member, index uint64, err error) {
	meta, _ := r.c.Snapshots.Newest(r.c.ID)
	for i := r.raft.LastIndex(); i > meta.ConfigurationIndex; i-- {
		var e raft.Log
		if err := r.c.Log.GetLog(i, &e); errors.Is(err, raft.ErrLogNotFound) {
			break // it is in the snapshot
		} else if err != nil {
			return nil, 0, err
		}
		if e.Type == raft.LogConfiguration {
			return membersOf(raft.DecodeConfiguration(e.Data)), i, nil
		}
	}
	return membersOf(meta.Configuration), meta.ConfigurationIndex, nil
}

func membersOf(c raft.Configuration) (members []Member) {
	for _, s := range c.Servers {
		members = append(members, Member{string(s.ID), s.Suffrage == raft.Voter})
	}
	return members
}

// Add makes a member without a vote.
func (r *Replica) Add(ctx context.Context, id string) error {
	return r.change(ctx, func() raft.Future { return r.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id), 0, r.c.Beat) })
}

// Promote gives a member a vote, if the members are those of an index of Configuration; 0 is any.
func (r *Replica) Promote(ctx context.Context, id string, index uint64) error {
	if mutant.On && mutant.Is("cluster: members as they were seen") {
		index = 0
	}
	return r.change(ctx, func() raft.Future { return r.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(id), index, r.c.Beat) })
}

// Remove removes a member, if the members are those of an index of Configuration; 0 is any. A leader may remove itself: it leads until that is committed.
func (r *Replica) Remove(ctx context.Context, id string, index uint64) error {
	return r.change(ctx, func() raft.Future { return r.raft.RemoveServer(raft.ServerID(id), index, r.c.Beat) })
}

// change changes the members. What comes back without an error is committed.
func (r *Replica) change(ctx context.Context, f func() raft.Future) error {
	ctx, end := r.until(ctx)
	defer end()
	return r.use(ctx, f())
}

// Transfer hands the lead over to a member.
func (r *Replica) Transfer(ctx context.Context, to string) error {
	ctx, end := r.until(ctx)
	defer end()
	return r.use(ctx, r.raft.LeadershipTransferToServer(raft.ServerID(to), raft.ServerAddress(to)))
}
