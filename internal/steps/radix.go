package steps

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
)

// Limits of a recording of a radix tree.
const (
	RadixKeys    = 600  // of the index: every second one is in the tree, the others are to come
	MostRadix    = 300  // keys that are changed
	longestRadix = 1000 // bytes of a key; longer ones are left out
)

// RadixStep is what happens to a radix tree.
type RadixStep string

const (
	RadixStart    RadixStep = "start"    // the tree as it is when recording begins
	RadixWay      RadixStep = "way"      // the nodes that the bytes of a key lead through
	RadixLink     RadixStep = "link"     // a node has one more link
	RadixGrow     RadixStep = "grow"     // a node was full, and a larger one is in its place
	RadixBranch   RadixStep = "branch"   // a path was split: a new node where the key leaves it
	RadixValue    RadixStep = "value"    // the value of a leaf was set
	RadixLeaf     RadixStep = "leaf"     // a new leaf is in the place of one that a snapshot has
	RadixCopy     RadixStep = "copy"     // copies are in the place of nodes that a snapshot has
	RadixUnlink   RadixStep = "unlink"   // a node has one link less
	RadixShrink   RadixStep = "shrink"   // a node had few links left, and a smaller one is in its place
	RadixCollapse RadixStep = "collapse" // a node had one link left, and what it led to is in its place
	RadixSnapshot RadixStep = "snapshot" // a snapshot was taken
	RadixPromise  RadixStep = "promise"  // memory for a batch was promised
	RadixTogether RadixStep = "together" // nodes of some operations of a batch were fetched
	RadixFinished RadixStep = "finished" // all is done
)

// Radix is a recording of changes of a radix tree.
type Radix struct {
	Events  []RadixEvent
	Dropped int // events that there was no room for
	Note    string
}

// RadixEvent is a step of a recording.
type RadixEvent struct {
	Step  RadixStep
	Key   string
	At    []uint32     // nodes that it is about
	Byte  int          // of the link that it is about: -1 for the key that ends there, -2 for none
	Was   string       // type of the node that was there before
	Nodes []radix.Seen // inner nodes that have changed since the event before
	Gone  []uint32     // inner nodes that are no longer part of the tree
	Root  uint32
}

// noByte is for an event that is about no link.
const noByte = -2

// Digits returns the keys that a radix tree has for codes of a width.
func Digits(bits int, codes []uint64) (keys []string) {
	for _, c := range codes {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], c<<(64-bits))
		keys = append(keys, string(b[:bits/8]))
	}
	return keys
}

// radixScratch is a tree of every second key of some, and the recorder of what
// happens to it.
type radixScratch struct {
	*radix.Tree
	in, out []string // keys of the tree, and others
	rec     Radix
	nodes   map[uint32]radix.Seen // as they were at the last event
	root    uint32
}

// newRadixScratch makes a tree of keys, which are in order and different.
func newRadixScratch(keys []string) (*radixScratch, error) {
	s := &radixScratch{Tree: radix.New(0), nodes: map[uint32]radix.Seen{}}
	keys = slices.DeleteFunc(slices.Clone(keys[:min(len(keys), RadixKeys)]), func(k string) bool { return len(k) > longestRadix })
	slices.Sort(keys) // those of a damaged file are in any order
	keys = slices.Compact(keys)
	for i, k := range keys {
		if i%2 == 1 {
			s.out = append(s.out, k)
			continue
		}
		s.in = append(s.in, k)
		if _, _, err := s.Set(k, uint64(i)); err != nil {
			s.Close()
			return nil, err
		}
	}
	s.changed(RadixEvent{Step: RadixStart, Byte: noByte})
	return s, nil
}

// finish ends a recording.
func (s *radixScratch) finish(format string, args ...any) Radix {
	s.changed(RadixEvent{Step: RadixFinished, Byte: noByte})
	s.rec.Note = fmt.Sprintf(format, args...)
	return s.rec
}

// near returns at most n keys from one on upwards, and then those below it.
func near(keys []string, from string, n int) []string {
	at, _ := slices.BinarySearch(keys, from)
	up := keys[at:min(len(keys), at+n)]
	return slices.Concat(up, keys[max(0, at-(n-len(up))):at])
}

