package arena

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/pando-index/pando/internal/hostmem"
)

// addressesLeft returns the bytes of addresses that the process may still map
// (RLIMIT_AS); math.MaxInt64 for no limit.
func addressesLeft() int64 {
	limit := addressLimit()
	kib, ok := ofProcess("VmSize")
	if limit == math.MaxInt64 || !ok {
		return math.MaxInt64
	}
	return limit - kib<<10
}

// addressLimit returns the bytes of addresses that the process may map in all;
// math.MaxInt64 for no limit.
func addressLimit() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit.Cur)
}

// threads returns the number of threads of this process; 0 if nothing tells.
func threads() int {
	n, _ := ofProcess("Threads")
	return int(n)
}

func ofProcess(name string) (int64, bool) {
	return hostmem.Field(hostmem.Text(hostmem.Proc+"/self/status"), name)
}
