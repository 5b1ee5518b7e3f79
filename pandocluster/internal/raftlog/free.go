package raftlog

import (
	"fmt"

	"github.com/pando-index/pando/internal/log"
	"github.com/pando-index/pando/internal/mutant"
)

// moveUp is the number of bytes that are moved at a time, between others' records.
const moveUp = 1 << 20

// freeing is the oldest segment while it is emptied: what is not void in it is written once more.
type freeing struct{ left []used }

// used is an entry of a group, or a value of one if it has a key.
type used struct {
	g     *Group
	index uint64
	key   *string
}

// at returns where it is now; a place of no length if it is void.
func (u *used) at() place {
	if u.key != nil {
		return u.g.values[*u.key].at
	}
	return u.g.entries[u.index]
}

// due reports whether the oldest segment is to be emptied: little in it is not void, or
// more than half of the whole log is. So a log is at most three times as long as what is in
// use, and some segments; and what is moved is at most as much as what is written.
func (l *Log) due() bool {
	if l.first >= l.last {
		return false
	}
	oldest := l.segments[l.first]
	return oldest.live <= oldest.bytes/8 || l.longer(2)
}

// longer reports whether all segments but the last are longer than a multiple of what is
// in use and one segment more.
func (l *Log) longer(times int64) bool {
	var bytes, live int64
	for n, s := range l.segments {
		if n != l.last {
			bytes += s.bytes
		}
		live += s.live
	}
	return bytes > times*(live+l.size)
}

// free does a part of what makes the oldest segment free, if that is due. It reports whether there is
// more to do.
func (l *Log) free() (more bool, err error) {
	if l.freeing == nil {
		if !l.due() {
			return false, nil
		}
		l.freeing = &freeing{l.usedIn(l.first)}
	}
	if len(l.freeing.left) > 0 {
		return true, l.move()
	}
	l.freeing = nil
	return true, l.remove()
}

// usedIn returns what is not void in a segment.
func (l *Log) usedIn(segment uint64) (out []used) {
	l.state.Lock()
	defer l.state.Unlock()
	for _, g := range l.groups {
		for index, at := range g.entries {
			if uint64(at.segment) == segment {
				out = append(out, used{g: g, index: index})
			}
		}
		for key, v := range g.values {
			if uint64(v.at.segment) == segment {
				out = append(out, used{g: g, key: &key})
			}
		}
	}
	return out
}

// move writes some of what is not void in the oldest segment once more. It is not synced: the
// segment is there until more is.
func (l *Log) move() error {
	b := &batch{}
	f := l.freeing
	for ; len(f.left) > 0 && len(b.data) < moveUp; f.left = f.left[1:] {
		at := f.left[0].at()
		if at.length == 0 || uint64(at.segment) != l.first {
			continue // it is void by now
		}
		l.files.RLock()
		r, err := l.read(l.segments[l.first], at)
		l.files.RUnlock()
		if err != nil {
			return err
		}
		b.data = r.appendTo(b.data)
		b.count++
	}
	if b.count == 0 {
		return nil
	}
	return l.write([]*batch{b}, l.writer.Flush)
}

// remove removes the oldest segment, in which all is void: the log says so first, and what has moved is
// durable with that. The name is gone for good before the next segment's is, so that those that
// are there always follow each other.
func (l *Log) remove() error {
	if live := l.segments[l.first].live; live != 0 {
		return fmt.Errorf("%d bytes of %s are in use, and were not moved", live, log.Name(l.first))
	}
	said := record{kind: oldest, index: l.first + 1}
	sync := l.writer.Sync
	if mutant.On && mutant.Is("raftlog: moved synced") {
		sync = l.writer.Flush
	}
	b := &batch{data: said.appendTo(nil), count: 1}
	if mutant.On && mutant.Is("raftlog: oldest segment noted") {
		b = &batch{}
	}
	if err := l.write([]*batch{b}, sync); err != nil {
		return err
	}
	l.files.Lock()
	l.state.Lock()
	l.segments[l.first].close()
	delete(l.segments, l.first)
	l.state.Unlock()
	l.files.Unlock()
	if err := l.dir.Remove(log.Name(l.first)); err != nil {
		return err
	}
	l.first++
	return l.dir.Sync()
}
