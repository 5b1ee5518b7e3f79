package pando_test

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/facetest"
)

// leaksNothing checks that do leaves nothing behind, with the garbage
// collector switched off so that it cannot tidy up.
func leaksNothing(t *testing.T, do func()) {
	t.Helper()
	facetest.NoneInUse(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	do()
	if n := arena.InUse(); n != 0 {
		t.Errorf("%d bytes leaked", n)
	}
}

// bad is a build that must fail.
type bad struct {
	name  string
	build func() error
	want  error
	says  []string // what the message must name
}

// failing makes a build of an error alone.
func failing[K pando.Key, V any](keys []K, vals []V, opts ...pando.Option) func() error {
	return func() error {
		ix, err := pando.Freeze(keys, vals, opts...)
		if err == nil {
			ix.Close()
		}
		return err
	}
}

func checkBad(t *testing.T, cases []bad) {
	t.Helper()
	leaksNothing(t, func() {
		for _, c := range cases {
			err := c.build()
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
				continue
			}
			for _, s := range append(c.says, "pando: ") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%s: %q does not say %q", c.name, err, s)
				}
			}
		}
	})
}

func TestLengthsThatDiffer(t *testing.T) {
	checkBad(t, []bad{
		{"more keys", failing(make([]uint64, 3), make([]uint64, 2)), pando.ErrLength, []string{"3 keys", "2 values"}},
		{"more values", failing(make([]float64, 2), make([]string, 3)), pando.ErrLength, []string{"2 keys", "3 values"}},
		{"no values", failing[int8, uint32](make([]int8, 5), nil), pando.ErrLength, []string{"5 keys", "0 values"}},
		{"strings", failing([]string{"a"}, []string{}), pando.ErrLength, []string{"1 keys"}},
		{"no keys", failing([]uint64{}, make([]struct{}, 3)), pando.ErrLength, []string{"0 keys", "3 values"}},
		{"some empty values", failing(make([]uint64, 4), make([]struct{}, 3)), pando.ErrLength, []string{"4 keys"}},
	})
}

func TestLayoutsThatCannotBe(t *testing.T) {
	k64, k32 := make([]uint64, 4), make([]int32, 4)
	pairs := pando.Layout(pando.Pairs)
	out := []string{"leave Layout out"}
	checkBad(t, []bad{
		{"unknown", failing(k64, k64, pando.Layout(77)), pando.ErrLayout, []string{"Layout(77)", "AutoLayout, Pairs, Apart, Implicit, Blocked, Compressed or Radix"}},
		{"unknown, strings", failing([]string{}, k64[:0], pando.Layout(9)), pando.ErrLayout, []string{"Layout(9)"}},
		{"4 beside 8", failing(make([]int64, 4), make([]uint32, 4), pairs), pando.ErrLayout, append(out, "8-byte values")},
		{"8 beside 4", failing(k32, k64, pairs), pando.ErrLayout, append(out, "4-byte values")},
		{"8 beside 2", failing(make([]int16, 4), make([]facetest.Record, 4), pairs), pando.ErrLayout, append(out, "4-byte values")},
		{"4096 beside 8", failing(make([]int64, 4), make([]page, 4), pairs), pando.ErrLayout, out},
		{"pointers", failing(k64, make([]*int, 4), pairs), pando.ErrLayout, append(out, "without pointers")},
		{"nothing", failing(k64, make([]struct{}, 4), pairs), pando.ErrLayout, out},
		{"strings", failing([]string{"a"}, []uint64{1}, pairs), pando.ErrLayout, out},
	})
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	keys := []uint64{3, 1, 2}
	checkBad(t, []bad{
		{"nil", failing(keys, keys, nil), pando.ErrOption, []string{"leave it out"}},
		{"nil behind another", failing(keys, keys, pando.Workers(1), nil), pando.ErrOption, nil},
		{"workers", failing(keys, keys, pando.Workers(-1)), pando.ErrOption, []string{"Workers(-1)", "0 means one for each core"}},
		{"limit", failing(keys, keys, pando.MemoryLimit(-5)), pando.ErrOption, []string{"MemoryLimit(-5)", "0 means no limit"}},
		{"response time", failing(keys, keys, pando.ResponseTime(-1)), pando.ErrOption, []string{"ResponseTime(-1ns)", "0 means no bound"}},
		{"pages", failing(keys, keys, pando.HugePages(9)), pando.ErrOption, []string{"HugePages(9)", "SmallPages"}},
		{"strings", failing([]string{"a"}, keys[:1], pando.Workers(-2)), pando.ErrOption, []string{"Workers(-2)"}},
	})
	_, err := pando.FreezeSeq(func(func(uint64, uint64) bool) {}, pando.Workers(-1))
	if !errors.Is(err, pando.ErrOption) {
		t.Errorf("FreezeSeq: %v", err)
	}
}

func TestDevicesThatAreNotThere(t *testing.T) {
	keys := []uint64{3, 1, 2}
	t.Setenv("PANDO_DEVICE", "")
	checkBad(t, []bad{
		{"GPU", failing(keys, keys, pando.On(pando.GPU(-1))), pando.ErrNoDevice, []string{"gpu:-1", "from 0"}},
		{"hybrid", failing(keys, keys, pando.On(pando.Hybrid(-3))), pando.ErrNoDevice, []string{"hybrid:-3", "from 0"}},
		{"strings", failing([]string{"a"}, keys[:1], pando.On(pando.GPU(-1))), pando.ErrNoDevice, []string{"gpu:-1"}},
	})
	for _, env := range []string{"hybrid:-1", " hybrid:y ", "tpu", "gpu:x", "gpu:-1", "cpu:0", "auto:1", ":", "0"} {
		t.Setenv("PANDO_DEVICE", env)
		checkBad(t, []bad{
			{env, failing(keys, keys), pando.ErrNoDevice, []string{"PANDO_DEVICE=", env}},
			{env + ", On(Auto)", failing(keys, keys, pando.On(pando.Auto)), pando.ErrNoDevice, nil},
		})
		if err := failing(keys, keys, pando.On(pando.CPU))(); err != nil {
			t.Errorf("PANDO_DEVICE=%s, On(CPU): %v", env, err)
		}
	}
	// Without a GPU the CPU answers.
	for _, env := range []string{"", "auto", "cpu", "CPU", " cpu ", "gpu:0", "hybrid", " Hybrid:0 "} {
		t.Setenv("PANDO_DEVICE", env)
		if err := failing(keys, keys)(); err != nil {
			t.Errorf("PANDO_DEVICE=%q: %v", env, err)
		}
	}
}

func TestDeviceNames(t *testing.T) {
	for want, d := range map[string]pando.Device{
		"auto": pando.Auto, "cpu": pando.CPU, "gpu:2": pando.GPU(2), "hybrid:0": pando.Hybrid(0),
	} {
		if d.String() != want {
			t.Errorf("%v, want %s", d, want)
		}
	}
	if pando.Pairs.String() != "pairs" || pando.LayoutKind(9).String() != "LayoutKind(9)" {
		t.Errorf("layouts are called %v and %v", pando.Pairs, pando.LayoutKind(9))
	}
}
