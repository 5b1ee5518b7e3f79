// Package seed says what random tests draw and how much of it. Each test logs its
// seed, and setting the environment variable PANDO_SEED repeats the run. PANDO_LONG=1
// makes a run long: the same tests with more of everything, and PANDO_LONG=10 has ten
// times as much of what is counted.
package seed

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/stall"
)

// Of returns the seed of a test, and logs it. A fault on the goroutine of the
// test, on which Of is called, panics from then on, so that the log is printed.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("PANDO_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("PANDO_SEED=%d", seed)
	debug.SetPanicOnFault(true)
	return seed
}

// Rand returns a random generator for a test, started from its seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 1))
}

// long returns the number in PANDO_LONG, and 0 without one. It is read by each test, and
// not once before all: so go test knows that cached results depend on it.
func long() int {
	n, _ := strconv.Atoi(os.Getenv("PANDO_LONG"))
	return max(n, 0)
}

// Long reports whether this is a long run.
func Long() bool { return long() > 0 }

// Times returns how often a test does something: so often in a quick run, and so often
// in a long one, or as many times that as PANDO_LONG says.
func Times(inQuick, inLong int) int {
	if n := long(); n > 0 {
		return inLong * n
	}
	return inQuick
}

// Lasting returns how long a test goes on, as Times does. Where goroutines are slow, since
// they are watched or held up, it goes on as in a long run.
func Lasting(inQuick, inLong time.Duration) time.Duration {
	if RaceDetector || stall.On {
		inQuick = inLong
	}
	return time.Duration(Times(int(inQuick), int(inLong)))
}

// Size returns how large something is in a quick run and in a long one.
func Size(inQuick, inLong int) int {
	if Long() {
		return inLong
	}
	return inQuick
}

// Step returns the step at which a quick run goes through what a long one tries in turn.
func Step(inQuick int) int { return Size(inQuick, 1) }

// Stride returns the step at which a test goes through n things to try about
// Times(inQuick, inLong) of them. It is 1 where that is all.
func Stride(n, inQuick, inLong int) int { return 1 + n/Times(inQuick, inLong) }

// Asked returns how many seeds each test is to try, by PANDO_SEEDS, and false on
// an ordinary day.
func Asked() (n int, ok bool) {
	n, err := strconv.Atoi(os.Getenv("PANDO_SEEDS"))
	return n, err == nil
}

// Count returns how many seeds a test tries: as many as are asked for, or a number
// for long runs, of which a quick one tries an eighth, and under the race detector
// a twentieth.
func Count(inLong int) int {
	if n, ok := Asked(); ok {
		return n
	}
	if RaceDetector {
		return Times(max(1, inLong/20), inLong)
	}
	return Times(max(1, inLong/8), inLong)
}
