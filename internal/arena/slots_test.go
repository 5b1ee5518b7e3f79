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
