// Package raftlog keeps what raft must not forget, for all groups of a process in one log: entries,
// and the term and vote of each group. One sync serves all groups that wait for one.
//
// The log is one of package log: a frame has in it whatever was asked for while the frame before it was
// written. A record is an entry or a value, or says that some are void. What a group has is
// what its records say, read in order; and a record voids only what lies before it. So it does no
// harm where the oldest segments are missing, as long as what was not void in them was
// written once more behind: that is how segments become free, and a group that is idle pins none.
// The newest record of kind oldest says which segments must be there.
//
// An error of a write or of a sync is final: nobody knows then what is on disk. All calls that
// wait return it, and all later ones; Failed tells whoever runs the groups, since raft itself goes on.
package raftlog

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/log"
	"github.com/pando-index/pando/internal/mutant"
)

// ErrClosed is returned by methods of a Log that was closed.
var ErrClosed = errors.New("the log of the replicas is closed")

// Options are what may be said of a Log.
type Options struct {
	SegmentSize int64  // bytes of a segment, log.SegmentSize if 0
	ID          uint64 // number of a log that is made, drawn by chance if 0
}

// batchUp is the number of bytes at which no more records join a batch.
const batchUp = 4 << 20

// Log is the log of all groups of a process.
type Log struct {
	dir    disk.Folder
	lock   io.Closer
	size   int64 // of a segment
	writer *log.Writer
	failed chan struct{} // closed at the first failure
	ended  chan struct{} // closed when commits has returned
	wake   chan struct{} // tells commits that there is something to do

	asking sync.Mutex // guards what follows
	queue  []*batch   // what is to be written; the last may still grow
	closed bool
	err    error // final

	// What is in the log. commits alone changes it, and holds the lock while it does; so it
	// reads without.
	state    sync.Mutex
	groups   map[uint64]*Group
	segments map[uint64]*segment
	first    uint64 // the oldest segment
	last     uint64 // the segment that is written to
	needed   uint64 // the newest record of kind oldest

	files   sync.RWMutex // held for reading while a file is read, so that none is closed meanwhile
	freeing *freeing     // the oldest segment is being emptied
}

// segment is what is known of a segment.
type segment struct {
	bytes, live int64 // of records: in all, and those that are not void

	opening sync.Mutex
	file    disk.File // to read entries, nil until one is asked for
}

// place is where a record lies; offset and length count units of 8 bytes.
type place struct{ segment, offset, length uint32 }

func (p place) bytes() int64 { return int64(p.length) * 8 }

// batch is records that are written in one frame.
type batch struct {
	data   []byte
	count  int
	votes  bool          // it has values
	done   chan struct{} // closed when it is durable, or has failed
	failed error
}

// Open opens the log in a folder, which has nothing else in it, and makes one where there is none.
func Open(dir disk.Folder, o Options) (l *Log, err error) {
	lock, err := dir.Lock()
	if err != nil {
		return nil, err
	}
	l = &Log{
		dir: dir, lock: lock, size: o.SegmentSize, failed: make(chan struct{}), ended: make(chan struct{}), wake: make(chan struct{}, 1),
		groups: map[uint64]*Group{}, segments: map[uint64]*segment{},
	}
	if l.size == 0 {
		l.size = log.SegmentSize
	}
	info := log.Info{Store: o.ID, Key: "group", Value: "raft"}
	if info.Store == 0 {
		info.Store = rand.Uint64()
	}
	start, info, err := l.recover(info)
	if err == nil {
		l.writer, err = log.NewWriter(dir, info, l.size, start)
	}
	if err == nil {
		if err = l.writer.Broken(); err != nil {
			l.writer.Abandon()
		}
	}
	if err != nil {
		l.closeFiles()
		return nil, errors.Join(err, lock.Close())
	}
	l.last = start.Segment
	l.use(l.last)
	go l.commits()
	return l, nil
}

// Close makes durable what was asked for, and ends the log.
func (l *Log) Close() error {
	l.asking.Lock()
	was := l.closed
	l.closed = true
	l.asking.Unlock()
	if was {
		return nil
	}
	l.hurry()
	<-l.ended
	var err error
	if err = l.Err(); err != nil {
		l.writer.Abandon()
	} else {
		err = l.writer.Close()
	}
	l.closeFiles()
	return errors.Join(err, l.lock.Close())
}

func (l *Log) closeFiles() {
	l.files.Lock()
	defer l.files.Unlock()
	for _, s := range l.segments {
		s.close()
	}
}

func (s *segment) close() {
	if s.file != nil {
		s.file.Close() // it was read alone
		s.file = nil
	}
}

// Failed returns a channel that is closed at the first write or sync that fails.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err returns the error of that write or sync.
func (l *Log) Err() error {
	l.asking.Lock()
	defer l.asking.Unlock()
	return l.err
}

// Group returns the log and the stable values of a group, which need not have any yet.
func (l *Log) Group(id uint64) *Group {
	l.state.Lock()
	defer l.state.Unlock()
	return l.group(id)
}

func (l *Log) group(id uint64) *Group {
	g := l.groups[id]
	if g == nil {
		g = &Group{log: l, id: id, entries: map[uint64]place{}, values: map[string]stable{}}
		l.groups[id] = g
	}
	return g
}

