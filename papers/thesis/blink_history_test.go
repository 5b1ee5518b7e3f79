package thesis

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pando-index/pando/internal/simd"
)

// blinkDone is an operation of a batch with what came of it.
type blinkDone[C simd.Code] struct {
	op       BlinkOp
	set, was C
	outcome  BlinkOutcome
	tile     int // operations of a tile are in order
}

// blinkState is whether a key is there, and with which value.
type blinkState[C simd.Code] struct {
	there bool
	val   C
}

// explains reports whether operations on one key, in some order that keeps that
// of each tile, lead from one state to another with these outcomes.
func explains[C simd.Code](done []blinkDone[C], from, to blinkState[C]) bool {
	if len(done) == 0 {
		return from == to
	}
	tried := map[int]bool{}
	for i, d := range done {
		if tried[d.tile] {
			continue // an earlier one of its tile is due
		}
		tried[d.tile] = true
		if (d.outcome == BlinkFound) != from.there || from.there && d.was != from.val {
			continue
		}
		next := from
		switch {
		case d.outcome == BlinkNoRoom:
		case d.op == BlinkSet:
			next = blinkState[C]{true, d.set}
		case d.op == BlinkDelete:
			next = blinkState[C]{}
		}
		rest := slices.Delete(slices.Clone(done), i, i+1)
		if explains(rest, next, to) {
			return true
		}
		if next == from {
			return false // it could have been the first as well as any other
		}
	}
	return false
}

// explainAll checks a whole batch: before and after are all entries.
func explainAll[C simd.Code](before, after map[C]C, ops []BlinkOp, keys, set, was []C, outcomes []BlinkOutcome, tile int) error {
	byKey := map[C][]blinkDone[C]{}
	for i, k := range keys {
		byKey[k] = append(byKey[k], blinkDone[C]{ops[i], set[i], was[i], outcomes[i], i / tile})
	}
	for k := range maps.Keys(before) {
		byKey[k] = byKey[k][:len(byKey[k]):len(byKey[k])]
	}
	for k := range after {
		if _, ok := byKey[k]; !ok {
			return fmt.Errorf("key %d came from nowhere", k)
		}
	}
	for k, done := range byKey {
		from, to := stateOf(before, k), stateOf(after, k)
		if !explains(done, from, to) {
			return fmt.Errorf("key %d: from %v to %v by %+v", k, from, to, done)
		}
	}
	return nil
}

func stateOf[C simd.Code](m map[C]C, k C) blinkState[C] {
	v, ok := m[k]
	return blinkState[C]{ok, v}
}
