package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of settings that is too long is refused, rather than read in part.
func TestLongConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.conf")
	for extra, wrong := range map[int]bool{0: false, 1: true, mostConfig: true} {
		last := "\nidle-timeout = -1s\n"
		text := strings.Repeat("# a comment\n", mostConfig/12)
		text = text[:mostConfig-len(last)-1] + strings.Repeat("#", extra) + last + "#"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := newServe()
		set := &settings{flags: cmd.Flags(), prefix: "PANDO_SERVE_"}
		err := set.load(path, nil)
		if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%d bytes: %v", len(text), err)
		}
		if idle := cmd.Flags().Lookup("idle-timeout").Value.String(); !wrong && idle != "-1s" {
			t.Errorf("the last line is not read: %s", idle)
		}
	}
}