// Groups returns the groups that have an entry or a value, in order.
func (l *Log) Groups() (ids []uint64) {
	l.state.Lock()
	defer l.state.Unlock()
	for id, g := range l.groups {
		if len(g.entries) > 0 || len(g.values) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Drop removes all that a group has.
func (l *Log) Drop(id uint64) error {
	g := l.Group(id)
	g.asked.Lock()
	g.begin, g.end = 0, 0
	b, err := l.ask(false, record{kind: drop, group: id})
	g.asked.Unlock()
	return b.wait(err)
}

// Size returns the bytes of all segments' records, and of those that are not void.
func (l *Log) Size() (bytes, live int64) {
	l.state.Lock()
	defer l.state.Unlock()
	for _, s := range l.segments {
		bytes, live = bytes+s.bytes, live+s.live
	}
	return bytes, live
}

// ask puts records into a batch: all of them, or none.
func (l *Log) ask(vote bool, records ...record) (*batch, error) {
	size := 0
	for i := range records {
		if n := len(records[i].data) + len(records[i].trailer); n > mostData {
			return nil, fmt.Errorf("a record of %d bytes is too long: it may have %d", n, mostData)
		}
		size += records[i].size()
	}
	if size > log.MostPayload {
		return nil, fmt.Errorf("%d bytes at once are too many: store fewer entries at a time", size)
	}
	l.asking.Lock()
	defer l.asking.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if l.closed {
		return nil, ErrClosed
	}
	var b *batch
	if n := len(l.queue); n > 0 && len(l.queue[n-1].data)+size <= batchUp {
		b = l.queue[n-1]
	} else {
		b = &batch{done: make(chan struct{})}
		l.queue = append(l.queue, b)
	}
	for i := range records {
		b.data = records[i].appendTo(b.data)
	}
	b.count += len(records)
	b.votes = b.votes || vote
	l.hurry()
	return b, nil
}

// wait waits until the batch is durable, unless it could not be asked for.
func (b *batch) wait(err error) error {
	if err != nil {
		return err
	}
	<-b.done
	return b.failed
}

func (l *Log) hurry() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look
	}
}

// commits writes what is asked for until the log is closed, or fails.
func (l *Log) commits() {
	defer close(l.ended)
	for {
		l.asking.Lock()
		round, closed := l.queue, l.closed
		l.queue = nil
		l.asking.Unlock()
		if closed && len(round) == 0 {
			return
		}
		if err := l.commit(round); err != nil {
			l.fail(err, round)
			return
		}
		more, err := l.free()
		for err == nil && more && l.longer(3) { // more is written than becomes free: what is written waits
			more, err = l.free()
		}
		if err != nil {
			l.fail(err, nil)
			return
		}
		if !more {
			<-l.wake
		}
	}
}

// commit writes batches, makes them durable, and tells those who wait, unless it fails.
func (l *Log) commit(round []*batch) error {
	if len(round) == 0 {
		return nil
	}
	if err := l.write(round, l.writer.Sync); err != nil {
		return err
	}
	for _, b := range round {
		close(b.done)
	}
	return nil
}

// write writes batches, makes them durable by sync, and then notes what they say.
func (l *Log) write(all []*batch, sync func() error) error {
	places := make([]place, len(all)) // of the payloads; length is not used
	votes, entries := 0, 0
	for i, b := range all {
		if b.votes {
			votes++
		} else {
			entries++
		}
		if err := l.writer.End(append(l.writer.Begin(), b.data...), log.Records, b.count); err != nil {
			return err
		}
		segment, _ := l.writer.Place()
		places[i] = place{segment: uint32(segment), offset: uint32(l.writer.Latest() / 8)}
	}
	if mutant.On && (mutant.Is("raftlog: vote synced") && entries == 0 || mutant.Is("raftlog: entries synced") && votes == 0) {
		sync = l.writer.Flush
	}
	if err := sync(); err != nil {
		return err
	}
	l.state.Lock()
	defer l.state.Unlock()
	for i, b := range all {
		if err := l.note(b.data, places[i]); err != nil {
			return err
		}
	}
	return nil
}

// note notes all records of a frame whose payload begins at a place.
func (l *Log) note(b []byte, at place) error {
	l.last = max(l.last, uint64(at.segment))
	s := l.use(uint64(at.segment))
	s.bytes += int64(len(b))
	for len(b) > 0 {
		r, err := recordAt(b, false)
		if err != nil {
			return err
		}
		n := r.size()
		at.length = uint32(n / 8)
		l.take(&r, at)
		at.offset += at.length
		b = b[n:]
	}
	return nil
}

// use returns what is known of a segment.
func (l *Log) use(n uint64) *segment {
	s := l.segments[n]
	if s == nil {
		s = new(segment)
		l.segments[n] = s
	}
	return s
}

// take notes what a record says.
func (l *Log) take(r *record, at place) {
	if r.kind == oldest {
		l.needed = max(l.needed, r.index)
		return
	}
	g := l.group(r.group)
	switch r.kind {
	case entry:
		g.put(r.index, at)
	case value:
		g.putValue(string(r.trailer), slices.Clone(r.data), at)
	case truncate:
		g.remove(r.index, g.last)
	case compact:
		g.remove(g.first, r.index-1)
	case drop:
		g.remove(g.first, g.last)
		for key := range g.values {
			g.removeValue(key)
		}
	}
}

// fail makes an error final: of batches that were being written, and of all that comes.
func (l *Log) fail(err error, round []*batch) {
	err = fmt.Errorf("the log of the replicas cannot be written, and this node must end: %w", err)
	l.asking.Lock()
	l.err = err
	round = append(round, l.queue...)
	l.queue = nil
	l.asking.Unlock()
	close(l.failed)
	for _, b := range round {
		b.failed = err
		close(b.done)
	}
}
