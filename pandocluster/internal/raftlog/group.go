package raftlog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/log"
)

// Group is what one group has in a Log: raft's LogStore and StableStore.
type Group struct {
	log *Log
	id  uint64

	asked      sync.Mutex // guards what follows, while something is asked for
	begin, end uint64     // the first and the last entry, as they are when all is done that was asked for; 0 if there is none

	// What is durable, guarded by the log's state.
	entries     map[uint64]place
	first, last uint64 // bounds of entries, 0 if there is none
	values      map[string]stable
}

// stable is a value.
type stable struct {
	data []byte
	at   place
}

var (
	_ raft.LogStore          = (*Group)(nil)
	_ raft.MonotonicLogStore = (*Group)(nil)
	_ raft.StableStore       = (*Group)(nil)
)

// put notes where an entry is.
func (g *Group) put(index uint64, at place) {
	g.unused(g.entries[index])
	if len(g.entries) == 0 {
		g.first, g.last = index, index
	}
	g.entries[index] = at
	g.first, g.last = min(g.first, index), max(g.last, index)
	g.log.use(uint64(at.segment)).live += at.bytes()
}

// unused notes that a record is void. One of no length is none.
func (g *Group) unused(at place) {
	if at.length > 0 {
		g.log.use(uint64(at.segment)).live -= at.bytes()
	}
}

// remove removes the entries from lo to hi, which are the first ones or the last ones.
func (g *Group) remove(lo, hi uint64) {
	lo, hi = max(lo, g.first), min(hi, g.last)
	if len(g.entries) == 0 || lo > hi {
		return
	}
	if hi-lo >= uint64(len(g.entries)) { // there are gaps, while a log is read whose oldest segments are gone
		for index, at := range g.entries {
			if lo <= index && index <= hi {
				g.unused(at)
				delete(g.entries, index)
			}
		}
	} else {
		for index := lo; ; index++ {
			g.unused(g.entries[index])
			delete(g.entries, index)
			if index == hi {
				break
			}
		}
	}
	switch {
	case len(g.entries) == 0:
		g.first, g.last = 0, 0
	case lo == g.first:
		g.first = hi + 1
	default:
		g.last = lo - 1
	}
}

func (g *Group) putValue(key string, data []byte, at place) {
	g.unused(g.values[key].at)
	g.values[key] = stable{data, at}
	g.log.use(uint64(at.segment)).live += at.bytes()
}

func (g *Group) removeValue(key string) {
	g.unused(g.values[key].at)
	delete(g.values, key)
}

// IsMonotonic says that entries follow each other without gaps.
func (g *Group) IsMonotonic() bool { return true }

// FirstIndex returns the index of the first entry, 0 if there is none.
func (g *Group) FirstIndex() (uint64, error) {
	first, _, err := g.bounds()
	return first, err
}

// LastIndex returns the index of the last entry, 0 if there is none.
func (g *Group) LastIndex() (uint64, error) {
	_, last, err := g.bounds()
	return last, err
}

func (g *Group) bounds() (first, last uint64, err error) {
	if err := g.log.usable(); err != nil {
		return 0, 0, err
	}
	g.log.state.Lock()
	defer g.log.state.Unlock()
	return g.first, g.last, nil
}

// usable returns the error of a log that was closed, or has failed.
func (l *Log) usable() error {
	l.asking.Lock()
	defer l.asking.Unlock()
	if l.err == nil && l.closed {
		return ErrClosed
	}
	return l.err
}

// GetLog reads an entry.
func (g *Group) GetLog(index uint64, to *raft.Log) error {
	if err := g.log.usable(); err != nil {
		return err
	}
	l := g.log
	l.files.RLock()
	defer l.files.RUnlock()
	l.state.Lock()
	at, ok := g.entries[index]
	var s *segment
	if ok {
		s = l.segments[uint64(at.segment)]
	}
	l.state.Unlock()
	if !ok {
		return raft.ErrLogNotFound
	}
	r, err := l.read(s, at)
	if err == nil && (r.kind != entry || r.group != g.id || r.index != index) {
		err = &log.Bad{Name: log.Name(uint64(at.segment)), Offset: int64(at.offset) * 8, Why: fmt.Sprintf("this is not entry %d of group %d", index, g.id)}
	}
	if err != nil {
		return err
	}
	*to = r.entry()
	return nil
}

