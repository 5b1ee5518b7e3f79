package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
)

// An update that is held up so long that its generation has ended is done nevertheless,
// whether or not the key is there.
func TestUpdateAfterGenerations(t *testing.T) {
	for _, layout := range []string{"strings", "digits", "bplus"} {
		for _, had := range []bool{false, true} {
			name := fmt.Sprintf("%s/had=%t", layout, had)
			t.Run(name+"/boxes", func(t *testing.T) { updateLate[boxed](t, layout, had) })
			t.Run(name+"/stored", func(t *testing.T) { updateLate[string](t, layout, had) })
		}
	}
}

func updateLate[V comparable](t *testing.T, layout string, had bool) {
	m, probe := mapOf[V](t, layout), keyOf
	if had {
		m.Swap(probe(0), value[V](5))
	}
	tries := 0
	live.PutBetween(m.Map, live.Between{Update: func(gen uint64) {
		if tries++; tries > 1 {
			return
		}
		for i, end := 0, time.Now().Add(20*time.Second); live.GenerationsOf(m.Map).Current(gen); i++ {
			m.Swap(probe(1+i%1000), value[V](-1))
			m.Delete(probe(1 + (i+500)%1000))
			if time.Now().After(end) {
				t.Fatal("no generation ends")
			}
		}
	}})
	var was, want V
	if had {
		want = value[V](5)
	}
	if err := m.Update(probe(0), func(old V, there bool) (V, bool) {
		if was = old; there != had || was != want {
			t.Errorf("there is %v, %t", old, there)
		}
		return value[V](6), true
	}); err != nil {
		t.Fatal(err)
	}
	if v, ok := m.Get(probe(0)); v != value[V](6) || !ok {
		t.Errorf("after an update of %v it is %v, %t", was, v, ok)
	}
	held, _ := live.HeldValues(m.Map)
	if n := int64(m.Len()); held < n {
		t.Errorf("%d values are held for %d entries", held, n)
	}
}

// eachBoxing runs a test for maps with values in boxes, stored, and in the tree, in each layout.
func eachBoxing(t *testing.T, boxes func(*testing.T, typed[boxed]), stored func(*testing.T, typed[string]), inline func(*testing.T, typed[uint64])) {
	for _, layout := range []string{"strings", "digits", "bplus"} {
		t.Run(layout+"/boxes", func(t *testing.T) { boxes(t, mapOf[boxed](t, layout)) })
		t.Run(layout+"/stored", func(t *testing.T) { stored(t, mapOf[string](t, layout)) })
		t.Run(layout+"/in the tree", func(t *testing.T) { inline(t, mapOf[uint64](t, layout)) })
	}
}

// boxed is a value with a pointer, which is in a box.
type boxed struct{ text string }

// A function that takes long, beside changes of other keys, snapshots and
// generations that end, runs once; and it may use the map.
func TestUpdateRunsOnce(t *testing.T) {
	eachBoxing(t, updateRunsOnce[boxed], updateRunsOnce[string], updateRunsOnce[uint64])
}

func updateRunsOnce[V comparable](t *testing.T, m typed[V]) {
	var zero V
	one := value[V](1)
	for i := range 100 {
		m.Set(keyOf(i), zero)
	}
	runs := 0
	err := m.Update(keyOf(50), func(old V, had bool) (V, bool) {
		if runs++; runs > 1 {
			t.Fatalf("the function runs again, with %v, %t", old, had)
		}
		m.Set(keyOf(51), one)
		m.Delete(keyOf(49))
		s, err := m.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drop()
		for i, gen, end := 0, live.GenerationsOf(m.Map).Gen(), time.Now().Add(20*time.Second); live.GenerationsOf(m.Map).Current(gen); i++ {
			m.DeleteRange(keyOf(1000), keyOf(2000))
			for i := range 1000 {
				m.Set(keyOf(1000+i), one)
			}
			if time.Now().After(end) {
				t.Fatal("no generation ends")
			}
		}
		return one, true
	})
	if v, ok := m.Get(keyOf(50)); err != nil || v != one || !ok {
		t.Errorf("Update returns %v, and the value is %v, %t", err, v, ok)
	}
}

