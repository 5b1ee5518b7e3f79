package pace

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Of each message some records are handed on, with how many were left out, and others are not kept from it.
func TestQuiet(t *testing.T) {
	var b strings.Builder
	h := Quiet(slog.NewTextHandler(&b, nil), 3, time.Hour)
	log := slog.New(h)
	for range 10 {
		log.With("a", 1).WithGroup("g").Info("one", "b", 2)
	}
	log.Warn("two")
	if n := strings.Count(b.String(), "msg=one a=1 g.b=2\n"); n != 3 {
		t.Errorf("%d records: %s", n, b.String())
	}
	if n := strings.Count(b.String(), "\n"); n != 4 || !strings.Contains(b.String(), "msg=two left_out=7\n") {
		t.Errorf("%s", b.String())
	}
	if log.Debug("three"); strings.Contains(b.String(), "three") {
		t.Error("levels are lost")
	}
}
