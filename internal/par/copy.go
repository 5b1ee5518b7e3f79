package par

import "unsafe"

// The scheduler cannot interrupt a copy: one of 1 GiB would hold up a garbage
// collection, and with it the whole program, for as long as it takes. So copies
// go in steps of copyStep bytes, some 5 µs. That is no slower, and so little
// because a copy can take far longer: into memory that was never touched, the
// system must find each page (up to 10 µs on a virtual machine), and while a
// collection runs, Go shows it every pointer, the old one and the new one (50
// ns each). Experiment stops.
const copyStep = 16 << 10

// copyPiece is the bytes that a worker takes at a time.
const copyPiece = 1 << 20

// stepOf returns the number of values that are copied at a time.
func stepOf[T any]() int {
	var t T
	return CopyStep(int(unsafe.Sizeof(t)))
}

// CopyStep returns the number of values of size bytes that are copied at a time, for
// callers that know a value's size alone.
func CopyStep(size int) int { return max(copyStep/max(size, 1), 1) }

// Copy copies src to dst, which is at least as long, step by step on at most
// workers goroutines.
func Copy[T any](dst, src []T, workers int) {
	dst = dst[:len(src)]
	piece := stepOf[T]() * (copyPiece / copyStep)
	if workers <= 1 || len(src) <= piece {
		copySteps(dst, src)
		return
	}
	copyPieces(dst, src, piece, workers)
}

// copyPieces is apart, so that Copy allocates nothing.
func copyPieces[T any](dst, src []T, piece, workers int) {
	Run(workers, (len(src)+piece-1)/piece, Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, len(src))
		copySteps(dst[lo:hi], src[lo:hi])
	}))
}

// copySteps copies slices of one length.
func copySteps[T any](dst, src []T) {
	for step := stepOf[T](); len(src) > step; {
		stepCopy(dst[:step], src[:step])
		dst, src = dst[step:], src[step:]
	}
	copy(dst, src)
}

// stepCopy is a call of its own, at whose entry the scheduler can stop the
// goroutine. A signal that asks it to stop nearly always arrives inside a copy,
// where it is ignored: a loop of nothing but copies ran on for 24 ms.
//
//go:noinline
func stepCopy[T any](dst, src []T) { copy(dst, src) }

// Grow returns a slice with room for n more values, as slices.Grow does. Where
// it must grow, it grows by half, and its values are copied step by step.
func Grow[T any](s []T, n int) []T {
	if n <= cap(s)-len(s) {
		return s
	}
	grown := make([]T, len(s), max(len(s)+n, len(s)+len(s)/2))
	Copy(grown, s, 1)
	return grown
}

// Append appends values, as append does, step by step.
func Append[T any](s, more []T) []T {
	s = Grow(s, len(more))
	at := len(s)
	s = s[:at+len(more)]
	Copy(s[at:], more, 1)
	return s
}

// Clear sets all values to zero, step by step.
func Clear[T any](s []T) {
	for step := stepOf[T](); len(s) > 0; {
		n := min(step, len(s))
		clear(s[:n])
		s = s[n:]
	}
}
