package layout

import "github.com/pando-index/pando/internal/order"

// Shown is a layout whose nodes can be looked at one by one, for a viewer. No
// search needs it.
type Shown interface {
	// Look returns the layout as it is now. Of one that changes, later changes may
	// show in the nodes of a look, but not in how they are numbered.
	Look() Look
}

// Look is a layout, level by level. Levels are numbered from the root on, and the
// nodes of each in key order. The last level holds the entries; an upper node
// says which span of last-level nodes it stands over, so that a picture needs no
// other measure.
//
// Even in a damaged file, no method reads outside of it.
type Look interface {
	// Levels describes the levels, of which there is at least one.
	Levels() []Level
	// Node returns node i of a level without its keys, at the cost of a line or
	// two of memory.
	Node(level, i int) Node
	// Over returns the node of a level that stands over node i of the last level.
	Over(level, i int) int
	// Inside returns the contents of a node.
	Inside(level, i int) Inside
	// Way returns the nodes that a search for a key reads, the root first.
	Way(key order.Probe) []Visit
}

// Located is a Look at a layout that a device can hold: it tells which node a
// byte of the image belongs to. The last return value is false where it belongs
// to none.
type Located interface {
	Locate(offset int) (level, node int, ok bool)
}

// LocatedParts is Located for a layout of strings, whose image has parts.
type LocatedParts interface {
	LocatePart(part, offset int) (level, node int, ok bool)
}

// Typed is a Look at a layout whose nodes are of several types.
type Typed interface {
	Types() []Type
}

// Type is all nodes of a type.
type Type struct {
	Name       string
	Nodes      int
	Bytes      int64 // of all of them
	Used, Room int   // links in them, and links that fit
}

// Level is the nodes at one distance from the root.
type Level struct {
	Name  string // of its nodes: "inner", "leaves", "pages"
	Nodes int
	Bytes int // of a node; 0 where they differ
	Room  int // keys that a node has room for
}

// Node is a node without its keys.
type Node struct {
	First, End int // nodes of the last level that it stands over: [First, End)
	Child      int // its first child on the next level,
	Children   int // and how many it has; 0 on the last level
	Used, Room int // keys in it, and keys that fit
	Entry      int // number in key order of the first entry in it or below; -1 where that is not known
	Entries    int // entries in it or below; -1 where that is not known
	Name       string
	State      State
	Link       int // node of the same level that its side link leads to; -1 where it has none
	Hops       int // nodes on the way of the side link that no parent knows of yet
	Version    uint64
}

// State says whether others may use a node at this moment.
type State uint8

const (
	Free   State = iota
	Locked       // being changed at this moment
	Sealed       // to be read, but not changed
	Dead         // no longer part of the tree
)

func (s State) String() string { return [...]string{"", "locked", "sealed", "dead"}[s] }

// Inside is the contents of a node.
type Inside struct {
	Keys     []order.Probe // separators, or the keys of entries
	Entries  bool          // keys are those of entries
	Partials []uint64      // of strings that are compared by some of their bits: those of each key, or nil
	Bits     []int         // which bits these are, counted from the first of the string
	Lines    []int         // keys in each cache line of the node, where lines are not all full
	PerLine  int           // keys that fit a line
	Notes    []string      // further remarks, a sentence each
}

// Visit is a node that a search reads, and the result there.
type Visit struct {
	Level, Node int
	Slot        int    // the child, or the place of the entry, that the key belongs to
	Found       bool   // the key is at that place
	Note        string // a remark on it
}

// Pulse is the activity in a layout that changes: counts as they are, and a
// sample of nodes.
type Pulse struct {
	Entries, Bytes, Kept int64
	Leaves, Uppers       int // nodes in use, those that wait to be reused among them
	Retired              int // nodes that wait until nobody can be reading them
	Pending              int // leaves that no parent knows of yet
	Dirty                int // leaves whose entries the next rank has to count
	Height               int
	Epoch, Generation    uint64
	Sample               []Beat
}

// Beat is a node of a Pulse. Its version grows with every change, so that two
// pulses tell how many changes there were between them, at no cost to writers.
type Beat struct {
	ID      uint32 // of the node, whatever its place
	Version uint64
	Used    int
	State   State
}

// Living is a layout that changes and can tell how.
type Living interface {
	// Pulse samples at most sample nodes, evenly over the keys.
	Pulse(sample int) Pulse
}

// Stack returns the look of a layout whose last level is found through a tree of
// another layout: the entries of top stand for the nodes of the level below.
// first returns the first node that entry i stands for; below looks at that level
// alone, as its level 0.
func Stack(top Look, first func(entry int) int, below Look) Look {
	return &stack{top, first, below}
}

type stack struct {
	top   Look
	first func(entry int) int
	below Look
}

func (s *stack) Levels() []Level {
	levels := s.top.Levels()
	levels[len(levels)-1].Name = "over " + s.below.Levels()[0].Name // what are leaves there lead on here
	return append(levels, s.below.Levels()...)
}

func (s *stack) height() int { return len(s.top.Levels()) }

func (s *stack) Node(level, i int) Node {
	if level == s.height() {
		return s.below.Node(0, i)
	}
	n := s.top.Node(level, i)
	nodes := s.below.Levels()[0].Nodes
	n.First = min(s.first(n.Entry), nodes)
	n.End = max(n.First, min(s.first(n.Entry+n.Entries), nodes))
	if n.Children == 0 {
		n.Child, n.Children = n.First, n.End-n.First
	}
	n.Entry, n.Entries = -1, -1
	if first, last := n.First, n.End-1; last >= first {
		a, b := s.below.Node(0, first), s.below.Node(0, last)
		n.Entry, n.Entries = a.Entry, b.Entry+b.Entries-a.Entry
		if a.Entry < 0 {
			n.Entries = -1
		}
	}
	return n
}

func (s *stack) Over(level, i int) int {
	levels := s.top.Levels()
	if level == len(levels) {
		return i
	}
	lo, hi := 0, levels[level].Nodes-1
	for lo < hi { // the last node that begins at i or before, and is not empty
		mid := int(uint(lo+hi+1) / 2)
		if s.Node(level, mid).First <= i {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

func (s *stack) Inside(level, i int) Inside {
	if level == s.height() {
		return s.below.Inside(0, i)
	}
	in := s.top.Inside(level, i)
	in.Entries = false
	return in
}

func (s *stack) Way(key order.Probe) []Visit {
	way := s.top.Way(key)
	last := &way[len(way)-1]
	last.Slot = max(0, min(last.Slot, s.Node(last.Level, last.Node).Children-1)) // a key above all belongs to the last
	for _, v := range s.below.Way(key) {
		v.Level += s.height()
		way = append(way, v)
	}
	for i := range way[:len(way)-1] {
		way[i].Found = false
	}
	return way
}

func (s *stack) Locate(offset int) (level, node int, ok bool) {
	if l, can := s.below.(Located); can {
		if _, node, ok := l.Locate(offset); ok {
			return s.height(), node, true
		}
	}
	if l, can := s.top.(Located); can {
		return l.Locate(offset)
	}
	return 0, 0, false
}
