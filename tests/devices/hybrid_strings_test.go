package devices_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// addresses returns distinct strings of some 80 bytes, of which far fewer tell
// them apart.
func addresses(n int) (keys []string, total int64) {
	keys = make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("https://%s.example/%06d", strings.Repeat("www", 20), i*7919%n)
		total += int64(len(keys[i]))
	}
	return keys, total
}

// A hybrid over strings has partial keys on the GPU and the strings on the
// host, answers as a sorted slice does, and says in Stats what it is.
func TestHybridLeavesStringsOnTheHost(t *testing.T) {
	rng := seed.Rand(t)
	indextest.Interpreted(t, rng.Uint64())
	keys, total := addresses(3000)
	vals := make([]uint64, len(keys))
	for i := range vals {
		vals[i] = rng.Uint64()
	}
	m := facetest.NewModel(slices.Clone(keys), slices.Clone(vals), func(a, b uint64) bool { return a == b })
	asked := facetest.Probes(m, facetest.Strings[string](), 300, rng)
	held := map[pando.Device]int64{}
	for _, on := range []pando.Device{pando.GPU(0), pando.Hybrid(0)} {
		f := facetest.MustFreeze(t, keys, vals, pando.On(on))
		defer f.Close()
		if err := facetest.CheckIndex(f, m, asked); err != nil {
			t.Fatal(err)
		}
		s := f.Stats()
		if s.Device != on {
			t.Errorf("asked for %v: on %v, %s", on, s.Device, s.Reason)
		}
		held[on] = s.DeviceBytes
		shared := strings.Contains(s.Reason, "the GPU searches by partial keys, the CPU compares the strings")
		if shared != (on == pando.Hybrid(0)) {
			t.Errorf("asked for %v: %s", on, s.Reason)
		}
	}
	if h := held[pando.Hybrid(0)]; h == 0 || h >= total || h != held[pando.GPU(0)]-total {
		t.Errorf("a hybrid has %d bytes on the GPU, all of it is %d, strings are %d", h, held[pando.GPU(0)], total)
	}
}

// Strings that do not fit the GPU's memory make a hybrid of what was to be on
// the GPU alone, as numbers do.
func TestStringsWithoutRoomAreAHybrid(t *testing.T) {
	indextest.Quiet(t)
	indextest.PreferCPU(t, false)
	indextest.UseGPU(t, func(int) (device.Device, error) { return ptx.New(ptx.RaceCheck(false)), nil })
	keys, total := addresses(3000)
	all := facetest.MustFreeze(t, keys, keys, pando.On(pando.GPU(0)))
	defer all.Close()
	whole := all.Stats().DeviceBytes
	for room, want := range map[int64]pando.Device{whole + 1<<30: pando.GPU(0), 1 << 20: pando.CPU} {
		f := facetest.MustFreeze(t, keys, keys, pando.On(pando.GPU(0)), pando.DeviceMemory(room))
		if s := f.Stats(); s.Device != want {
			t.Errorf("%d bytes: on %v, %s", room, s.Device, s.Reason)
		}
		f.Close()
	}
	// Buckets take the same whatever is in them: with one byte less than strings
	// need, they stay behind.
	least, most := int64(1<<20), whole+1<<30
	for most-least > 1 {
		room := (least + most) / 2
		f := facetest.MustFreeze(t, keys, keys, pando.On(pando.GPU(0)), pando.DeviceMemory(room))
		if f.Stats().DeviceBytes == whole {
			most = room
		} else {
			least = room
		}
		f.Close()
	}
	f := facetest.MustFreeze(t, keys, keys, pando.On(pando.GPU(0)), pando.DeviceMemory(least))
	defer f.Close()
	s := f.Stats()
	if s.Device != pando.Hybrid(0) || s.DeviceBytes != whole-total || !strings.Contains(s.Reason, "no room") {
		t.Errorf("without room for strings: on %v, %d bytes there: %s", s.Device, s.DeviceBytes, s.Reason)
	}
}

// A hybrid measures whether it is faster than the CPU, which it never is beside
// an interpreter.
func TestHybridOverStringsMeasures(t *testing.T) {
	indextest.Interpreted(t, 1)
	indextest.Hasty(t, 2000)
	indextest.PreferCPU(t, true)
	keys, _ := addresses(1000)
	f := facetest.MustFreeze(t, keys, keys, pando.On(pando.Hybrid(0)))
	defer f.Close()
	if s := f.Stats(); s.Device != pando.CPU || !strings.Contains(s.Reason, "measured") || s.DeviceBytes != 0 {
		t.Errorf("on %v with %d bytes there: %s", s.Device, s.DeviceBytes, s.Reason)
	}
}

// Whatever fails of a hybrid over strings, the CPU answers.
func TestFaultsOfAHybridOverStrings(t *testing.T) {
	indextest.Hasty(t, 64)
	every := 3
	if !seed.Long() {
		every = 17
	}
	everyFault(t, pando.Hybrid(0), every, stringsRun)
}

// stringsRun builds an index of strings on a device and asks it everything that
// runs there.
func stringsRun(t *testing.T, on pando.Device) (a answers) {
	t.Helper()
	const ask = 6000 // two buckets
	keys, _ := addresses(500)
	vals := make([]uint64, len(keys))
	for i := range vals {
		vals[i] = uint64(i) * 3
	}
	asked := make([]string, ask)
	for i := range asked {
		asked[i] = keys[i%len(keys)][i%3%2:] // one in three is not there
	}
	a = answers{vals: make([]uint64, ask), found: make([]bool, ask), ranks: make([]int, ask)}
	f := facetest.MustFreeze(t, keys, vals, pando.On(on), pando.Workers(2))
	a.hits = f.GetBatch(asked, a.vals, a.found)
	f.RankBatch(asked[:400], a.ranks)
	f.Close()
	return a
}
