package main

import (
	"math"

	"github.com/pando-index/pando/internal/hostmem"
)

// available estimates the bytes of memory that this process may still allocate:
// the memory that the system has to spare, or that a limit of the process
// leaves it, whichever is less. 0 means not known.
func available() int64 { return newBudget(0).bytes }

// spare returns the memory that the system can still give.
func spare(proc string) budget {
	free := hostmem.Spare(proc)
	if free == math.MaxInt64 {
		return unlimited
	}
	return unlimited.or(free, "this machine has %s free", "take a machine with more memory")
}
