package steps

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/radix"
)

// A change of a radix tree is told from the tree before and after it: nothing in it
// records. A node that another took the place of is known by the common prefix of
// the keys below, which no two nodes share.

// note keeps an event in which no node has changed.
func (s *radixScratch) note(e RadixEvent) {
	if e.Root = s.root; len(s.rec.Events) >= MostEvents {
		s.rec.Dropped++
		return
	}
	s.rec.Events = append(s.rec.Events, e)
}

// look returns the inner nodes of the tree as it is now.
func (s *radixScratch) look() map[uint32]radix.Seen {
	nodes := map[uint32]radix.Seen{}
	s.root = s.See(func(n radix.Seen) { nodes[n.ID] = n })
	return nodes
}

// changed keeps an event with all nodes that have changed since the one before.
func (s *radixScratch) changed(e RadixEvent) {
	s.moveTo(&e, s.look())
	s.note(e)
}

// moveTo gives an event the nodes that have changed.
func (s *radixScratch) moveTo(e *RadixEvent, now map[uint32]radix.Seen) {
	for id, n := range now {
		if was, ok := s.nodes[id]; !ok || !reflect.DeepEqual(was, n) {
			e.Nodes = append(e.Nodes, n)
		}
	}
	for id := range s.nodes {
		if _, ok := now[id]; !ok {
			e.Gone = append(e.Gone, id)
		}
	}
	slices.SortFunc(e.Nodes, func(a, b radix.Seen) int { return strings.Compare(a.Prefix, b.Prefix) })
	slices.Sort(e.Gone)
	s.nodes = now
}

// ways returns the nodes that some keys lead through.
func (s *radixScratch) ways(keys []string) (ids []uint32) {
	for _, key := range keys {
		for at, ok := s.nodes[s.root]; ok; {
			if !slices.Contains(ids, at.ID) {
				ids = append(ids, at.ID)
			}
			b := byteOf(key, len(at.Prefix))
			i := slices.IndexFunc(at.Links, func(l radix.SeenLink) bool { return l.Byte == b })
			if i < 0 {
				break
			}
			at, ok = s.nodes[at.Links[i].To]
		}
	}
	return ids
}

// byteOf returns the byte of a key that a link is chosen by: -1 if the key ends there.
func byteOf(key string, at int) int {
	switch {
	case at < len(key):
		return int(key[at])
	case at == len(key):
		return -1
	}
	return noByte
}

// way keeps the way of a key, and the byte that decides in its last node.
func (s *radixScratch) way(key string) {
	e := RadixEvent{Step: RadixWay, Key: key, At: s.ways([]string{key}), Byte: noByte}
	if n := len(e.At); n > 0 {
		e.Byte = byteOf(key, len(s.nodes[e.At[n-1]].Prefix))
	}
	s.note(e)
}

// did keeps what the change of a key has done.
func (s *radixScratch) did(key string) {
	before, root := s.nodes, s.root
	now := s.look()
	var copies []uint32
	e := RadixEvent{Key: key, Byte: noByte}
	for _, n := range sortedNodes(now) {
		was, same := before[n.ID]
		if !same {
			was, same = byPrefix(before, n.Prefix)
		}
		switch {
		case !same: // a path was split
			e.Step, e.At, e.Byte = RadixBranch, []uint32{n.ID}, byteOf(key, len(n.Prefix))
		case n.Room > was.Room:
			e.Step, e.At, e.Byte, e.Was = RadixGrow, []uint32{n.ID}, byteOf(key, len(n.Prefix)), was.Type
		case n.Room < was.Room:
			e.Step, e.At, e.Was = RadixShrink, []uint32{n.ID}, was.Type
		case n.ID != was.ID:
			copies = append(copies, n.ID)
		}
		if step := linkChange(was, n, byteOf(key, len(n.Prefix))); same && step != "" && e.Step == "" {
			e.Step, e.At, e.Byte = step, []uint32{n.ID}, byteOf(key, len(n.Prefix))
		}
	}
	for id, n := range before {
		if _, replaced := byPrefix(now, n.Prefix); !replaced {
			e.Step, e.At, e.Was, e.Byte = RadixCollapse, nil, n.Type, noByte
			if above, ok := parentOf(before, id); ok {
				heir, _ := byPrefix(now, above.Prefix)
				e.At, e.Byte = []uint32{heir.ID}, byteOf(key, len(heir.Prefix))
			}
		}
	}
	if e.Step == "" {
		e.Step = rootChange(root, s.root, len(now))
	}
	if len(copies) > 0 {
		copied := RadixEvent{Step: RadixCopy, Key: key, At: copies, Byte: noByte}
		s.moveTo(&copied, now)
		s.note(copied)
	}
	s.moveTo(&e, now)
	s.note(e)
}

// rootChange returns what has happened where no node has changed: a tree with one key
// has no node.
func rootChange(was, now uint32, nodes int) RadixStep {
	switch {
	case was == 0:
		return RadixLink
	case now == 0:
		return RadixUnlink
	case was != now && nodes == 0:
		return RadixLeaf
	}
	return RadixValue
}

// linkChange returns what has become of the link of a byte, "" for nothing.
func linkChange(was, now radix.Seen, b int) RadixStep {
	link := func(n radix.Seen) (radix.SeenLink, bool) {
		i := slices.IndexFunc(n.Links, func(l radix.SeenLink) bool { return l.Byte == b })
		if i < 0 {
			return radix.SeenLink{}, false
		}
		return n.Links[i], true
	}
	from, had := link(was)
	to, has := link(now)
	switch {
	case has && !had:
		return RadixLink
	case had && !has:
		return RadixUnlink
	case had && from.Leaf && to.Leaf && from.To != to.To:
		return RadixLeaf
	}
	return ""
}

// sortedNodes returns nodes in the order of their keys, a parent before its children.
func sortedNodes(nodes map[uint32]radix.Seen) (out []radix.Seen) {
	for _, n := range nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b radix.Seen) int { return strings.Compare(a.Prefix, b.Prefix) })
	return out
}

func byPrefix(nodes map[uint32]radix.Seen, prefix string) (radix.Seen, bool) {
	for _, n := range nodes {
		if n.Prefix == prefix {
			return n, true
		}
	}
	return radix.Seen{}, false
}

// parentOf returns the node that has a link to another.
func parentOf(nodes map[uint32]radix.Seen, id uint32) (radix.Seen, bool) {
	for _, n := range nodes {
		if slices.ContainsFunc(n.Links, func(l radix.SeenLink) bool { return l.To == id && !l.Leaf }) {
			return n, true
		}
	}
	return radix.Seen{}, false
}
