package blob

import (
	"sync"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// A value that is longer than the largest slot has a run of chunks. Only the pages that it
// fills take memory, and they go back to the system when it is freed: so runs need not be
// moved, whatever holes they leave. Some are kept for the next values of their length, since
// fresh pages take several times as long as a copy of the value.

const pageBytes = 4096

// runList is the runs of a store.
type runList struct {
	mu    sync.Mutex
	all   map[int]run            // by the first chunk
	spare [spareChunks + 1][]run // free ones, by the number of chunks
	used  int64                  // bytes of pages of those that have values
	idle  int64                  // and of free ones

	// filling is held for reading while a value is copied into its run, so that Close
	// waits for it.
	filling sync.RWMutex
}

// Free runs are kept up to spareChunks chunks each, and in all up to spareAnyway bytes and one
// part in spareShare of the runs in use.
const (
	spareChunks = 16
	spareAnyway = 4 << 20
	spareShare  = 16
)

type run struct {
	chunk  int
	length int
	pages  int64 // bytes of pages that may have been written to
	born   uint64
}

func chunksOf(length int) int { return (length + slabBytes - 1) >> slabShift }

// putRun puts a value into a run.
func (s *Store) putRun(val []byte, epoch uint64) (Ref, error) {
	s.runs.filling.RLock()
	defer s.runs.filling.RUnlock()
	if s.closed {
		return 0, op.ErrClosed
	}
	r, err := s.takeRun(len(val))
	if err != nil {
		return 0, err
	}
	r.born = epoch
	ref := runRef(r.chunk, r.length)
	stall.At("blob: run taken")
	copy(ref.bytes(), val)
	s.runs.put(r)
	x := s.enter()
	x.live.add(ref.amount(), 1)
	x.inRuns.add(ref.amount(), 1)
	x.mu.Unlock()
	return ref, nil
}

// takeRun returns a run for a value, and counts its memory as held.
func (s *Store) takeRun(length int) (run, error) {
	n, need := chunksOf(length), roomOf(length)
	r, ok := s.runs.pop(n)
	if !ok {
		chunk, err := runs.Take(n)
		if err != nil && s.dropSpare() {
			chunk, err = runs.Take(n)
		}
		if err != nil {
			return run{}, err
		}
		s.account(need)
		return run{chunk: chunk, length: length, pages: need}, nil
	}
	r.length = length
	if r.pages > need+need/8 {
		runs.Trim(r.chunk, n, need)
		s.account(need - r.pages)
		r.pages = need
	} else if r.pages < need {
		s.account(need - r.pages)
		r.pages = need
	}
	return r, nil
}

// freeRun frees a run.
func (s *Store) freeRun(ref Ref) {
	if r, ok := s.runs.drop(ref.chunk()); ok && !s.runs.push(r) {
		s.giveRun(r)
	}
}

func (m *memory) giveRun(r run) {
	runs.Give(r.chunk, chunksOf(r.length))
	m.account(-r.pages)
}

// dropSpare gives free runs back, and reports whether there were any.
func (m *memory) dropSpare() (some bool) {
	l := &m.runs
	l.mu.Lock()
	all := l.spare
	l.spare, l.idle = [spareChunks + 1][]run{}, 0
	l.mu.Unlock()
	for _, list := range all {
		for _, r := range list {
			m.giveRun(r)
			some = true
		}
	}
	return some
}

// push keeps a free run, and reports whether it has.
func (l *runList) push(r run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := chunksOf(r.length)
	if n > spareChunks || l.idle+r.pages > spareAnyway+l.used/spareShare {
		return false
	}
	l.spare[n] = append(l.spare[n], r)
	l.idle += r.pages
	return true
}

// pop returns a free run of n chunks, if there is one.
func (l *runList) pop(n int) (r run, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > spareChunks || len(l.spare[n]) == 0 {
		return run{}, false
	}
	last := len(l.spare[n]) - 1
	r, l.spare[n] = l.spare[n][last], l.spare[n][:last]
	l.idle -= r.pages
	return r, true
}

func (l *runList) put(r run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]run{}
	}
	l.all[r.chunk] = r
	l.used += r.pages
}

func (l *runList) drop(chunk int) (r run, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok = l.all[chunk]
	delete(l.all, chunk)
	l.used -= r.pages
	return r, ok
}

func (l *runList) born(chunk int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[chunk].born
}

func (l *runList) has(chunk, length int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.all[chunk]
	return ok && r.length == length
}

// unused returns the bytes of free runs.
func (l *runList) unused() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idle
}

// sum returns the number of runs that have values, and the bytes of pages of these and of free
// ones, as they were counted and as they are.
func (l *runList) sum() (n int, used, idle, all int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		all += r.pages
	}
	for _, some := range l.spare {
		for _, r := range some {
			all += r.pages
		}
	}
	return len(l.all), l.used, l.idle, all
}

// takeAll returns all runs that have values, of which there are none from then on.
func (l *runList) takeAll() (all map[int]run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, l.all, l.used = l.all, nil, 0
	return all
}
