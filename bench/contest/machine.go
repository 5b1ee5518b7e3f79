package contest

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	figures "github.com/pando-index/pando/bench/report"
	"github.com/pando-index/pando/internal/hostmem"
)

// describeMachine returns what figures are measured on. It does not name the host.
func describeMachine() figures.Machine {
	return figures.Machine{
		CPU:       cpuModel(),
		Cores:     runtime.NumCPU(),
		MaxProcs:  runtime.GOMAXPROCS(0),
		Memory:    memInfo("MemTotal"),
		Go:        runtime.Version(),
		OS:        strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease")),
		HugePages: pageMode(),
	}
}

// MachineText returns a machine in a line, with the system it runs.
func MachineText(m figures.Machine) string {
	return fmt.Sprintf("%s; %s, %s; huge pages: %s", m, m.Go, m.OS, m.HugePages)
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
func memInfo(field string) int64 { return ProcBytes("/proc/meminfo", field) }

// ProcBytes reads a line such as "MemFree: 123 kB" of a file in /proc, in
// bytes; it returns 0 if there is none.
func ProcBytes(path, field string) int64 {
	kib, _ := hostmem.Field(hostmem.Text(path), field)
	return kib << 10
}
