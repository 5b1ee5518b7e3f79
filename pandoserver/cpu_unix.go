//go:build unix

package pandoserver

import (
	"syscall"
	"time"
)

// processorTime returns how much time of processors the process has taken.
func processorTime() (user, system time.Duration, ok bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0, false
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), true
}
