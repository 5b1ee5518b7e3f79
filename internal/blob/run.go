package blob

import (
	"sync"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// A value that is longer than the largest slot has a run of chunks. Only the pages that it
// fills take memory, and they go back to the system when it is freed: so runs need not be
// moved, whatever holes they leave.

const pageBytes = 4096

// runList is the runs of a store.
type runList struct {
	mu  sync.Mutex
	all map[int]run // by the first chunk

	// filling is held for reading while a value is copied into its run, so that Close
	// waits for it.
	filling sync.RWMutex
}

type run struct {
	length int
	born   uint64
}

func (r run) chunks() int { return (r.length + slabBytes - 1) >> slabShift }

// putRun puts a value into a run.
func (s *Store) putRun(val []byte, epoch uint64) (Ref, error) {
	if uint64(len(val)) > MostBytes {
		return 0, op.ErrLimit
	}
	s.runs.filling.RLock()
	defer s.runs.filling.RUnlock()
	if s.closed {
		return 0, op.ErrClosed
	}
	n := run{len(val), epoch}
	chunk, err := runs.Take(n.chunks())
	if err != nil {
		return 0, err
	}
	r := runRef(chunk, len(val))
	stall.At("blob: run taken")
	copy(r.bytes(), val)
	s.runs.put(chunk, n)
	s.account(roomOf(len(val)))
	x := s.enter()
	x.live.add(r.amount(), 1)
	x.inRuns.add(r.amount(), 1)
	x.mu.Unlock()
	return r, nil
}

// freeRun frees a run.
func (s *Store) freeRun(r Ref) {
	if n, ok := s.runs.drop(r.chunk()); ok {
		runs.Give(r.chunk(), n.chunks())
		s.account(-roomOf(n.length))
	}
}

func (l *runList) put(chunk int, r run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]run{}
	}
	l.all[chunk] = r
}

func (l *runList) drop(chunk int) (r run, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok = l.all[chunk]
	delete(l.all, chunk)
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

// sum returns the number of runs, and the bytes of their pages.
func (l *runList) sum() (n int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		bytes += roomOf(r.length)
	}
	return len(l.all), bytes
}

// takeAll returns all runs, of which there are none from then on.
func (l *runList) takeAll() (all map[int]run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, l.all = l.all, nil
	return all
}
