package linearizable

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
)

// most is the number of keys that a history is about. Others around them come
// and go, so that their leaves are split and merged.
const most = 8

// state is the values of the keys, 0 for none, and how far Close is.
type state struct {
	vals            [most]uint32
	closing, closed bool
}

// input is an operation: the key that it is about, or none for all, and the value
// to be set; 0 deletes.
type input struct {
	name string
	keys []int
	vals []uint32
	ops  []pando.Op // of one key in one batch
	part bool       // it is part of an operation on several keys that is not one change
}

// output is what an operation returned: keys that were found, in the order in
// which it did, and their values; 0 for none.
type output struct {
	keys   []int
	vals   []uint32
	closed bool // it said that the tree is closed
}

// describe is for messages.
func describe(in, out any) string { return fmt.Sprintf("%v → %v", in, out) }

// step does an operation on a state, and reports whether it returns what it
// did.
func step(at, in, out any) (bool, any) {
	s, i, o := at.(state), in.(input), out.(output)
	switch {
	case i.name == "closing":
		s.closing = true
		return true, s
	case i.name == "closed":
		s.closed = true
		return s.closing, s
	case o.closed: // it may say so while Close is under way
		return s.closing, s
	case s.closed:
		return false, s
	}
	ok := s.do(i, o)
	return ok, s
}

// steps is step for trees that are closed: it returns the states that may follow.
// An operation on several keys that says that the tree is closed may have changed
// some of them.
func steps(at, in, out any) []any {
	s, i, o := at.(state), in.(input), out.(output)
	if i.part && o.closed {
		changed := s
		if !s.closed {
			changed.do(i, output{})
		}
		return []any{s, changed}
	}
	if ok, next := step(at, in, out); ok {
		return []any{next}
	}
	return nil
}

// do does an operation on a tree that is open.
func (s *state) do(i input, o output) bool {
	k := 0
	if len(i.keys) > 0 {
		k = i.keys[0]
	}
	switch i.name {
	case "get":
		return s.vals[k] == o.vals[0]
	case "has":
		return (s.vals[k] != 0) == (o.vals[0] == 1)
	case "swap": // Set, Swap, Delete, Update and Apply on one key
		old := s.vals[k]
		s.vals[k] = i.vals[0]
		return o.vals == nil || old == o.vals[0]
	case "remove": // which says only whether the key was there
		had := s.vals[k] != 0
		s.vals[k] = 0
		return o.vals == nil || had == (o.vals[0] == 1)
	case "add":
		old := s.vals[k]
		s.vals[k] += i.vals[0]
		return o.vals != nil && old == o.vals[0] // it was asked what it makes of it
	case "change": // Transform, which leaves keys alone that are not there
		had := s.vals[k] != 0
		if had {
			s.vals[k] += i.vals[0]
		}
		return o.vals == nil || had == (o.vals[0] == 1)
	case "many":
		return s.many(k, i, o)
	case "whole":
		return [most]uint32(o.vals) == s.vals
	case "ceil":
		return s.is(s.up(k), o)
	case "floor":
		return s.is(s.down(k), o)
	case "pop":
		return s.pop(s.up(0), o)
	case "pop last":
		return s.pop(s.down(most-1), o)
	}
	panic(i.name)
}

// many does the operations of one batch on one key, which are one change.
func (s *state) many(k int, i input, o output) bool {
	ok := true
	for at, op := range i.ops {
		ok = ok && (o.vals == nil || s.vals[k] == o.vals[at])
		switch op {
		case pando.OpSet:
			s.vals[k] = i.vals[at]
		case pando.OpDelete:
			s.vals[k] = 0
		}
	}
	return ok
}

// up returns the first key from k on that is there, most if there is none.
func (s *state) up(k int) int {
	for k < most && s.vals[k] == 0 {
		k++
	}
	return k
}

// down returns the last key up to k that is there, -1 if there is none.
func (s *state) down(k int) int {
	for k >= 0 && s.vals[k] == 0 {
		k--
	}
	return k
}

func (s *state) pop(k int, o output) bool {
	ok := s.is(k, o)
	if k >= 0 && k < most {
		s.vals[k] = 0
	}
	return ok
}

// is reports whether an operation has returned key k, or none if that is out of
// range.
func (s *state) is(k int, o output) bool {
	if k < 0 || k >= most {
		return len(o.keys) == 0
	}
	return len(o.keys) == 1 && o.keys[0] == k && o.vals[0] == s.vals[k]
}

// byKey parts a history whose operations are about one key each, or about the
// tree.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	parts = make([][]porcupine.Operation, most)
	for _, op := range history {
		about := op.Input.(input).keys
		for k := range parts {
			if about == nil || about[0] == k {
				parts[k] = append(parts[k], op)
			}
		}
	}
	return parts
}

// closable is the model of a tree that is closed.
func closable() porcupine.Model {
	m := porcupine.NondeterministicModel{Init: func() []any { return []any{state{}} }, Step: steps, Partition: byKey, DescribeOperation: describe}
	return m.ToModel()
}

func model(part bool) porcupine.Model {
	m := porcupine.Model{Init: func() any { return state{} }, Step: step, DescribeOperation: describe}
	if part {
		m.Partition = byKey
	}
	return m
}
