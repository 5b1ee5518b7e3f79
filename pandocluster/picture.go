package pandocluster

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Picture is what the leader of the map knows of the cluster.
type Picture struct {
	Nodes  []NodeInfo  // by ID
	Ranges []RangeInfo // by Lo; the map itself, which is range 0, first
}

// NodeInfo is a node.
type NodeInfo struct {
	ID, Name, Addr string
	Silent         time.Duration // since the leader of the map has heard of it
	Draining       bool          // is to hold nothing
	Gone           bool          // was forgotten, and never comes back
}

// RangeInfo is a range of keys: those from Lo on, below Hi. No Hi is no end.
type RangeInfo struct {
	ID          uint64
	Lo, Hi      string
	Replicas    []ReplicaInfo
	Leader      string // ID of a node
	Keys, Bytes int64  // about
	Age         time.Duration
}

type plainRange RangeInfo

// rangeAsJSON is a RangeInfo as nodes send it: keys are bytes there.
type rangeAsJSON struct {
	plainRange
	Lo, Hi []byte
}

// MarshalJSON implements json.Marshaler. Keys are bytes, in base64.
func (r RangeInfo) MarshalJSON() ([]byte, error) {
	return json.Marshal(rangeAsJSON{plainRange(r), []byte(r.Lo), []byte(r.Hi)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *RangeInfo) UnmarshalJSON(b []byte) error {
	var j rangeAsJSON
	err := json.Unmarshal(b, &j)
	*r = RangeInfo(j.plainRange)
	r.Lo, r.Hi = string(j.Lo), string(j.Hi)
	return err
}

// ReplicaInfo is a replica of a range.
type ReplicaInfo struct {
	Node  string
	Voter bool // false: it has no vote yet
}

// StepKind is what a Step does.
type StepKind uint8

const (
	AddReplica    StepKind = iota + 1 // Node gets a replica without a vote
	Promote                           // Node's replica gets a vote, when it has caught up
	RemoveReplica                     // Node's replica leaves; a leader hands over first
	MoveLead                          // Node leads
	Split                             // the keys from Key on become a range of their own; without a Key, the upper half of Range
	Drain                             // Node is to hold nothing
	Undrain                           // it may again
	Forget                            // Node never comes back
)

// Step changes the cluster.
type Step struct {
	Kind  StepKind
	Range uint64
	Node  string
	Key   string
}

// stepAsJSON is a Step as nodes send it: a key is any bytes, and a string of JSON is not.
type stepAsJSON struct {
	Kind  StepKind
	Range uint64
	Node  string
	Key   []byte
}

// MarshalJSON implements json.Marshaler. Keys are bytes, in base64.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(stepAsJSON{s.Kind, s.Range, s.Node, []byte(s.Key)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Step) UnmarshalJSON(b []byte) error {
	var j stepAsJSON
	err := json.Unmarshal(b, &j)
	*s = Step{j.Kind, j.Range, j.Node, string(j.Key)}
	return err
}

// Peer is where a node is. ID is "" for one of which nothing but the address is known.
type Peer struct{ ID, Addr string }

// Transport carries requests to other nodes. Its methods may be called from any goroutine at any time.
type Transport interface {
	// Call sends a request to a node, and behind it what body has if it is not nil, and returns the answer of Serve there.
	// Requests may overtake each other. An error says that nobody knows whether it has arrived. It returns soon when ctx ends,
	// and with an error when nothing has gone to the peer or come from there for some time: a snapshot has no other bound.
	Call(ctx context.Context, to Peer, request []byte, body io.Reader) (answer []byte, err error)
}
