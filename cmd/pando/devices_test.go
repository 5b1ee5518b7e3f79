package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
)

// On any machine the command lists the CPU, GPUs or why there are none, and the
// interpreter.
func TestDevices(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"devices"}, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	t.Log("\n" + out.String())
	for _, want := range []string{"CPU ", fmt.Sprintf("%d cores", runtime.NumCPU()), "Go", "(active)", "huge pages", "GPU", "interpreter"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q", want)
		}
	}
}

// The JSON has the same facts, and decodes to what was encoded.
func TestDevicesJSON(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"devices", "--json"}, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var inv inventory
	if err := json.Unmarshal(out.Bytes(), &inv); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	c := inv.CPU
	if c.Model == "" || c.Cores != runtime.NumCPU() || !slices.Contains(c.Paths, c.Active) || c.HugePages == "" {
		t.Errorf("CPU: %+v", c)
	}
	if inv.GPUs == nil || (len(inv.GPUs) == 0) != (inv.NoGPU != "") {
		t.Errorf("%d GPUs, and %q", len(inv.GPUs), inv.NoGPU)
	}
	if inv.Interpreter.Name == "" || inv.Interpreter.TotalBytes <= 0 {
		t.Errorf("interpreter: %+v", inv.Interpreter)
	}
	var again bytes.Buffer
	if err := inv.json(&again); err != nil || again.String() != out.String() {
		t.Errorf("%v; written again:\n%s", err, again.String())
	}
}

// closings is a device that counts how often it is closed.
type closings struct {
	device.Device
	n *int
}

func (c closings) Close() error { *c.n++; return c.Device.Close() }

// GPUs are opened, queried and closed; one that cannot be opened is reported,
// and the others are still listed.
func TestDescribeGPUs(t *testing.T) {
	closed, broken := 0, errors.New("fell off the bus")
	info := device.Info{Name: "Card", Driver: "1.2, CUDA 12.4", Capability: 89, Processors: 100, L2Bytes: 96 << 20, TotalBytes: 24 << 30}
	list := func() ([]device.Info, error) { return []device.Info{info, info, info}, nil }
	open := func(i int) (device.Device, error) {
		if i == 1 {
			return nil, broken
		}
		return closings{ptx.New(ptx.Memory(3 << 30)), &closed}, nil
	}
	gpus, err := describeGPUs(list, open)
	if err != nil || len(gpus) != 3 || closed != 2 {
		t.Fatalf("%v, %v, %d closed", gpus, err, closed)
	}
	want := gpu{Number: 2, Name: "Card", Capability: "8.9", Processors: 100, CacheBytes: 96 << 20, TotalBytes: 24 << 30, FreeBytes: 3 << 30, Driver: "1.2, CUDA 12.4"}
	if !reflect.DeepEqual(gpus[2], want) {
		t.Errorf("%+v", gpus[2])
	}
	if gpus[0].Error != "" || gpus[1].Error != broken.Error() || gpus[1].FreeBytes != 0 {
		t.Errorf("%+v", gpus)
	}
	var out bytes.Buffer
	inventory{GPUs: gpus}.print(&out)
	for _, want := range []string{"GPU 0         Card, compute capability 8.9\n", "24.0 GiB, 3.0 GiB free", "24.0 GiB; cannot be used: fell off the bus", "100, with 96.0 MiB", "1.2, CUDA 12.4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

// Every reason for having no GPU comes with something to do about it, in one
// line.
func TestAdvice(t *testing.T) {
	for _, cause := range []error{device.ErrNoDriver, device.ErrNoDevice, errors.New("something else")} {
		gpus, err := describeGPUs(func() ([]device.Info, error) { return nil, fmt.Errorf("%w: as it is", cause) }, nil)
		if gpus == nil || len(gpus) != 0 || !errors.Is(err, cause) {
			t.Errorf("%v: %v, %v", cause, gpus, err)
		}
		if a := advice(err); a == "" || strings.Contains(a, "\n") {
			t.Errorf("%v: %q", cause, a)
		}
	}
}

func TestCPUModel(t *testing.T) {
	for text, want := range map[string]string{
		"":                               runtime.GOARCH,
		"processor\t: 0\nBogoMIPS\t: 50": runtime.GOARCH,
		"model name\t:\n":                runtime.GOARCH,
		"processor\t: 0\nmodel\t\t: 17\nmodel name\t: A CPU @ 3.0: GHz\nmodel name\t: B\n": "A CPU @ 3.0: GHz",
	} {
		if got := cpuModel(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestHugePages(t *testing.T) {
	for _, c := range []struct{ enabled, free1G, want string }{
		{"", "", "left to the system"},
		{"always [madvise] never", "", "madvise"},
		{"always [madvise] never", "0", "madvise"},
		{"[always] madvise never", "12", "always, and 12 of 1 GiB free"},
	} {
		if got := hugePages(c.enabled, c.free1G); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.enabled, c.free1G, got, c.want)
		}
	}
}
