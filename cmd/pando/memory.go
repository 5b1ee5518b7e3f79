package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// available estimates the bytes of memory that this process may still
// allocate: what the system has to spare, or what its control group leaves it,
// whichever is less. 0 means not known.
func available() int64 { return availableIn("/proc", "/sys/fs/cgroup") }

func availableIn(proc, groups string) int64 {
	least := int64(math.MaxInt64)
	if kib, ok := meminfo(readText(filepath.Join(proc, "meminfo")), "MemAvailable"); ok {
		least = min(least, kib<<10)
	}
	for _, g := range controlGroups(readText(filepath.Join(proc, "self/cgroup")), groups) {
		if left, ok := leftInGroup(g); ok {
			least = min(least, left)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return max(least, 1)
}

func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// meminfo finds a number of KiB in the text of /proc/meminfo, or a number in
// any text of lines with a name and a number.
func meminfo(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && strings.TrimSuffix(f[0], ":") == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// controlGroups returns the folders of the groups that this process is in,
// each with all groups above it, for both versions of control groups.
func controlGroups(self, root string) (folders []string) {
	add := func(base, group string) {
		for g := filepath.Clean("/" + group); ; g = filepath.Dir(g) {
			folders = append(folders, filepath.Join(base, g))
			if g == "/" {
				return
			}
		}
	}
	for line := range strings.Lines(self) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[0] == "0":
			add(root, parts[2])
		case strings.Contains(","+parts[1]+",", ",memory,"):
			add(filepath.Join(root, "memory"), parts[2])
		}
	}
	return folders
}

// leftInGroup returns the bytes that a group's limit leaves. Cached files
// count as used by the group but are evicted when memory is needed, so they do
// not count here.
func leftInGroup(folder string) (int64, bool) {
	for _, v := range []struct{ limit, used, cached string }{
		{"memory.max", "memory.current", "inactive_file"},
		{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
	} {
		limit, err := strconv.ParseInt(strings.TrimSpace(readText(filepath.Join(folder, v.limit))), 10, 64)
		if err != nil { // absent, or "max"
			continue
		}
		used, err := strconv.ParseInt(strings.TrimSpace(readText(filepath.Join(folder, v.used))), 10, 64)
		if err != nil {
			continue
		}
		cached, _ := meminfo(readText(filepath.Join(folder, "memory.stat")), v.cached)
		return max(0, limit-used+cached), true
	}
	return 0, false
}

// budget is the memory that a build may take.
type budget struct {
	bytes  int64 // 0: not known, and not limited
	byUser bool  // set by --memory
}

func newBudget(limit int64) budget {
	if limit > 0 {
		return budget{limit, true}
	}
	return budget{available(), false}
}

// check returns an error if need bytes are too many for the given number of
// rows: those read so far, or a forecast of all.
func (b budget) check(need int64, rows int, forecast bool) error {
	if b.bytes == 0 || need <= b.bytes {
		return nil
	}
	what := fmt.Sprintf("the %s rows so far need", thousands(int64(rows)))
	if forecast {
		what = fmt.Sprintf("this input has about %s rows, which need", thousands(int64(rows)))
	}
	limit, advice := "this machine has "+binary(b.bytes)+" free", "take a machine with more memory"
	if b.byUser {
		limit, advice = "--memory allows "+binary(b.bytes), "allow more"
	}
	return fmt.Errorf("%s %s to build, and %s; %s, narrower types (--type), sorted input, or fewer rows", what, binary(need), limit, advice)
}
