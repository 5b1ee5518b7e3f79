// Package pace bounds how often somebody may try something.
package pace

import (
	"sync"
	"time"
)

// Limiter lets each name try some things at once, and then one in each interval.
type Limiter struct {
	burst    int
	interval time.Duration
	names    int

	mu    sync.Mutex
	spent map[string]time.Time // when all that a name has tried is forgotten
}

// New returns a limiter: of each name, burst things at once, and then one in each interval. It remembers as many
// names as it is told: where there are more, one of them is forgotten.
func New(burst int, interval time.Duration, names int) *Limiter {
	if burst < 1 || interval <= 0 || names < 1 {
		panic("pace: burst, interval and names are above zero")
	}
	return &Limiter{burst: burst, interval: interval, names: names, spent: map[string]time.Time{}}
}

// Take reports whether a name may try something now, and takes note of it if so.
func (l *Limiter) Take(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.spent[name]
	if until.Before(now) {
		until = now
	}
	until = until.Add(l.interval)
	if until.Sub(now) > time.Duration(l.burst)*l.interval {
		return false
	}
	if !known && len(l.spent) >= l.names {
		l.forget(now)
	}
	l.spent[name] = until
	return true
}

// Give takes one thing back that a name was let do: it was none to be counted.
func (l *Limiter) Give(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, ok := l.spent[name]; ok {
		l.spent[name] = until.Add(-l.interval)
	}
}

// forget forgets all names that may do as they like again, and any other if there are none.
func (l *Limiter) forget(now time.Time) {
	for name, until := range l.spent {
		if !until.After(now) {
			delete(l.spent, name)
		}
	}
	for name := range l.spent {
		if len(l.spent) < l.names {
			return
		}
		delete(l.spent, name)
	}
}
