package devices_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/index/indextest"
)

// extremes are options with the least and the greatest arguments there are: each
// is refused with an error that names it, or does no harm.
var extremes = []struct {
	option pando.Option
	want   error
	says   string
}{
	{pando.Workers(math.MaxInt), nil, ""},
	{pando.Workers(math.MinInt), pando.ErrOption, "Workers(-9223372036854775808)"},
	{pando.Workers(-1), pando.ErrOption, "Workers(-1)"},
	{pando.MemoryLimit(math.MaxInt64), nil, ""},
	{pando.MemoryLimit(math.MinInt64), pando.ErrOption, "MemoryLimit(-9223372036854775808)"},
	{pando.MemoryLimit(-1), pando.ErrOption, "MemoryLimit(-1)"},
	{pando.MemoryLimit(1), pando.ErrMemoryLimit, "the limit is 1"},
	{pando.DeviceMemory(math.MaxInt64), nil, ""},
	{pando.DeviceMemory(math.MinInt64), pando.ErrOption, "DeviceMemory(-9223372036854775808)"},
	{pando.DeviceMemory(-1), pando.ErrOption, "DeviceMemory(-1)"},
	{pando.DeviceMemory(1), nil, ""}, // the CPU answers
	{pando.ResponseTime(math.MaxInt64), nil, ""},
	{pando.ResponseTime(math.MinInt64), pando.ErrOption, "ResponseTime(-2562047h47m16.854775808s)"},
	{pando.ResponseTime(1), nil, ""},
	{pando.HugePages(math.MaxUint8), pando.ErrOption, "HugePages(255)"},
	{pando.Layout(math.MaxUint8), pando.ErrLayout, "Layout(255)"},
	{pando.On(pando.GPU(math.MaxInt)), pando.ErrNoDevice, fmt.Sprintf("gpu:%d", math.MaxInt)},
	{pando.On(pando.GPU(math.MaxInt32)), pando.ErrNoDevice, "gpu:2147483647"},
	{pando.On(pando.GPU(math.MinInt)), pando.ErrNoDevice, fmt.Sprintf("gpu:%d", math.MinInt)},
	{pando.On(pando.Hybrid(math.MaxInt)), pando.ErrNoDevice, fmt.Sprintf("hybrid:%d", math.MaxInt)},
	{pando.On(pando.Hybrid(math.MinInt)), pando.ErrNoDevice, fmt.Sprintf("hybrid:%d", math.MinInt)},
	{pando.On(pando.Device{}), nil, ""}, // Auto
}

func TestOptionsOfExtremes(t *testing.T) {
	indextest.Quiet(t)
	indextest.Interpreted(t, 1)
	indextest.Hasty(t, 64)
	keys, texts := make([]uint64, 300), make([]string, 300)
	for i := range keys {
		keys[i] = uint64(len(keys) - i)
		texts[i] = strconv.Itoa(i)
	}
	for _, on := range []pando.Device{pando.CPU, pando.GPU(0), pando.Hybrid(0)} {
		for i, c := range extremes {
			checkExtreme(t, i, keys, pando.On(on), c.option)
			checkExtreme(t, i, texts, pando.On(on), c.option)
		}
	}
}

// checkExtreme builds with one of the extremes and asks for every key.
func checkExtreme[K pando.Key](t *testing.T, row int, keys []K, opts ...pando.Option) {
	t.Helper()
	c := extremes[row]
	f, err := pando.Freeze(keys, keys, opts...)
	if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
		t.Errorf("row %d: %v, want %v that says %q", row, err, c.want, c.says)
	}
	if err != nil {
		return
	}
	defer f.Close()
	vals := make([]K, len(keys))
	if hits := f.GetBatch(keys, vals, nil); hits != len(keys) || !slices.Equal(vals, keys) {
		t.Errorf("row %d: %d of %d keys are found", row, hits, len(keys))
	}
}

// Arguments of methods: the same.
func TestArgumentsOfExtremes(t *testing.T) {
	keys := evenKeys(100)
	f := mustFreezeOn(t, keys)
	defer f.Close()
	for _, limit := range []int{math.MinInt, -1, 0, 100, math.MaxInt} {
		if r := f.RangeBatch(keys[:2], []uint64{math.MaxUint64, math.MaxUint64}, limit); len(r.Keys) != 199 {
			t.Errorf("limit %d: %d entries", limit, len(r.Keys))
		}
	}
	for _, i := range []int{math.MinInt, math.MaxInt} {
		if text := facetest.PanicOf(func() { f.At(i) }); !strings.Contains(text, "the index has 100 entries") {
			t.Errorf("At(%d): %q", i, text)
		}
	}
	for _, wait := range []time.Duration{1, math.MaxInt64} {
		for _, size := range []int{1, math.MaxInt} {
			b := f.Batcher(wait, size)
			if v, ok := b.Get(4); v != 4 || !ok {
				t.Errorf("Batcher(%v, %d): %d, %v", wait, size, v, ok)
			}
			b.Close()
		}
	}
	for _, bad := range []func(){func() { f.Batcher(math.MinInt64, 0) }, func() { f.Batcher(0, math.MinInt) }} {
		if text := facetest.PanicOf(bad); !strings.Contains(text, "below 0") {
			t.Errorf("Batcher: %q", text)
		}
	}
}

// A buffer of more bytes than there are addresses is refused, however many more,
// with a GPU and without.
func TestBuffersOfExtremes(t *testing.T) {
	for _, interpreted := range []bool{false, true} {
		if interpreted {
			indextest.Interpreted(t, 1)
		} else {
			indextest.UseGPU(t, func(int) (device.Device, error) { return nil, device.ErrNoDriver })
		}
		for _, size := range []uint64{math.MaxInt, 1<<61 + 1, 1 << 60, 1 << 50, 1 << 45} {
			n := int(min(size, math.MaxInt))
			if b, err := pando.NewBuffer[uint64](n); !errors.Is(err, pando.ErrMemoryLimit) {
				t.Errorf("%d values: %v, %v", n, b, err)
			}
		}
		if text := facetest.PanicOf(func() { pando.NewBuffer[uint64](math.MinInt) }); !strings.Contains(text, fmt.Sprintf("cannot take %d values", math.MinInt)) {
			t.Errorf("%q", text)
		}
	}
}
