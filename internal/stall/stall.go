// Package stall lets tests hold a goroutine up between two steps of a protocol
// that goroutines share memory by, or do something else there. The points are in
// builds with the tag stalls alone, and cost nothing in others.
//
//	stall.At("split: right leaf filled")
//
// At a point whose name begins with "held" the goroutine holds a lock that
// others may wait for.
package stall

import "sync/atomic"

var hook atomic.Pointer[func(point string)]

// At calls the function that Use was given, if there is one.
func At(point string) {
	if On {
		if f := hook.Load(); f != nil {
			(*f)(point)
		}
	}
}

// Use makes At call f, from any goroutine, and returns a function that undoes
// it.
func Use(f func(point string)) (undo func()) {
	old := hook.Swap(&f)
	return func() { hook.Store(old) }
}
