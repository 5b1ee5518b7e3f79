package pandostore

import (
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// What was closed is there when it is opened again, in all modes, of all types.
func TestReopen(t *testing.T) {
	t.Parallel()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reopen(t, &numbers, mode)
			reopen(t, &texts, mode)
			reopen(t, &rows, mode)
			reopen(t, &slices_, mode)
		})
	}
}

func reopen[K pando.Key, V any](t *testing.T, w *world[K, V], mode []Option) {
	t.Run(w.name, func(t *testing.T) {
		t.Parallel()
		for writers := 1; writers <= 3; writers += 2 {
			l := newLife(t, w, seed.Of(t), writers, mode...)
			for range seed.Times(5, 50) {
				if err := l.live(30, true); err != nil {
					t.Fatal(err)
				}
				l.seed++
				l.check(l.fs.Clone(), l.certain(), "nothing")
				for _, h := range l.writers { // a new history from there
					h.states = h.states[h.acked.Load():]
					h.acked.Store(0)
					h.synced.Store(0)
				}
			}
		}
	})
}
