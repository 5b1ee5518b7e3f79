package par

import (
	"sync/atomic"
	"time"
)

// Later calls a function some time after it was asked to, and again for as long as
// the function reports that there is more to do. Nothing is left of it when there is
// not: no goroutine, and no reference to what the function uses.
type Later struct{ due atomic.Bool }

// Due reports whether a call is to come anyway. It is for callers that would have to
// make a function.
func (l *Later) Due() bool { return l.due.Load() }

// Do calls f after a time, unless a call is to come anyway. The work must be there
// before Do is called: then the call that comes finds it. Two calls may overlap.
func (l *Later) Do(after time.Duration, f func() (more bool)) {
	if l.due.Swap(true) {
		return
	}
	time.AfterFunc(after, func() {
		l.due.Store(false) // before f looks: later callers ask again
		if f() {
			l.Do(after, f)
		}
	})
}
