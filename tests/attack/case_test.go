package attack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
)

// testCase is one case. All that it draws follows from its seed.
type testCase struct {
	seed     uint64
	rng      *rand.Rand
	dir      string       // for its files; empty before and after
	compared atomic.Int64 // answers that were compared with the model's
	tried    int          // cases that it counts for, 1 where it does not say
	gpu      rig
	parent   *testCase // of a case for one goroutine

	mu    sync.Mutex
	notes []string
}

func newCase(seed uint64, dir string) *testCase {
	return &testCase{seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), dir: dir, tried: 1}
}

// note adds a line to what is printed of a case that fails.
func (c *testCase) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// log returns the notes, of many of them the first and the last.
func (c *testCase) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	const first, last = 12, 12
	notes := c.notes
	if len(notes) > first+last {
		left := fmt.Sprintf("… %d more", len(notes)-first-last)
		notes = append(append(notes[:first:first], left), notes[len(notes)-last:]...)
	}
	return "  " + strings.Join(notes, "\n  ")
}

// attacked runs the case of an attack. Whatever it panics with is an error, a
// fault on its goroutine too; and it leaves nothing behind.
func (c *testCase) attacked(a attack) (err error) {
	debug.SetPanicOnFault(true)
	before := arena.InUse()
	err = guarded(func() error { return a.run(c) })
	if err == nil {
		err = c.gpu.nothingLeft()
	}
	if after := arena.InUse(); err == nil && after != before {
		err = fmt.Errorf("%d bytes off the Go heap are in use, %d were before", after, before)
	}
	return err
}

// guarded calls do, and returns what it panics with as an error.
func guarded(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return do()
}

// emptied removes the files of a case.
func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(dir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// pick returns one of several.
func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// draw returns one of a list, and notes nothing.
func draw[T any](c *testCase, from []T) T { return from[c.rng.IntN(len(from))] }

// oneIn is true once in n times.
func oneIn(rng *rand.Rand, n int) bool { return rng.IntN(n) == 0 }

// upTo returns a number from 0 to n, small ones as often as large ones.
func upTo(rng *rand.Rand, n int) int {
	if n <= 0 {
		return 0
	}
	return min(n, int(rng.Uint64N(uint64(n)+1)>>rng.IntN(12)))
}
