package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine describes what the figures were measured on. It does not name the
// host.
type machine struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	MaxProcs  int    `json:"gomaxprocs"`
	Memory    int64  `json:"memory_bytes,omitempty"`
	Go        string `json:"go"`
	OS        string `json:"os"`
	HugePages string `json:"huge_pages"`
}

func describeMachine() machine {
	return machine{
		CPU:       cpuModel(),
		Cores:     runtime.NumCPU(),
		MaxProcs:  runtime.GOMAXPROCS(0),
		Memory:    memInfo("MemTotal"),
		Go:        runtime.Version(),
		OS:        strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease")),
		HugePages: pageMode(),
	}
}

func (m machine) String() string {
	text := fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)
	if m.Memory > 0 {
		text += fmt.Sprintf(", %.0f GiB", float64(m.Memory)/(1<<30))
	}
	return fmt.Sprintf("%s; %s, %s; huge pages: %s", text, m.Go, m.OS, m.HugePages)
}

// cpuModel returns the name that Linux reports; elsewhere, or if there is
// none, the architecture.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// pageMode returns the system's setting for huge pages: the transparent ones,
// and how many of 1 GiB are reserved.
func pageMode() string {
	mode := "unknown"
	if _, rest, ok := strings.Cut(firstLine("/sys/kernel/mm/transparent_hugepage/enabled"), "["); ok {
		mode, _, _ = strings.Cut(rest, "]")
	}
	reserved := firstLine("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages")
	if reserved != "" && reserved != "0" {
		mode += ", " + reserved + " of 1 GiB reserved"
	}
	return mode
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// memInfo returns a field of /proc/meminfo in bytes; 0 if there is none.
func memInfo(field string) int64 { return procBytes("/proc/meminfo", field) }

// procBytes reads a line such as "MemFree: 123 kB" of a file in /proc, in
// bytes; it returns 0 if there is none.
func procBytes(path, field string) int64 {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == field+":" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