// RadixInsert records the inserts of at most n of the given keys, from one on upwards,
// into a radix tree of the others. The keys are in order.
func RadixInsert(keys []string, from string, n int) (Radix, error) {
	s, err := newRadixScratch(keys)
	if err != nil {
		return Radix{}, err
	}
	defer s.Close()
	todo := near(s.out, from, min(n, MostRadix))
	for _, k := range todo {
		s.way(k)
		if _, _, err := s.Set(k, 1); err != nil {
			return Radix{}, err
		}
		s.did(k)
	}
	return s.finish("%d keys of the index, one by one, into a radix tree of %d others.", len(todo), len(s.in)), nil
}

// RadixDelete records deletes, from a key on upwards.
func RadixDelete(keys []string, from string, n int) (Radix, error) {
	s, err := newRadixScratch(keys)
	if err != nil {
		return Radix{}, err
	}
	defer s.Close()
	todo := near(s.in, from, min(n, MostRadix))
	for _, k := range todo {
		s.way(k)
		if _, _, err := s.Delete(k); err != nil {
			return Radix{}, err
		}
		s.did(k)
	}
	return s.finish("%d keys, one by one, from a radix tree of %d keys of the index.", len(todo), len(s.in)), nil
}

// RadixBeside records values that are set beside a snapshot, which keeps what it has.
func RadixBeside(keys []string, from string, n int) (Radix, error) {
	s, err := newRadixScratch(keys)
	if err != nil {
		return Radix{}, err
	}
	defer s.Close()
	snap, err := s.Snapshot()
	if err != nil {
		return Radix{}, err
	}
	defer snap.Close()
	s.changed(RadixEvent{Step: RadixSnapshot, Byte: noByte})
	todo := near(s.in, from, min(n, MostRadix))
	for _, k := range todo {
		s.way(k)
		if _, _, err := s.Set(k, 2); err != nil {
			return Radix{}, err
		}
		s.did(k)
	}
	return s.finish("Values of %d keys, set one by one in a radix tree of %d keys of the index while a snapshot is open.", len(todo), len(s.in)), nil
}

// RadixBatch records a batch of n operations that a seed chooses: inserts, and a
// delete for every four. The batch also looks each of these keys up: by what is called
// for that the steps are seen, and nothing in the tree knows of it.
func RadixBatch(keys []string, n int, seed uint64) (Radix, error) {
	s, err := newRadixScratch(keys)
	if err != nil {
		return Radix{}, err
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(seed, 1))
	fresh, old := slices.Clone(s.out), slices.Clone(s.in)
	for _, k := range [][]string{fresh, old} {
		rng.Shuffle(len(k), func(i, j int) { k[i], k[j] = k[j], k[i] })
	}
	var o radix.Ops
	var changed []string
	add := func(key string, first, second op.Kind) {
		o.Kinds, o.Keys, changed = append(o.Kinds, first, second), append(o.Keys, key, key), append(changed, key)
	}
	for i := range min(n, MostRadix, len(fresh)+len(old)) {
		if i%5 == 4 && len(old) > 0 || len(fresh) == 0 {
			add(old[0], op.Get, op.Delete)
			old = old[1:]
		} else {
			add(fresh[0], op.Set, op.Get)
			fresh = fresh[1:]
		}
	}
	o.Vals = make([]uint64, len(o.Keys))
	o.Seen = func(i int, _ uint64) { // when both operations on the key are done, as one change
		at := i / 2
		if at == 0 {
			s.note(RadixEvent{Step: RadixPromise, Byte: noByte})
		}
		if at%radix.SeenTogether == 0 {
			s.note(RadixEvent{Step: RadixTogether, Key: changed[at], At: s.ways(changed[at:min(at+radix.SeenTogether, len(changed))]), Byte: noByte})
		}
		s.did(changed[at])
	}
	if err := s.Apply(&o); err != nil {
		return Radix{}, err
	}
	return s.finish("A batch of %d inserts and deletes, each with a lookup of its key, on a radix tree of %d keys of the index.", len(changed), len(s.in)), nil
}
