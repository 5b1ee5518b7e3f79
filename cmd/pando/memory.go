package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// available estimates the bytes of memory that this process may still
// allocate: what the system has to spare, or what a limit of the process leaves
// it, whichever is less. 0 means not known.
func available() int64 { return newBudget(0).bytes }

// spare returns what the system can still give.
func spare(proc string) budget {
	kib, ok := meminfo(readText(filepath.Join(proc, "meminfo")), "MemAvailable")
	if !ok {
		return unlimited
	}
	return unlimited.or(kib<<10, "this machine has %s free", "take a machine with more memory")
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
		{"memory.max", "memory.current", ""},
		{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
	} {
		limit, err := strconv.ParseInt(strings.TrimSpace(readText(filepath.Join(folder, v.limit))), 10, 64)
		if err != nil { // absent, or "max"
			continue
		}
		used, err := strconv.ParseInt(strings.TrimSpace(readText(filepath.Join(folder, v.used))), 10, 64)
		if err != nil {
			continue
		}
		stat := readText(filepath.Join(folder, "memory.stat"))
		old, _ := meminfo(stat, v.cached+"inactive_file")
		young, _ := meminfo(stat, v.cached+"active_file")
		return max(0, limit-used+old+young), true
	}
	return 0, false
}
