package work

import (
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/contest/contesttest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

// A wrong rank or value ends the run.
func TestWrongTextAnswersAreFoundOut(t *testing.T) {
	s := contesttest.Session(t, 41)
	set := data.NewTexts(s, data.TextKinds[0], 100)
	l := NewTextLookups(s, set)
	l.Draw(1, 0)
	hits := len(l.Q)
	for i, at := range l.At {
		l.Vals[i], l.Found[i] = data.ValueOf(uint64(at)), true
	}
	l.Vals[len(l.Vals)-1]++
	if err := l.Check(len(l.Q), hits); err == nil || !strings.Contains(err.Error(), "wrong answer") {
		t.Errorf("a wrong value: error %v", err)
	}
	if err := l.Check(len(l.Q), hits); err == nil {
		t.Error("answers that were there before pass")
	}
	r := NewTextRanks(s, set)
	r.Draw(1, 0)
	if err := r.check(len(r.Q)); err == nil || !strings.Contains(err.Error(), "wrong rank") {
		t.Errorf("a wrong rank: error %v", err)
	}
}

// tired answers a number of batches, and then no more.
type tired struct{ batches int }

func (a *tired) GetPairs(keys, vals []uint64, found []bool) (hits int) {
	if a.batches--; a.batches < 0 {
		return len(keys)
	}
	for i, k := range keys {
		vals[i], found[i] = data.ValueOf(k), true
	}
	return len(keys)
}

// The answers of a system while it is warmed up do not count.
func TestWarmingUpLeavesNoAnswers(t *testing.T) {
	s := contesttest.Session(t, 37)
	s.Queries, s.WarmUp = contest.Mega, 0
	d, err := data.NewDataset[uint64](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBulk(s, d)
	b.Hits(0)
	for batches, right := range []bool{false, false, true} {
		sub := b.Subject("tired", &tired{batches}, nil)
		err := sub.Do(contest.Mega)
		if err == nil {
			err = sub.Check(contest.Mega)
		}
		if (err == nil) != right {
			t.Errorf("%d batches answered: error %v", batches, err)
		}
	}
}

// One wrong answer among many is detected, and nothing is left for the next
// system.
func TestBulkChecksEveryAnswer(t *testing.T) {
	s := contesttest.Session(t, 39)
	s.Queries = 300
	d, err := data.NewDataset[uint32](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBulk(s, d)
	b.Hits(0)
	answer := func() {
		for i, k := range b.Q {
			b.Vals[i], b.Found[i] = data.ValueOf(k), true
		}
	}
	answer()
	if err := b.Check(len(b.Q), len(b.Q)); err != nil {
		t.Error(err)
	}
	if err := b.Check(len(b.Q), len(b.Q)); err == nil {
		t.Error("the answers of one system pass for the next one's")
	}
	for i := range b.Q {
		for _, spoil := range []func(){
			func() { b.Vals[i]++ }, func() { b.Found[i] = false }, func() { b.Want = make([]bool, len(b.Q)) },
		} {
			answer()
			b.Want = nil
			if spoil(); b.Check(len(b.Q), len(b.Q)) == nil {
				t.Fatalf("query %d is wrong and nobody says so", i)
			}
		}
	}
	b.Want = nil
	if answer(); b.Check(len(b.Q), len(b.Q)-1) == nil {
		t.Error("a wrong number of hits passes")
	}
}

// liar is a system with one wrong answer.
type liar struct{ *peers.BinarySearch[uint64] }

func (l liar) Name() string { return "liar" }

func (l liar) Get(q, vals []uint64, found []bool) int {
	hits := l.BinarySearch.Get(q, vals, found)
	vals[len(q)-1]++
	return hits
}

// asleep is a system that answers nothing: what is in the slices from the
// previous system must not pass as its answers.
type asleep struct{ *peers.BinarySearch[uint64] }

func (asleep) Get(q, _ []uint64, _ []bool) int { return len(q) }

func TestWrongAnswersEndTheRun(t *testing.T) {
	s := contesttest.Session(t, 13)
	d, err := data.NewDataset[uint64](s, 1000)
	if err != nil {
		t.Fatal(err)
	}
	honest := peers.NewBinarySearch(d)
	for name, sys := range map[string]peers.System[uint64]{"liar": liar{honest}, "asleep": asleep{honest}} {
		c, err := NewLookups(s, d).Contest([]peers.System[uint64]{honest, sys}, nil, 1, "", d.Hits, AllHits)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Compete(c); err == nil || !strings.Contains(err.Error(), "wrong answer") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSystemsFilter(t *testing.T) {
	s := contesttest.Session(t, 29)
	s.Systems = []string{"art", "tidwall/btree map"}
	for name, want := range map[string]bool{peers.NameART: true, peers.NameTidwallMap: true, peers.NameTidwallG: false,
		peers.NameGoogle: false, ours.NamePairs: true, nameLimit: false} {
		if s.Wanted(name) != want {
			t.Errorf("%s wanted: %v", name, !want)
		}
	}
}

func TestReadLimitReadsEveryWay(t *testing.T) {
	l, err := newReadLimit(1<<20, 1003) // not a multiple of any unrolling
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for i, touch := range []func([]uint64, []uint32) uint64{touch1, touch4, touch16} {
		l.touch = touch
		l.Fresh(data.NewRand(uint64(i), 1))
		for _, threads := range []int{1, 3} {
			l.read(threads, len(l.Lines))
			if err := l.check(len(l.Lines)); err != nil {
				t.Errorf("touch %d, threads %d: %v", i, threads, err)
			}
		}
	}
}
