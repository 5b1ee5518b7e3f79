package index

import (
	"fmt"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/order"
)

// lateMap is a map whose updates are held up between the look at a key and the call of
// their function.
type lateMap struct {
	keyMap
	holdUp func(gen uint64)
}

func (m lateMap) update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return m.keyMap.update(key, func(old uint64, had bool, gen uint64) (uint64, bool) {
		m.holdUp(gen)
		return f(old, had, gen)
	})
}

// An update that is held up so long that its generation has ended is done nevertheless,
// whether or not the key is there.
func TestUpdateAfterGenerations(t *testing.T) {
	for _, layout := range []string{"strings", "digits", "bplus"} {
		for _, had := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/had=%t", layout, had), func(t *testing.T) { updateLate(t, layout, had) })
		}
	}
}

func updateLate(t *testing.T, layout string, had bool) {
	m, probe := boxedMap(t, layout), keyOf
	if had {
		m.Swap(probe(0), "old")
	}
	tries := 0
	m.keyMap = lateMap{m.keyMap, func(gen uint64) {
		if tries++; tries > 1 {
			return
		}
		for i, end := 0, time.Now().Add(20*time.Second); m.Current(gen); i++ {
			m.Swap(probe(1+i%1000), "other")
			m.Delete(probe(1 + (i+500)%1000))
			if time.Now().After(end) {
				t.Fatal("no generation ends")
			}
		}
	}}
	was := ""
	if err := m.Update(probe(0), func(old string, there bool) (string, bool) {
		if was = old; there != had {
			t.Errorf("there is %q, %t", old, there)
		}
		return old + "new", true
	}); err != nil {
		t.Fatal(err)
	}
	if v, ok := m.Get(probe(0)); v != was+"new" || !ok {
		t.Errorf("after an update of %q it is %q, %t", was, v, ok)
	}
	if held, n := m.boxes.held.Load(), int64(m.Len()); held < n {
		t.Errorf("%d values are held for %d entries", held, n)
	}
}
