package peers

import (
	"errors"
	"os"
	"testing"

	"github.com/pando-index/pando/bench/contest/contesttest"
)

// A program that cannot be compiled leaves no folder behind, either.
func TestProgramsAreRemoved(t *testing.T) {
	s := contesttest.Session(t, 43)
	none := errors.New("no compiler")
	for range 2 { // it is tried once
		if _, err := gpuPrograms.build(s, "a peer", func(string) (string, error) { defer func() { none = nil }(); return "", none }); err == nil {
			t.Fatal("a program without a compiler")
		}
	}
	dir := gpuPrograms.dir
	if err := gpuPrograms.remove(); err != nil || dir == "" {
		t.Fatal(dir, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}
