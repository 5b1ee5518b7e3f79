package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// full is a device that has room for so many bytes.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	n := min(f.room, len(b))
	if f.room -= n; n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// A command whose result cannot be written has failed, whatever it prints: also a help
// page, and also where it is the last line that has no room.
func TestFullDevice(t *testing.T) {
	folder := t.TempDir()
	table, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	must(t, "gen", "-n", "1000", "-o", table)
	must(t, "build", table, "-o", file, "-k", "key", "--value", "value", "-q")
	lines := [][]string{
		{"build", table, "-o", file + "2", "-k", "key", "-q", "--json"},
		{"info", file}, {"info", file, "--json"}, {"verify", file}, {"verify", file, "--json"},
		{"get", file, "--from", table, "--key", "key"}, {"rank", file, "1", "2"}, {"range", file}, {"head", file}, {"tail", file, "--json"},
		{"count", file}, {"count", file, "--json"}, {"join", file, table, "--on", "key", "--as", "v"},
		{"sum", file}, {"stats", file}, {"stats", file, "--json"}, {"histogram", file}, {"histogram", file, "--json"},
		{"gen", "-n", "10"}, {"gen", "-n", "10", "-f", "u64"}, {"bench", "-n", "1000", "--queries", "10"}, {"demo", "-n", "1000"}, {"demo", "-n", "1000", "--json"},
		{"devices"}, {"devices", "--json"}, {"version"}, {"--version"}, {"--help"}, {"help"}, {"help", "formats"},
		{"completion", "bash"}, {"__complete", "ge"},
	}
	for _, c := range newRoot().Commands() {
		lines = append(lines, []string{c.Name(), "--help"})
	}
	for _, args := range lines {
		var whole bytes.Buffer
		if code := run(args, &whole, new(bytes.Buffer)); code != exitOK || whole.Len() == 0 {
			t.Errorf("pando %v: exit code %d after %d bytes", args, code, whole.Len())
		}
		for _, room := range []int{0, 1} {
			failsOnFull(t, room, args)
		}
	}
	failsOnFull(t, 0, []string{"view", file}) // ends rather than serve a page nobody finds
	failsOnFull(t, 0, []string{"prefix", stringIndex(t), "h"})
}

func failsOnFull(t *testing.T, room int, args []string) {
	var errs bytes.Buffer
	if code := run(args, &full{room}, &errs); code != exitFailure || !strings.Contains(errs.String(), "cannot write the output: no space left") {
		t.Errorf("pando %v with room for %d bytes: exit code %d, stderr %q", args, room, code, errs.String())
	}
}

// stringIndex makes an index of strings.
func stringIndex(t *testing.T) string {
	folder := t.TempDir()
	table, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	must(t, "gen", "-n", "1000", "--keys", "url", "-o", table)
	must(t, "build", table, "-o", file, "-k", "key", "-t", "key=string", "-q")
	return file
}

func must(t *testing.T, args ...string) {
	t.Helper()
	var errs bytes.Buffer
	if code := run(args, new(bytes.Buffer), &errs); code != exitOK {
		t.Fatalf("pando %v: exit code %d: %s", args, code, errs.String())
	}
}
