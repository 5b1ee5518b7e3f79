package arena

import "testing"

// Slots that were promised and not taken leave nothing behind, and those that are taken
// come from chunks that have some in use already, however much was promised before.
func TestPromisedSlotsLieTogether(t *testing.T) {
	s := Slots{Pool: NewPoolOf(1<<20, 512, 64)}
	for range 100 {
		if err := s.Promise(10000); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, _, err := s.Take(true); err != nil {
				t.Fatal(err)
			}
		}
		s.Unpromise(s.Promised())
		if !s.Balanced() {
			t.Fatalf("%d slots used, %d free, %d chunks", s.used, s.free, s.Chunks())
		}
	}
	if s.Used() != 300 || s.Chunks() != 1 {
		t.Errorf("%d slots in %d chunks", s.Used(), s.Chunks())
	}
	s.Release()
}

// Slots in a row are those that would have been taken one by one, and there are none
// where that is not so.
func TestSlotsInARow(t *testing.T) {
	s := Slots{Pool: NewPoolOf(1<<20, 512, 64), Stride: 3}
	per := s.perChunk()
	if err := s.Promise(2 * per); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	note := func(slot int) {
		if seen[slot] {
			t.Fatalf("slot %d was taken twice", slot)
		}
		seen[slot] = true
	}
	for len(seen) < per+10 {
		first, n := s.TakeFresh(64, true)
		if left := per - len(seen)%per; n != min(64, left) {
			t.Fatalf("%d slots, want %d", n, min(64, left))
		}
		for i := range n {
			note(first + 3*i)
		}
	}
	slot, _, err := s.Take(true)
	if note(slot); err != nil {
		t.Fatal(err)
	}
	s.Give(slot)
	if _, n := s.TakeFresh(2, true); n != 0 {
		t.Errorf("%d fresh slots where one was given back", n)
	}
	if _, n := s.TakeFresh(2*per, true); n != 0 {
		t.Errorf("%d slots, and fewer are promised", n)
	}
	if s.Used() != len(seen)-1 || s.Promised() != 2*per-len(seen) || !s.Balanced() {
		t.Errorf("%d in use and %d promised of %d, %d were taken", s.Used(), s.Promised(), 2*per, len(seen)-1)
	}
	s.Release()
}
