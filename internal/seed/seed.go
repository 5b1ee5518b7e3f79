// Package seed makes random tests repeatable: each test logs its seed, and
// setting the environment variable PANDO_SEED repeats the run.
package seed

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
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

// Asked returns how many seeds a long run is to try, by PANDO_SEEDS, and false on
// an ordinary day.
func Asked() (n int, ok bool) {
	n, err := strconv.Atoi(os.Getenv("PANDO_SEEDS"))
	return n, err == nil
}

// Count returns how many seeds a test tries: as many as are asked for, or a number
// for every day, and fewer in short runs and under the race detector.
func Count(daily int) int {
	n, ok := Asked()
	switch {
	case ok:
		return n
	case RaceDetector:
		return max(1, daily/20)
	case testing.Short():
		return max(1, daily/4)
	}
	return daily
}
