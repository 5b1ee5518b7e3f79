package bplus

import (
	"slices"
	"sort"
	"sync"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// A recorder gets the rare events: changes of structure, and obstacles that a
// change of one line meets on its way. The common case, a line written, and every
// search pass no recorder: a viewer of these repeats the walk (Look) and compares.
// A check for a recorder costs one load, which hits the cache: BenchmarkRecorder.

// Step is a kind of event in a tree.
type Step string

const (
	StepStart    Step = "start"    // the tree as it is when recording begins
	StepSearch   Step = "search"   // a search has come to a node
	StepWrite    Step = "write"    // a line was written
	StepTouch    Step = "touch"    // a leaf is ready to be changed in this epoch
	StepCarry    Step = "carry"    // a full line has carried entries to others
	StepPack     Step = "pack"     // a leaf was packed anew
	StepFill     Step = "fill"     // a new leaf is filled that nobody can see
	StepSplit    Step = "split"    // a leaf was split: the side link leads to the new one, no parent knows of it
	StepParent   Step = "parent"   // upper nodes were replaced by others
	StepSeal     Step = "seal"     // a leaf can be read, but not changed
	StepAbsorb   Step = "absorb"   // a leaf has taken over its neighbour's entries
	StepDead     Step = "dead"     // a leaf is no longer part of the tree
	StepRetry    Step = "retry"    // a change begins anew
	StepPlaces   Step = "places"   // the leaves of some operations of a batch are known
	StepRewrite  Step = "rewrite"  // a leaf was written anew with all that a batch has for it
	StepPiece    Step = "piece"    // operations of a batch are done
	StepTell     Step = "tell"     // a batch tells parents of its new leaves
	StepSort     Step = "sort"     // a batch was sorted
	StepPromise  Step = "promise"  // memory for a batch was promised
	StepFinished Step = "finished" // an operation is done
)

// Event is a step of a recording.
type Event struct {
	Step  Step
	Key   uint64
	At    []NodeID   // nodes that it is about
	Nodes []Recorded // nodes that have changed since the event before
	Gone  []NodeID   // nodes that are no longer part of the tree
	Root  NodeID
}

// NodeID tells nodes apart: leaves and upper nodes are numbered each for
// themselves, and numbers are used again.
type NodeID struct {
	Upper  bool
	Number uint32
}

// Recorded is a node as it was.
type Recorded struct {
	NodeID
	Level      int // 0 is the leaves
	Used, Room int
	Low, High  uint64 // keys of a leaf are above Low and up to High
	First      bool   // it has no Low
	Next       uint32 // leaf that its side link leads to; 1<<32 - 1 for none
	Children   []uint32
	Lines      []byte // entries in each line of a leaf
	State      layout.State
	Told       bool // some upper node knows of it
}

// Recorder keeps the steps of a tree, as many as it has room for.
type Recorder struct {
	mu      sync.Mutex
	most    int
	whole   bool
	events  []Event
	dropped int
	known   map[NodeID]Recorded
}

// NewRecorder returns a recorder of at most most events. With whole, each event
// has all nodes of the tree that have changed, which takes a walk over all of
// it: for small trees. Without it, an event has the nodes it is about.
func NewRecorder(most int, whole bool) *Recorder {
	return &Recorder{most: most, whole: whole, known: map[NodeID]Recorded{}}
}

// Events returns the recorded events, and the number of those that there was no room
// for.
func (r *Recorder) Events() (events []Event, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events), r.dropped
}

// recording records steps of a tree. It is a function that Record alone names, so that
// the linker leaves the code out of a program that records nothing.
type recording[C Code] func(s Step, key C, at ...NodeID)

// Scratch is a tree to try changes with, without the type of its codes.
type Scratch interface {
	Record(r *Recorder)
	Note(s Step, key uint64)
	NoteSearch(key uint64)
	Set(key uint64) error
	Apply(keys []uint64) error // sets keys, which are in order
	Close()
}

// Record makes a recorder get the tree's steps from now on; nil ends that.
func (t *Tree[C]) Record(r *Recorder) {
	if r == nil {
		t.recorder.Store(nil)
		return
	}
	record := recording[C](func(s Step, key C, at ...NodeID) { t.record(r, s, key, at...) })
	t.recorder.Store(&record)
}

// Note records a step of the tree's user.
func (t *Tree[C]) Note(s Step, key C) { t.note(s, key, nothing, nothing) }

