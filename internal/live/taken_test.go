package live_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// A change that has taken a value out of the tree returns it, though the map is closed meanwhile.
func TestStoredTakenBesideClose(t *testing.T) {
	if !stall.On {
		t.Skip("needs a build with stalls")
	}
	for _, layout := range layouts {
		t.Run(layout+"/boxes", func(t *testing.T) { takenBesideClose[boxed](t, layout) })
		t.Run(layout+"/strings", func(t *testing.T) { takenBesideClose[string](t, layout) })
		t.Run(layout+"/structs", func(t *testing.T) { takenBesideClose[[16]byte](t, layout) })
	}
}

func takenBesideClose[V comparable](t *testing.T, layout string) {
	for name, change := range map[string]func(m typed[V]) (V, bool, error){
		"Swap": func(m typed[V]) (V, bool, error) { return m.Swap(keyOf(0), value[V](9)) },
		"Delete": func(m typed[V]) (V, bool, error) {
			v, had, err := m.Delete(keyOf(0))
			return index.ValueAs[V](v), had, err
		},
		"Pop": func(m typed[V]) (V, bool, error) {
			_, v, ok, err := m.Pop(false)
			return index.ValueAs[V](v), ok, err
		},
		"Apply": func(m typed[V]) (V, bool, error) {
			vals, found := []V{value[V](9)}, make([]bool, 1)
			err := m.Apply(keysOf(layout, 0), nil, op.Set, index.ColumnOf(vals), found, true)
			return vals[0], found[0], err
		},
		"Apply of kinds": func(m typed[V]) (V, bool, error) {
			vals, found := make([]V, 1), make([]bool, 1)
			err := m.Apply(keysOf(layout, 0), []op.Kind{op.Delete}, 0, index.ColumnOf(vals), found, true)
			return vals[0], found[0], err
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapOf[V](t, layout)
			for i := range 3 {
				if err := m.Set(keyOf(i), value[V](5+i)); err != nil {
					t.Fatal(err)
				}
			}
			var begun atomic.Bool
			waits, closed := make(chan struct{}), make(chan struct{})
			undo := stall.Use(func(point string) {
				switch {
				case point == "live: close waits":
					close(waits)
				case point == "live: value taken out" && !begun.Swap(true):
					go func() {
						m.Close()
						close(closed)
					}()
					select {
					case <-waits:
					case <-closed:
						t.Error("the map is closed while a value is on its way")
					case <-time.After(time.Minute):
						t.Error("Close does not end")
					}
				}
			})
			defer undo()
			v, had, err := change(m)
			if want := value[V](5); v != want || !had || err != nil {
				t.Errorf("there was %v, %t, %v, want %v", v, had, err, want)
			}
			<-closed
		})
	}
}
