package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/simd"
)

// inventory is the devices of a machine that an index can run on.
type inventory struct {
	CPU         cpu         `json:"cpu"`
	GPUs        []gpu       `json:"gpus"`
	NoGPU       string      `json:"no_gpu,omitempty"` // why there is none, and what to do
	Interpreter interpreter `json:"interpreter"`
}

type cpu struct {
	Model     string   `json:"model"`
	Cores     int      `json:"cores"`
	Paths     []string `json:"paths"` // instruction sets that can execute searches
	Active    string   `json:"active"`
	HugePages string   `json:"huge_pages"`
}

type gpu struct {
	Number     int    `json:"number"`
	Name       string `json:"name"`
	Capability string `json:"compute_capability"`
	Processors int    `json:"multiprocessors"`
	CacheBytes int64  `json:"l2_bytes"`
	TotalBytes int64  `json:"total_bytes"`
	FreeBytes  int64  `json:"free_bytes"`
	Driver     string `json:"driver"`
	Error      string `json:"error,omitempty"` // why it cannot be used
}

type interpreter struct {
	Name       string `json:"name"`
	Capability string `json:"compute_capability"`
	TotalBytes int64  `json:"total_bytes"`
}

func takeInventory() inventory {
	inv := inventory{CPU: describeCPU(), Interpreter: describeInterpreter()}
	var err error
	inv.GPUs, err = describeGPUs(cuda.Devices, cuda.Open)
	if err != nil {
		inv.NoGPU = fmt.Sprintf("%v; %s", err, advice(err))
	}
	return inv
}

func describeCPU() cpu {
	text, _ := os.ReadFile("/proc/cpuinfo")
	c := cpu{
		Model: cpuModel(string(text)), Cores: runtime.NumCPU(), Active: simd.Active().String(),
		HugePages: hugePages(
			readLine("/sys/kernel/mm/transparent_hugepage/enabled"),
			readLine("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages")),
	}
	for _, p := range simd.Paths() {
		c.Paths = append(c.Paths, p.String())
	}
	return c
}

// cpuModel finds the CPU's name in the text of /proc/cpuinfo. If there is
// none, it returns the architecture.
func cpuModel(text string) string {
	for line := range strings.Lines(text) {
		field, value, _ := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); strings.TrimSpace(field) == "model name" && value != "" {
			return value
		}
	}
	return runtime.GOARCH
}

// hugePages describes which huge pages an index can get: enabled is Linux's
// list of modes with the chosen one in brackets, free1G the number of free 1
// GiB pages.
func hugePages(enabled, free1G string) string {
	_, mode, ok := strings.Cut(enabled, "[")
	if mode, _, _ = strings.Cut(mode, "]"); !ok {
		return "left to the system"
	}
	if free1G != "" && free1G != "0" {
		mode += ", and " + free1G + " of 1 GiB free"
	}
	return mode
}

func readLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// describeGPUs lists the GPUs, and opens each to learn how much memory is
// free. One that cannot be opened is listed with the reason.
func describeGPUs(list func() ([]device.Info, error), open func(int) (device.Device, error)) ([]gpu, error) {
	infos, err := list()
	gpus := make([]gpu, len(infos)) // never nil: JSON shows an empty list
	for i, info := range infos {
		gpus[i] = gpu{
			Number: i, Name: info.Name, Capability: capability(info), Processors: info.Processors,
			CacheBytes: info.L2Bytes, TotalBytes: info.TotalBytes, Driver: info.Driver,
		}
		free, err := freeBytes(i, open)
		if gpus[i].FreeBytes = free; err != nil {
			gpus[i].Error = err.Error()
		}
	}
	return gpus, err
}

func freeBytes(number int, open func(int) (device.Device, error)) (int64, error) {
	d, err := open(number)
	if err != nil {
		return 0, err
	}
	free, err := d.FreeBytes()
	return free, errors.Join(err, d.Close())
}

func capability(info device.Info) string {
	return fmt.Sprintf("%d.%d", info.Capability/10, info.Capability%10)
}

func describeInterpreter() interpreter {
	d := ptx.New()
	defer d.Close()
	info := d.Info()
	return interpreter{Name: info.Name, Capability: capability(info), TotalBytes: info.TotalBytes}
}

// advice returns advice for a machine whose GPUs cannot be listed.
func advice(err error) string {
	switch {
	case errors.Is(err, device.ErrNoDriver):
		return noDriverAdvice
	case errors.Is(err, device.ErrNoDevice):
		return "nvidia-smi tells whether the driver sees one; a container must be started with access to it"
	}
	return "nvidia-smi tells more about the state of the driver"
}

func (inv inventory) json(out io.Writer) error { return writeJSON(out, inv) }

// print writes the inventory for people: a line for each item, and indented
// lines for its details.
func (inv inventory) print(out io.Writer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	c := inv.CPU
	line("CPU", "%s, %d cores", c.Model, c.Cores)
	line("  searches by", "%s", markActive(c.Paths, c.Active))
	line("  huge pages", "%s", c.HugePages)
	for _, g := range inv.GPUs {
		line(fmt.Sprintf("GPU %d", g.Number), "%s, compute capability %s", g.Name, g.Capability)
		if g.Error == "" {
			line("  memory", "%s, %s free", binary(g.TotalBytes), binary(g.FreeBytes))
		} else {
			line("  memory", "%s; cannot be used: %s", binary(g.TotalBytes), g.Error)
		}
		line("  processors", "%d, with %s of shared cache", g.Processors, binary(g.CacheBytes))
		line("  driver", "%s", g.Driver)
	}
	if inv.NoGPU != "" {
		line("GPU", "none: %s", inv.NoGPU)
	}
	p := inv.Interpreter
	line("interpreter", "%s, compute capability %s, up to %s: runs GPU kernels without a GPU, for tests", p.Name, p.Capability, binary(p.TotalBytes))
}

func markActive(paths []string, active string) string {
	marked := make([]string, len(paths))
	for i, p := range paths {
		if marked[i] = p; p == active {
			marked[i] += " (active)"
		}
	}
	return strings.Join(marked, ", ")
}

// binary formats a size in GiB, or in MiB if that reads better.
func binary(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
