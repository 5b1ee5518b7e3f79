package exec

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"go.uber.org/goleak"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hasty reports whether there is time for a part of the cases only.
func hasty() bool { return !seed.Long() }

// pick reports whether a case is tried: all are where there is time, else one in
// so many.
func pick(rng *rand.Rand, oneIn int) bool { return !hasty() || rng.IntN(oneIn) == 0 }

// inTime runs what must not wait forever. The time is far beyond what any
// machine needs; a panic shows where every goroutine stands.
func inTime(t *testing.T, run func()) {
	t.Helper()
	name := t.Name()
	watchdog := time.AfterFunc(2*time.Minute, func() { panic(name + " is stuck") })
	defer watchdog.Stop()
	run()
}
