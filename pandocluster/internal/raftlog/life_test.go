package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/disk/crash"
)

// small is a size of segments at which there are many.
const small = 7000

// state is what a group has.
type state struct {
	entries []raft.Log
	values  map[string]string
}

func (s *state) clone() state { return state{slices.Clone(s.entries), maps.Clone(s.values)} }

// history is what a group was asked for: its state behind each change.
type history struct {
	id     uint64
	mu     sync.Mutex
	states []state
	acked  atomic.Int64 // the last state that is known to be durable
}

func newHistory(id uint64, s state) *history { return &history{id: id, states: []state{s}} }

// issue notes a state that is asked for next.
func (h *history) issue(s state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = append(h.states, s)
}

func (h *history) issued() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(len(h.states) - 1)
}

// latest returns a copy of the newest state.
func (h *history) latest() state {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[len(h.states)-1].clone()
}

// among returns which of the states from lo to hi it is, -1 if none.
func (h *history) among(got state, lo, hi int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := hi; i >= lo; i-- {
		if equal(got, h.states[i]) {
			return i
		}
	}
	return -1
}

func equal(a, b state) bool {
	return maps.Equal(a.values, b.values) && slices.EqualFunc(a.entries, b.entries, func(x, y raft.Log) bool {
		return x.Index == y.Index && x.Term == y.Term && x.Type == y.Type && x.AppendedAt.Equal(y.AppendedAt) &&
			bytes.Equal(x.Data, y.Data) && bytes.Equal(x.Extensions, y.Extensions)
	})
}

func (s state) String() string {
	if len(s.entries) == 0 {
		return fmt.Sprintf("no entries, %q", s.values)
	}
	return fmt.Sprintf("entries %d to %d, %q", s.entries[0].Index, s.entries[len(s.entries)-1].Index, s.values)
}

// stateOf reads what a group has.
func stateOf(g *Group) (s state, err error) {
	s.values = map[string]string{}
	first, err := g.FirstIndex()
	if err != nil {
		return s, err
	}
	last, err := g.LastIndex()
	if err != nil {
		return s, err
	}
	for i := first; i <= last && i > 0; i++ {
		var e raft.Log
		if err := g.GetLog(i, &e); err != nil {
			return s, fmt.Errorf("entry %d: %w", i, err)
		}
		s.entries = append(s.entries, e)
	}
	for _, key := range keys {
		b, err := g.Get([]byte(key))
		if err != nil {
			return s, err
		}
		if b != nil {
			s.values[key] = string(b)
		}
	}
	return s, nil
}

var keys = []string{"CurrentTerm", "LastVoteCand", "LastVoteTerm"}

// one does one change of a group by chance, and returns its error. Some groups are idle
// most of the time.
func (h *history) one(rng *rand.Rand, l *Log) error {
	g := l.Group(h.id)
	s := h.latest()
	n := len(s.entries)
	var do func() error
	switch what := rng.IntN(20); {
	case what < 10:
		next := uint64(rng.IntN(100) + 1)
		if n > 0 {
			next = s.entries[n-1].Index + 1
		}
		var added []*raft.Log
		for range 1 + rng.IntN(4) {
			e := &raft.Log{Index: next, Term: rng.Uint64(), Type: raft.LogType(rng.IntN(6)), Data: chance(rng, 700), Extensions: chance(rng, 9)}
			if rng.IntN(2) == 0 {
				e.AppendedAt = time.Unix(0, rng.Int64())
			}
			added, s.entries, next = append(added, e), append(s.entries, *e), next+1
		}
		do = func() error { return g.StoreLogs(added) }
	case what < 15 && n > 0:
		k := rng.IntN(n + 1)
		if k == 0 {
			return nil
		}
		lo, hi := s.entries[0].Index, s.entries[k-1].Index
		if k == n && rng.IntN(2) == 0 {
			hi += 5
		}
		s.entries = s.entries[k:]
		do = func() error { return g.DeleteRange(lo, hi) }
	case what < 16 && n > 1:
		k := 1 + rng.IntN(n-1)
		lo, hi := s.entries[k].Index, s.entries[n-1].Index
		s.entries = s.entries[:k]
		do = func() error { return g.DeleteRange(lo, hi) }
	case what == 16 && rng.IntN(8) == 0:
		s = state{values: map[string]string{}}
		do = func() error { return l.Drop(h.id) }
	default:
		key, b := keys[rng.IntN(len(keys))], append(chance(rng, 20), 1)
		s.values[key] = string(b)
		do = func() error { return g.Set([]byte(key), b) }
	}
	h.issue(s)
	if err := do(); err != nil {
		return err
	}
	h.acked.Store(h.issued())
	return nil
}

func chance(rng *rand.Rand, most int) []byte {
	b := make([]byte, rng.IntN(most))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// life is a log with some groups, each of which is changed by a goroutine of its own.
type life struct {
	t      *testing.T
	fs     *crash.Folder
	groups []*history
	images atomic.Int64
}

func newLife(t *testing.T, groups int) *life {
	l := &life{t: t, fs: crash.New()}
	for i := range groups {
		l.groups = append(l.groups, newHistory(uint64(i)*uint64(i)*1000, state{values: map[string]string{}}))
	}
	return l
}

func open(fs *crash.Folder) (*Log, error) { return Open(fs, Options{SegmentSize: small, ID: 5}) }

// live opens the log, and lets each group do some changes.
func (l *life) live(seed uint64, changes int) error {
	log, err := open(l.fs)
	if err != nil {
		return err
	}
	errs := make([]error, len(l.groups))
	var all sync.WaitGroup
	for i, h := range l.groups {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range changes {
				if i == 0 && n%16 > 0 {
					continue // this one is idle
				}
				if errs[i] = h.one(rng, log); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, log.Close())...)
}

// marks returns the number of a state of each group.
func (l *life) marks(of func(h *history) int64) (out []int64) {
	for _, h := range l.groups {
		out = append(out, of(h))
	}
	return out
}

func (l *life) acked() []int64  { return l.marks(func(h *history) int64 { return h.acked.Load() }) }
func (l *life) issued() []int64 { return l.marks((*history).issued) }

// check opens what a crash has left, and demands of each group one of the states from lo to hi.
// It returns what there is.
func (l *life) check(image *crash.Folder, lo, hi []int64, where string) (got []state) {
	l.images.Add(1)
	log, err := open(image)
	if err != nil {
		l.t.Errorf("%s: %v", where, err)
		return nil
	}
	defer log.Close()
	for i, h := range l.groups {
		s, err := stateOf(log.Group(h.id))
		if err != nil {
			l.t.Errorf("%s: group %d: %v", where, h.id, err)
			continue
		}
		if h.among(s, lo[i], hi[i]) < 0 {
			l.t.Errorf("%s: group %d: %v; want one of %d states from %v to %v", where, h.id, s, hi[i]-lo[i]+1, h.states[lo[i]], h.states[hi[i]])
		}
		got = append(got, s)
	}
	return got
}
