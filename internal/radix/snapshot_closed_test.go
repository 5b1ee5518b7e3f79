package radix

import (
	"testing"
	"time"
)

// A snapshot that is closed stores no counts any more: the nodes that it shared with the
// tree are the tree's, and somebody may be changing them.
func TestClosedSnapshotCountsNothing(t *testing.T) {
	tree := New(0)
	defer tree.Close()
	for _, key := range []string{"a", "b", "ca", "cb", "d"} {
		if _, _, err := tree.Set(key, 1); err != nil {
			t.Fatal(err)
		}
	}
	s, err := tree.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, ok := entriesOf(tree.top.link); ok {
		t.Fatal("the tree is counted before anybody asked")
	}
	s.Rank("c", false)
	if n, ok := entriesOf(tree.top.link); ok {
		t.Errorf("a closed snapshot has counted %d entries of the tree", n)
	}
	if n := tree.Rank("cb", false); n != 3 {
		t.Errorf("rank %d", n)
	}
}

// When a snapshot that was closed is collected, it takes no desk: nobody waits for that, and
// bytes are exact.
func TestClosedSnapshotTakesNoDesk(t *testing.T) {
	tree := New(0)
	defer tree.Close()
	s := mustSnapshot(t, tree)
	s.Close()
	d := tree.enter()
	defer tree.leave(d)
	done := make(chan struct{})
	go func() {
		tree.end(s.moment)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("it waits for a writer")
	}
}