// NoteSearch records the way of a key, node by node.
func (t *Tree[C]) NoteSearch(key C) {
	record := t.recorder.Load()
	if record == nil {
		return
	}
	k := t.lookNow()
	at := 0
	for level := range k.height() {
		y := k.refs[level][at]
		(*record)(StepSearch, key, NodeID{true, y})
		i := min(below(t.upper(y).seps()[:], key), childrenOf(t.upper(y))-1)
		at = k.first[level][at] + i
	}
	x := k.refs[k.height()][at]
	(*record)(StepSearch, key, NodeID{Number: x})
	for hops := 0; t.leaf(x).high() < key && t.leaf(x).info().next != nothing && hops < mostHops; hops++ {
		x = t.leaf(x).info().next
		(*record)(StepSearch, key, NodeID{Number: x})
	}
}

// note records a step of one or two leaves, if there is a recorder.
func (t *Tree[C]) note(s Step, key C, a, b uint32) {
	if record := t.recorder.Load(); record != nil {
		(*record)(s, key, NodeID{Number: a}, NodeID{Number: b})
	}
}

// noteUppers records that upper nodes were replaced.
func (t *Tree[C]) noteUppers(fresh []uint32) {
	record := t.recorder.Load()
	if record == nil {
		return
	}
	var at []NodeID
	for _, y := range fresh {
		at = append(at, NodeID{true, y})
	}
	(*record)(StepParent, 0, at...)
}

// record keeps an event.
func (t *Tree[C]) record(r *Recorder, s Step, key C, at ...NodeID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) >= r.most {
		r.dropped++
		return
	}
	at = slices.DeleteFunc(at, func(id NodeID) bool { return id.Number == nothing })
	root := t.root.Load()
	e := Event{Step: s, Key: uint64(key), At: at, Root: NodeID{root>>32 > 0, uint32(root)}}
	if r.whole {
		t.changed(r, &e)
	} else {
		for _, id := range at {
			e.Nodes = append(e.Nodes, t.recorded(id, 0))
		}
	}
	r.events = append(r.events, e)
}

// changed sets the nodes of an event to all that have changed since the one
// before.
func (t *Tree[C]) changed(r *Recorder, e *Event) {
	now := map[NodeID]Recorded{}
	for _, id := range e.At { // a leaf that no way leads to yet
		now[id] = t.recorded(id, 0)
	}
	k := t.lookNow()
	for level, refs := range k.refs {
		for _, x := range refs {
			id := NodeID{level < k.height(), x}
			n := t.recorded(id, k.height()-level)
			n.Told = true
			now[id] = n
		}
	}
	for x, hops := t.first, 0; x != nothing && hops < mostHops; x, hops = t.leaf(x).info().next, hops+1 {
		if id := (NodeID{Number: x}); !now[id].Told {
			now[id] = t.recorded(id, 0)
		}
	}
	for id, n := range now {
		if was, ok := r.known[id]; !ok || !same(was, n) {
			e.Nodes = append(e.Nodes, n)
		}
	}
	for id := range r.known {
		if _, ok := now[id]; !ok {
			e.Gone = append(e.Gone, id)
		}
	}
	sort.Slice(e.Nodes, func(i, j int) bool { return e.Nodes[i].NodeID.compare(e.Nodes[j].NodeID) < 0 })
	sort.Slice(e.Gone, func(i, j int) bool { return e.Gone[i].compare(e.Gone[j]) < 0 })
	r.known = now
}

func (a NodeID) compare(b NodeID) int {
	if a.Upper != b.Upper {
		if a.Upper {
			return -1
		}
		return 1
	}
	return int(a.Number) - int(b.Number)
}

func same(a, b Recorded) bool {
	return a.Level == b.Level && a.Used == b.Used && a.Low == b.Low && a.High == b.High && a.Next == b.Next && a.State == b.State &&
		a.Told == b.Told && slices.Equal(a.Children, b.Children) && slices.Equal(a.Lines, b.Lines)
}

// recorded returns a node as it is.
func (t *Tree[C]) recorded(id NodeID, level int) Recorded {
	n := Recorded{NodeID: id, Level: level, Next: nothing}
	if id.Upper {
		u := t.upper(id.Number)
		n.Used, n.Room = childrenOf(u), fanout
		n.Children = slices.Clone(u.refs()[:n.Used])
		n.High = uint64(u.seps()[n.Used-1])
		return n
	}
	l := t.leaf(id.Number)
	word, in := l.loadWord(), l.info()
	n.Used, n.Room = min(simd.Entries(word), capacity[C]()), capacity[C]()
	n.Low, n.High, n.First, n.Next, n.State = in.low, uint64(l.high()), in.first == 1, in.next, stateOf(word)
	for j := range lines {
		n.Lines = append(n.Lines, byte(l.entries(j)))
	}
	return n
}
