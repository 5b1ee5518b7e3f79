package arena

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// addressesLeft returns the bytes of addresses that the process may still map
// (RLIMIT_AS); math.MaxInt64 for no limit.
func addressesLeft() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur >= math.MaxInt64 {
		return math.MaxInt64
	}
	statm, err := os.ReadFile("/proc/self/statm") // pages: all that are mapped, then those in memory
	if err != nil {
		return math.MaxInt64
	}
	all, _, _ := bytes.Cut(statm, []byte(" "))
	pages, err := strconv.ParseInt(string(all), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return int64(limit.Cur) - pages*int64(os.Getpagesize())
}