// read reads the record at a place. The caller holds files.
func (l *Log) read(s *segment, at place) (r record, err error) {
	f, err := s.open(l, uint64(at.segment))
	if err != nil {
		return r, err
	}
	b := make([]byte, at.bytes())
	if _, err := f.ReadAt(b, int64(at.offset)*8); err != nil {
		return r, fmt.Errorf("cannot read %s: %w", log.Name(uint64(at.segment)), err)
	}
	if r, err = recordAt(b, true); err != nil {
		err = &log.Bad{Name: log.Name(uint64(at.segment)), Offset: int64(at.offset) * 8, Why: err.Error()}
	}
	return r, err
}

// open returns the file of a segment, to be read.
func (s *segment) open(l *Log, n uint64) (f interface {
	ReadAt(b []byte, at int64) (int, error)
}, err error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.file == nil {
		if s.file, err = l.dir.Open(log.Name(n)); err != nil {
			s.file = nil
			return nil, err
		}
	}
	return s.file, nil
}

// StoreLog stores an entry; it is durable when StoreLog returns.
func (g *Group) StoreLog(e *raft.Log) error { return g.StoreLogs([]*raft.Log{e}) }

// StoreLogs stores entries, each with the index behind the one before; they are durable when it returns.
func (g *Group) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	b, err := g.ask(entries)
	return b.wait(err)
}

func (g *Group) ask(entries []*raft.Log) (*batch, error) {
	g.asked.Lock()
	defer g.asked.Unlock()
	records := make([]record, len(entries))
	next := g.end + 1
	if g.end == 0 {
		next = entries[0].Index
	}
	for i, e := range entries {
		if e.Index != next || next == 0 {
			return nil, fmt.Errorf("entry %d of group %d does not follow %d", e.Index, g.id, next-1)
		}
		records[i] = ofEntry(g.id, e)
		next++
	}
	b, err := g.log.ask(false, records...)
	if err == nil {
		if g.begin == 0 {
			g.begin = entries[0].Index
		}
		g.end = next - 1
	}
	return b, err
}

// DeleteRange removes the entries from lo to hi, which must be the first ones or the last ones.
func (g *Group) DeleteRange(lo, hi uint64) error {
	b, err := g.askDelete(lo, hi)
	if b == nil {
		return err
	}
	return b.wait(err)
}

func (g *Group) askDelete(lo, hi uint64) (b *batch, err error) {
	g.asked.Lock()
	defer g.asked.Unlock()
	begin, end := g.begin, g.end
	switch {
	case end == 0 || hi < begin || lo > end || lo > hi:
		return nil, g.log.usable()
	case lo <= begin:
		hi = min(hi, end)
		b, err = g.log.ask(false, record{kind: compact, group: g.id, index: hi + 1})
		begin = hi + 1
	case hi >= end:
		b, err = g.log.ask(false, record{kind: truncate, group: g.id, index: lo})
		end = lo - 1
	default:
		return nil, fmt.Errorf("entries %d to %d of group %d lie in the middle of %d to %d", lo, hi, g.id, begin, end)
	}
	if begin > end {
		begin, end = 0, 0
	}
	if err == nil {
		g.begin, g.end = begin, end
	}
	return b, err
}

// Value is a stable value.
type Value struct{ Key, Data []byte }

// Set stores a value; it is durable when Set returns.
func (g *Group) Set(key, data []byte) error { return g.SetAll(Value{key, data}) }

// SetAll stores values, which are durable when it returns. A crash leaves all of them, or none.
func (g *Group) SetAll(values ...Value) error {
	records := make([]record, len(values))
	for i, v := range values {
		records[i] = record{kind: value, group: g.id, data: v.Data, trailer: v.Key}
	}
	b, err := g.log.ask(true, records...)
	return b.wait(err)
}

// Get returns the value of a key, nil if there is none.
func (g *Group) Get(key []byte) ([]byte, error) {
	if err := g.log.usable(); err != nil {
		return nil, err
	}
	g.log.state.Lock()
	defer g.log.state.Unlock()
	return slices.Clone(g.values[string(key)].data), nil
}

// SetUint64 stores a number; it is durable when SetUint64 returns.
func (g *Group) SetUint64(key []byte, n uint64) error {
	return g.Set(key, binary.LittleEndian.AppendUint64(nil, n))
}

// GetUint64 returns the number of a key, 0 if there is none.
func (g *Group) GetUint64(key []byte) (uint64, error) {
	b, err := g.Get(key)
	if err != nil || len(b) == 0 {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("the value of %q is no number: it has %d bytes", key, len(b))
	}
	return binary.LittleEndian.Uint64(b), nil
}
