//go:build !unix

package pandoserver

import "time"

func processorTime() (user, system time.Duration, ok bool) { return 0, 0, false }
