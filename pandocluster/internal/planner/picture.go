// Package planner decides what is done with the ranges of a cluster: where replicas are made and
// removed, who leads, what is split and merged.
//
// It is a pure function from a picture of the cluster to steps: equal pictures give equal steps, whatever came
// before. Nothing is remembered between two plans but the picture. So whoever runs it may be exchanged at any
// moment, and what an earlier plan began is seen in the picture: a replica without a vote is a
// move under way.
//
// A plan costs what there is to do, and not nodes times ranges: a Planner keeps its picture sorted by what each range
// lacks, and is told what has changed.
//
// Promises about every plan, for the picture that it was made from:
//
//   - A range gets at most one step, and none while one is pending, or without a leader or a majority of votes.
//   - A range has at most one replica without a vote; it gets one only when it has caught up.
//   - A vote is taken from a replica only if those that are left, on nodes that are there, are a
//     majority, and no fewer of them may fail than before, unless they are as many as are wanted.
//   - A leader is not removed: another one leads first.
//   - Two replicas share a rack, or a zone, only if no node elsewhere has room.
//   - While a repair waits for its turn, nothing is moved for balance.
//   - A node takes part in a bounded number of steps at once.
package planner

import "fmt"

// State is what is known of a node.
type State uint8

const (
	Up       State = iota
	Silent         // it was not heard of for a moment: it gets nothing, and what it has is not replaced
	Down           // it was not heard of for so long that what it has is made anew elsewhere
	Draining       // it is there, and is to have nothing
	Removed        // it does not come back
)

func (s State) String() string {
	return [...]string{"up", "silent", "down", "draining", "removed"}[s]
}

// Node is a process of the cluster. One that ranges name and the picture lacks is Removed.
type Node struct {
	Name       string
	Zone, Rack string // empty where it is not known: then the node shares them with nobody
	Capacity   int64  // bytes that it may hold
	State      State
}

// Replica is a replica of a range on a node.
type Replica struct {
	Node  string
	Votes bool
	Ready bool // of one without a vote: it has caught up with the leader
}

// Range is a range of keys.
type Range struct {
	ID      uint64
	Version uint64 // of the membership; steps carry it, so that one is not done on another membership
	Lo      string // the first key, which orders the ranges
	Size    int64  // bytes
	Load    int64  // operations a second

	Replicas []Replica
	Leader   string // empty if nobody is known to lead
	Pending  Step   // a step that is being done; its Kind is None if there is none
	Wish     Wish

	Whole bool // it is not split: there is no key at which it could be
	Apart bool // it is not merged with the range before it
}

// Wish asks that a replica goes from one node to another. It is fulfilled when From has none and To votes. While it stands,
// nothing is moved for balance.
type Wish struct{ From, To string }

// Fulfilled reports whether a wish needs nothing more.
func (r *Range) Fulfilled() bool {
	votes := r.Wish.To == ""
	for _, x := range r.Replicas {
		if x.Node == r.Wish.From {
			return false
		}
		votes = votes || x.Node == r.Wish.To && x.Votes
	}
	return votes
}

// Kind is what a step does.
type Kind uint8

const (
	None    Kind = iota
	Add          // Node gets a replica without a vote
	Promote      // the replica of Node gets a vote
	Remove       // the replica of Node is removed
	Lead         // the replica of Node leads from now on
	Split        // the range is split, at a key that its leader chooses
	Merge        // the range takes over Other, which begins where it ends, has the same replicas and the same leader
)

func (k Kind) String() string {
	return [...]string{"none", "add", "promote", "remove", "lead", "split", "merge"}[k]
}

// Reason is why a step is done.
type Reason uint8

const (
	Repair  Reason = iota // there are too few votes
	Drain                 // a node is to have nothing
	Wished                // somebody asked for it
	Spread                // replicas share a rack or a zone
	Balance               // a node has more than others
	Size                  // a range is too large, or too small
	Busy                  // a range has too much to do
	Surplus               // what was begun is brought to its end
)

func (r Reason) String() string {
	return [...]string{"repair", "drain", "wish", "spread", "balance", "size", "load", "surplus"}[r]
}

// Step is one change of one range.
type Step struct {
	Kind    Kind
	Range   uint64
	Version uint64 // of the range, as the picture had it
	Node    string // for Add, Promote, Remove, Lead
	Other   uint64 // for Merge
	Reason  Reason
}

func (s Step) String() string {
	switch s.Kind {
	case Split:
		return fmt.Sprintf("split %d: %v", s.Range, s.Reason)
	case Merge:
		return fmt.Sprintf("merge %d with %d: %v", s.Range, s.Other, s.Reason)
	}
	return fmt.Sprintf("%v %s of %d: %v", s.Kind, s.Node, s.Range, s.Reason)
}

// Options are what a cluster wants.
type Options struct {
	Replicas  int   // votes of a range; odd
	Transfers int   // replicas that a node may receive at once, and send
	Steps     int   // steps of ranges that a node leads, at once
	MaxSize   int64 // bytes above which a range is split
	MinSize   int64 // bytes below which it may be merged; 0: never
	MaxLoad   int64 // operations a second above which a range is split; 0: never
}

// Defaults are the options that a cluster has unless it is told others.
func Defaults() Options {
	return Options{Replicas: 3, Transfers: 2, Steps: 16, MaxSize: 512 << 20, MinSize: 64 << 20, MaxLoad: 0}
}

// check panics if options contradict each other.
func (o Options) check() {
	switch {
	case o.Replicas < 1 || o.Replicas%2 == 0:
		panic("planner: the number of replicas is odd")
	case o.Transfers < 1 || o.Steps < 1:
		panic("planner: a node takes part in at least one step")
	case o.MaxSize < 1 || o.MinSize < 0 || o.MinSize > o.MaxSize/4:
		panic("planner: MinSize is at most a quarter of MaxSize, else what was split is merged again")
	case o.MaxLoad < 0:
		panic("planner: MaxLoad is not below zero")
	}
}

// Picture is a cluster at one moment.
type Picture struct {
	Nodes  []Node
	Ranges []Range
}

// Plan returns the steps for a picture.
func Plan(p Picture, o Options) []Step {
	pl := New(o)
	for _, n := range p.Nodes {
		pl.SetNode(n)
	}
	for _, r := range p.Ranges {
		pl.SetRange(r)
	}
	return pl.Steps()
}

// Counts says how many ranges there are in each state.
type Counts struct {
	Ranges  int
	Stuck   int // without a leader, or a majority of votes that are there
	Urgent  int // one more failure and it is stuck
	Few     int // other ranges with fewer votes than wanted
	Begun   int // a replica is on its way, or one too many
	Leaving int // a replica is on a node that is to have none
	Shared  int // replicas share a rack or zone, and need not
	Pending int // a step is being done
}
