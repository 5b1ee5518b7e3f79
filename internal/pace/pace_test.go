package pace

import (
	"strconv"
	"testing"
	"time"
)

// A name may do some things at once, and then one in each interval; others are not kept from it.
func TestPace(t *testing.T) {
	l := New(3, time.Second, 10)
	now := time.Unix(1000, 0)
	try := func(name string, want bool) {
		t.Helper()
		if got := l.Take(name, now); got != want {
			t.Errorf("%s at %v: %v", name, now.Unix(), got)
		}
	}
	for range 3 {
		try("a", true)
	}
	try("a", false)
	try("b", true)
	now = now.Add(time.Second)
	try("a", true)
	try("a", false)
	l.Give("a")
	try("a", true)
	try("a", false)
	now = now.Add(time.Hour)
	for range 3 {
		try("a", true)
	}
	try("a", false)
}

// Names are bounded, and those are forgotten first that have waited long enough.
func TestNames(t *testing.T) {
	l := New(1, time.Second, 4)
	now := time.Unix(1000, 0)
	for i := range 100 {
		if !l.Take(strconv.Itoa(i), now) {
			t.Errorf("%d has done nothing yet", i)
		}
		if len(l.spent) > 4 {
			t.Fatalf("%d names", len(l.spent))
		}
	}
	now = now.Add(time.Minute)
	l.Take("a", now)
	l.Take("b", now)
	if l.Take("a", now) {
		t.Error("a was forgotten while others could be")
	}
	l.Give("nobody")
}
