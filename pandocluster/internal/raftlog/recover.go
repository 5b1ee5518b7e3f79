package raftlog

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/log"
)

// recover reads the log, and returns where it goes on. What is made where there is none has the
// given info.
func (l *Log) recover(info log.Info) (at log.Start, _ log.Info, err error) {
	segments, err := l.names()
	if err != nil {
		return at, info, err
	}
	if len(segments) == 0 {
		l.first = 1
		return log.Start{Segment: 1, Next: 1}, info, nil
	}
	l.first = segments[0]
	scans, errs := make([]log.Scan, len(segments)), make([]error, len(segments))
	for i, n := range segments {
		l.use(n)
		var of log.Info
		if of, scans[i], errs[i] = l.scan(n); i == 0 {
			info = of
		} else if errs[i] == nil && of != info {
			errs[i] = &log.Bad{Name: log.Name(n), Why: "this is the log of other replicas"}
		}
	}
	next := uint64(1)
	if errs[0] == nil && scans[0].Frames > 0 {
		next = scans[0].First
	}
	if _, at, err = log.Connect(segments, scans, errs, next); err != nil {
		return at, info, err
	}
	if info.Key != "group" || info.Value != "raft" {
		return at, info, &log.Bad{Name: log.Name(l.first), Why: "this is the log of a store, and not of replicas"}
	}
	if l.first > max(l.needed, 1) {
		return at, info, &log.Bad{Name: log.Name(max(l.needed, 1)), Why: "this part of the log is missing"}
	}
	return at, info, l.whole()
}

// names returns the segments of the folder, which follow each other.
func (l *Log) names() (segments []uint64, err error) {
	names, err := l.dir.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if n, ok := log.Numbered(name); ok {
			segments = append(segments, n)
		} else if whole, ok := strings.CutSuffix(name, log.Temporary); ok {
			if _, ok := log.Numbered(whole); ok {
				l.dir.Remove(name) // a program was making it; if it stays, it is made anew
			}
		}
	}
	slices.Sort(segments)
	for i, n := range segments {
		if want := segments[0] + uint64(i); n != want {
			return nil, &log.Bad{Name: log.Name(want), Why: "this part of the log is missing"}
		}
	}
	return segments, nil
}

// scan reads a segment, and notes its records.
func (l *Log) scan(n uint64) (info log.Info, s log.Scan, err error) {
	f, err := l.dir.Open(log.Name(n))
	if err != nil {
		return info, s, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return info, s, err
	}
	data := make([]byte, size)
	if read, err := f.ReadAt(data, 0); err != nil && err != io.EOF || read != len(data) {
		return info, s, fmt.Errorf("cannot read %s: %w", log.Name(n), err)
	}
	if info, err = log.ReadInfo(data, n); err != nil {
		return info, s, err
	}
	s, err = log.Read(data, &info, n, func(f *log.Frame) error {
		switch f.Kind {
		case log.Open, log.Seal, log.Close:
			return nil
		case log.Records:
			if err := l.note(f.Payload, place{segment: uint32(n), offset: uint32(f.Start() / 8)}); err != nil {
				return &log.Bad{Name: log.Name(n), Offset: f.Offset, Why: err.Error()}
			}
			return nil
		}
		return &log.Bad{Name: log.Name(n), Offset: f.Offset, Why: "this frame is a store's, and not one of replicas"}
	})
	return info, s, err
}

// whole fails if a group has not all entries between its first and its last.
func (l *Log) whole() error {
	for id, g := range l.groups {
		if g.begin, g.end = g.first, g.last; len(g.entries) > 0 && g.last-g.first+1 != uint64(len(g.entries)) {
			return &log.Bad{Name: log.Name(l.first), Why: fmt.Sprintf("group %d has %d of its entries %d to %d", id, len(g.entries), g.first, g.last)}
		}
	}
	return nil
}
