// Package seed makes random tests repeatable: each logs its seed, and the
// environment variable PANDO_SEED brings it back.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Of gives a test its seed, and logs it.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s, err := strconv.ParseUint(os.Getenv("PANDO_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("PANDO_SEED=%d", seed)
	return seed
}

// Rand gives a generator for a test, from its seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 1))
}
