package raftlog

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/log"
)

func entryOf(index uint64, data string) *raft.Log {
	return &raft.Log{Index: index, Term: 1, Data: []byte(data)}
}

func must(t *testing.T, fs *crash.Folder) *Log {
	t.Helper()
	l, err := open(fs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func try(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// What raft asks of its stores, at the edges.
func TestEdges(t *testing.T) {
	fs := crash.New()
	l := must(t, fs)
	g := l.Group(3)
	first, err1 := g.FirstIndex()
	last, err2 := g.LastIndex()
	n, err3 := g.GetUint64([]byte("term"))
	b, err4 := g.Get([]byte("vote"))
	if first != 0 || last != 0 || n != 0 || b != nil {
		t.Error("an empty group has", first, last, n, b)
	}
	try(t, err1, err2, err3, err4, g.StoreLogs(nil), g.DeleteRange(1, 10))
	if err := g.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Error(err)
	}
	try(t, g.StoreLogs([]*raft.Log{entryOf(7, "a"), entryOf(8, "b"), entryOf(9, "c"), entryOf(10, "d")}))
	for _, index := range []uint64{6, 10, 12} {
		if err := g.StoreLog(entryOf(index, "x")); err == nil {
			t.Errorf("entry %d is taken behind 10", index)
		}
	}
	if err := g.DeleteRange(8, 9); err == nil {
		t.Error("entries in the middle are removed")
	}
	if err := g.StoreLog(&raft.Log{Index: 11, Data: make([]byte, mostData+1)}); err == nil {
		t.Error("an entry of any length is taken")
	}
	try(t, g.DeleteRange(0, 7), g.DeleteRange(10, 99), g.SetUint64([]byte("term"), 4), l.Group(9).Set([]byte("x"), []byte{1}))
	if _, err := l.Group(9).GetUint64([]byte("x")); err == nil {
		t.Error("a value of one byte is a number")
	}
	if _, err := Open(fs, Options{}); err == nil {
		t.Error("the log is open, and opens once more")
	}
	try(t, l.Close(), l.Close())
	for _, err := range []error{g.StoreLog(entryOf(10, "x")), g.SetUint64(nil, 1), g.GetLog(8, new(raft.Log)), l.Drop(3), g.DeleteRange(8, 8)} {
		if !errors.Is(err, ErrClosed) {
			t.Error("after Close: ", err)
		}
	}

	l = must(t, fs)
	g = l.Group(3)
	s, err := stateOf(g)
	try(t, err)
	if len(s.entries) != 2 || s.entries[0].Index != 8 || string(s.entries[1].Data) != "c" {
		t.Error(s)
	}
	if n, err := g.GetUint64([]byte("term")); n != 4 || err != nil {
		t.Error(n, err)
	}
	if got := l.Groups(); len(got) != 2 || got[0] != 3 || got[1] != 9 {
		t.Error(got)
	}
	try(t, g.DeleteRange(0, 9), g.StoreLog(entryOf(500, "far")), l.Drop(9), l.Close())
	l = must(t, fs)
	if got, last := l.Groups(), l.Group(3).last; len(got) != 1 || last != 500 {
		t.Error(got, last)
	}
	try(t, l.Close())
}

// Whoever asks while a sync is under way shares the next one, of whatever group.
func TestOneSync(t *testing.T) {
	const groups = 20
	fs := crash.New()
	l, err := Open(fs, Options{SegmentSize: 1 << 20})
	try(t, err)
	defer l.Close()
	begun, goOn := make(chan struct{}), make(chan struct{})
	syncs := 0
	fs.SetBefore(func(n int, what string) {
		if what == "sync "+log.Name(1) {
			if syncs++; syncs == 1 {
				close(begun)
				<-goOn
			}
		}
	})
	var all sync.WaitGroup
	ask := func(i uint64) {
		all.Go(func() {
			if err := l.Group(i).StoreLog(entryOf(1, "entry")); err != nil {
				t.Error(err)
			}
		})
	}
	ask(0)
	<-begun
	for i := range uint64(groups) {
		ask(i + 1)
	}
	for asked := 0; asked < groups; {
		l.asking.Lock()
		asked = 0
		for _, b := range l.queue {
			asked += b.count
		}
		l.asking.Unlock()
		runtime.Gosched()
	}
	close(goOn)
	all.Wait()
	if syncs != 2 {
		t.Errorf("%d syncs for %d groups", syncs, groups)
	}
}

// A group that is idle pins no segments, and keeps what it has; a log is as long as what is in use, and
// some segments.
func TestIdle(t *testing.T) {
	fs := crash.New()
	l := must(t, fs)
	idle, quick := l.Group(1), l.Group(2)
	try(t, idle.StoreLogs([]*raft.Log{entryOf(5, "five"), entryOf(6, "six")}), idle.SetUint64([]byte("CurrentTerm"), 7))
	data := strings.Repeat("x", 900)
	for i := uint64(1); i <= 300; i++ {
		try(t, quick.StoreLog(entryOf(i, data)))
		if i%10 == 0 {
			try(t, quick.DeleteRange(1, i-5))
		}
	}
	try(t, l.Close())
	names, err := fs.Names()
	try(t, err)
	if len(names) > 10 {
		t.Errorf("%d segments are left: %v", len(names), names)
	}
	l = must(t, fs)
	s, err := stateOf(l.Group(1))
	try(t, err)
	if len(s.entries) != 2 || string(s.entries[1].Data) != "six" || len(s.values) != 1 {
		t.Error(s)
	}
	// A group with much that is not void: the log is not longer than three times that, and some segments.
	cold, busy := l.Group(3), l.Group(2)
	for i := uint64(1); i <= 100; i++ {
		try(t, cold.StoreLog(entryOf(i, data)))
	}
	for i := uint64(301); i <= 1000; i++ {
		try(t, busy.StoreLog(entryOf(i, data)))
		if i%10 == 0 {
			try(t, busy.DeleteRange(1, i-5))
		}
	}
	if bytes, live := l.Size(); bytes > 3*live+5*small {
		t.Errorf("%d bytes for %d in use", bytes, live)
	}
	s, err = stateOf(cold)
	try(t, err)
	if len(s.entries) != 100 {
		t.Error(s)
	}
	try(t, l.Close())
}

// An entry that is damaged on disk is not handed out.
func TestDamagedEntry(t *testing.T) {
	fs := crash.New()
	l := must(t, fs)
	defer l.Close()
	g := l.Group(1)
	try(t, g.StoreLogs([]*raft.Log{entryOf(1, "aaaaaaaa"), entryOf(2, "bbbbbbbb")}))
	b := fs.Bytes(log.Name(1))
	b[strings.Index(string(b), "bbbb")] ^= 4
	var e raft.Log
	try(t, g.GetLog(1, &e))
	var bad *log.Bad
	if err := g.GetLog(2, &e); !errors.As(err, &bad) {
		t.Error(err)
	}
}

// A record that is cut off, or has any byte changed, is no other record.
func FuzzRecord(f *testing.F) {
	r := ofEntry(3, &raft.Log{Index: 4, Term: 5, Data: []byte("data"), Extensions: []byte("more")})
	f.Add(r.appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := recordAt(b, true)
		if err == nil && got.size() > len(b) {
			t.Errorf("a record of %d bytes in %d", got.size(), len(b))
		}
	})
}
