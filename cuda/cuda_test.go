package cuda_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	_ "github.com/pando-index/pando/cuda"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index/indextest"
)

// asked returns what Stats say of an index that was asked onto a device, and what was
// logged.
func asked(t *testing.T, on pando.Device) (s pando.Stats, logged string) {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	f, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(on))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if v, ok := f.Get(2); v != 5 || !ok {
		t.Errorf("On(%v): Get(2) = %d, %v", on, v, ok)
	}
	return f.Stats(), log.String()
}

// With the import, a program uses the GPU of the machine, or knows that there is none.
func TestLinked(t *testing.T) {
	s, logged := asked(t, pando.GPU(0))
	if s.Device != pando.GPU(0) && !strings.Contains(s.Reason, "on this machine") && logged == "" {
		t.Errorf("on %v: %q", s.Device, s.Reason)
	}
}

// A GPU that cannot be used is logged; a machine that has none is not.
func TestLog(t *testing.T) {
	for err, want := range map[error]bool{device.ErrNoDriver: false, device.ErrNoGPU: false, device.ErrLost: true} {
		indextest.UseGPU(t, func(int) (device.Device, error) { return nil, err })
		s, logged := asked(t, pando.GPU(0))
		if s.Device != pando.CPU || strings.Contains(logged, err.Error()) != want {
			t.Errorf("%v: on %v, logged %q", err, s.Device, logged)
		}
	}
}

// Without the import, the CPU answers, Stats name it, and nothing is logged.
func TestNotLinked(t *testing.T) {
	indextest.UseGPU(t, nil)
	for _, on := range []pando.Device{pando.GPU(0), pando.GPU(7), pando.Hybrid(0)} {
		s, logged := asked(t, on)
		if want := `import _ "github.com/pando-index/pando/cuda"`; s.Device != pando.CPU || !strings.Contains(s.Reason, want) || logged != "" {
			t.Errorf("On(%v): on %v, %q, logged %q", on, s.Device, s.Reason, logged)
		}
	}
	tree, err := pando.TreeOf([]uint64{1}, []uint64{2}, pando.On(pando.GPU(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	words, err := pando.TreeOf([]string{"a"}, []uint64{2}, pando.On(pando.GPU(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer words.Close()
	for _, s := range []pando.Stats{tree.Stats(), words.Stats()} {
		if s.Device != pando.CPU || !strings.Contains(s.Reason, "pando/cuda") {
			t.Errorf("a tree is on %v: %q", s.Device, s.Reason)
		}
	}
	_, err = pando.NewTree[uint64, uint64](pando.On(pando.GPU(0)), pando.DeviceOnly())
	if err == nil || !strings.Contains(err.Error(), "pando/cuda") {
		t.Errorf("DeviceOnly: %v", err)
	}
	b, err := pando.NewBuffer[uint64](10)
	if err != nil || b.Locked() || len(b.Slice()) != 10 {
		t.Errorf("NewBuffer: locked %v, %v", b.Locked(), err)
	}
	b.Close()
}
