// Package tool finds programs that tests compare with, or build with.
package tool

import (
	"os"
	"os/exec"
	"testing"
)

// Path returns where a program of a package of Debian's is. A test without it is skipped,
// and fails where the environment variable PANDO_NEEDS_TOOLS is set.
func Path(t testing.TB, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing := t.Skipf
		if os.Getenv("PANDO_NEEDS_TOOLS") != "" {
			missing = t.Fatalf
		}
		missing("%v (Debian: apt-get install %s)", err, debian)
	}
	return path
}