// An update in a tree on a GPU alone ends though others change other keys all the time.
func TestUpdateEndsBesideOtherKeys(t *testing.T) {
	indextest.UseGPU(t, func(int) (device.Device, error) { return ptx.New(), nil })
	m, err := newMap[uint64](index.KeyTypeOf[uint64](), index.Config{Device: index.Device{Kind: index.GPU}, DeviceOnly: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	key, other := order.Probe{Code: 1}, order.Probe{Code: 2}
	m.Set(key, 5)
	looks, runs := uint64(0), 0
	live.PutBetween(m.Map, live.Between{Update: func(uint64) { // between a look at the key and the change
		if looks++; looks > 100 {
			t.Fatal("it begins again and again")
		}
		m.Set(other, looks)
		if looks == 1 {
			m.Set(key, 6)
		}
	}})
	if err := m.Update(key, func(old uint64, had bool) (uint64, bool) {
		if runs++; old != 4+uint64(runs) || !had {
			t.Errorf("there is %d, %t", old, had)
		}
		return old * 10, true
	}); err != nil {
		t.Fatal(err)
	}
	if v, _ := m.Get(key); v != 60 || runs != 2 {
		t.Errorf("the value is %d after %d runs", v, runs)
	}
}

// A function whose key others change each time it runs is done after some runs: then
// the others wait.
func TestUpdateHoldsOthersOff(t *testing.T) {
	eachBoxing(t, updateHolds[boxed], updateHolds[string], updateHolds[uint64])
}

func updateHolds[V comparable](t *testing.T, m typed[V]) {
	const runs = 100
	m.Set(keyOf(9), value[V](9))
	n, late := 0, make(chan V)
	err := m.Update(keyOf(1), func(old V, had bool) (V, bool) {
		if n++; n > runs {
			t.Fatalf("the function runs %d times", n)
		}
		done := make(chan V, 1)
		go func() {
			old, _, _ := m.Swap(keyOf(1), value[V](n))
			done <- old
		}()
		for keysHeld(m.Map) == 0 {
			select {
			case <-done:
				return value[V](runs + n), true
			case <-time.After(time.Millisecond):
			}
		}
		go func() { late <- <-done }()
		if k, _, ok, err := m.Pop(true); !ok || err != nil || !isKey(k, keyOf(9)) {
			t.Errorf("the function pops %v, %t, %v", k, ok, err)
		}
		return value[V](runs + n), true
	})
	if err != nil {
		t.Fatal(err)
	}
	if old := <-late; old != value[V](runs+n) {
		t.Errorf("a change during the last run of %d exchanges %v", n, old)
	}
	if seen, held := live.HeldKeys(m.Map); seen != 0 || held != 0 {
		t.Errorf("%d keys are held, and writers see %d", held, seen)
	}
	if held, _ := live.HeldValues(m.Map); held > int64(2*n) {
		t.Errorf("%d values are held", held)
	}
}

// A function that changes its own key panics instead of running for ever, and leaves
// the map as useful as before.
func TestUpdateOfItsOwnKey(t *testing.T) {
	eachBoxing(t, updateItself[boxed], updateItself[string], updateItself[uint64])
}

func updateItself[V comparable](t *testing.T, m typed[V]) {
	others := map[string]func(){
		"Set": func() { m.Set(keyOf(1), value[V](int(time.Now().UnixNano()))) },
		"Update": func() {
			m.Update(keyOf(1), func(V, bool) (V, bool) { return value[V](int(time.Now().UnixNano())), true })
		},
	}
	for name, change := range others {
		m.Set(keyOf(1), value[V](1))
		text := func() (text string) {
			defer func() { text = fmt.Sprint(recover()) }()
			m.Update(keyOf(1), func(old V, _ bool) (V, bool) {
				change()
				m.Set(keyOf(2), old) // another key is as good as any
				return old, true
			})
			return ""
		}()
		if !strings.HasPrefix(text, "pando: the function of an Update changes") {
			t.Errorf("%s: it panics with %q", name, text)
		}
	}
	if err := m.Set(keyOf(1), value[V](3)); err != nil || keysHeld(m.Map) != 0 {
		t.Errorf("afterwards Set returns %v, and %d keys are held", err, keysHeld(m.Map))
	}
}

// keysHeld returns the number of keys that only one goroutine may change, as writers see it.
func keysHeld(m *live.Map) int {
	n, _ := live.HeldKeys(m)
	return n
}

// value returns a value that tells i.
func value[V comparable](i int) V {
	var v V
	switch v := any(&v).(type) {
	case *string:
		*v = fmt.Sprintf("value %10d", i)
	case *boxed:
		v.text = fmt.Sprint("value ", i)
	case *[16]byte:
		copy(v[:], fmt.Sprintf("value %10d", i))
	case *uint64:
		*v = uint64(i)
	}
	return v
}
