package arena

import (
	"math"
	"slices"

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
	return hostmem.Field(textOf(hostmem.Proc+"/self/status"), name)
}

// textOf returns the contents of a file, or nothing if there is none. os.ReadFile would
// ask for the file's time, and link the formatting of times and time zones into every
// program.
func textOf(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return ""
		case n == 0:
			return string(text)
		default:
			text = slices.Grow(text[:len(text)+n], 1024)
		}
	}
}
