// Package hostmem finds out how much memory the host has free, as Linux tells it.
package hostmem

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Where Linux tells it.
const (
	Proc   = "/proc"
	Groups = "/sys/fs/cgroup"
)

// Free returns the bytes that this process may still take without others being swapped
// out: the memory that the system has to spare, or that control groups leave it,
// whichever is less. Where nothing tells, it is math.MaxInt64.
func Free() int64 { return min(Spare(Proc), LeftInGroups(Proc, Groups)) }

// Spare returns the bytes that the system can still give, by the files of a folder such
// as /proc, or math.MaxInt64 if they do not tell.
func Spare(proc string) int64 {
	if kib, ok := Field(Text(filepath.Join(proc, "meminfo")), "MemAvailable"); ok {
		return kib << 10
	}
	return math.MaxInt64
}

// LeftInGroups returns the bytes that the control groups of this process leave it, or
// math.MaxInt64 if none has a limit.
func LeftInGroups(proc, groups string) int64 {
	least := int64(math.MaxInt64)
	for _, folder := range controlGroups(Text(filepath.Join(proc, "self/cgroup")), groups) {
		if left, ok := leftInGroup(folder); ok {
			least = min(least, left)
		}
	}
	return least
}

// Text returns what a file has, or nothing if there is none.
func Text(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// Field finds a number in a text of lines with a name and a number, such as KiB in
// /proc/meminfo.
func Field(text, name string) (int64, bool) {
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
		limit, err := strconv.ParseInt(strings.TrimSpace(Text(filepath.Join(folder, v.limit))), 10, 64)
		if err != nil { // absent, or "max"
			continue
		}
		used, err := strconv.ParseInt(strings.TrimSpace(Text(filepath.Join(folder, v.used))), 10, 64)
		if err != nil {
			continue
		}
		stat := Text(filepath.Join(folder, "memory.stat"))
		old, _ := Field(stat, v.cached+"inactive_file")
		young, _ := Field(stat, v.cached+"active_file")
		return max(0, limit-used+old+young), true
	}
	return 0, false
}
