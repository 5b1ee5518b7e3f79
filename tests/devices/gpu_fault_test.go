package devices_test

import (
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// answers is all that a whole run gave.
type answers struct {
	vals, column []uint64
	found        []bool
	ranks        []int
	rangeKeys    []int64
	rows         []string
	hits         int
}

// wholeRun builds indexes on a device and asks them everything that runs there.
func wholeRun(t *testing.T, on pando.Device) answers {
	t.Helper()
	const n, ask, few = 2000, 4200, 400 // one batch of two buckets, the others of one
	keys, vals, rows := make([]int64, n), make([]uint64, n), make([]string, n)
	for i := range keys {
		keys[i], vals[i], rows[i] = int64(i*7%n)-n/2, uint64(i)*3+1, string(rune('a'+i%26))
	}
	asked, hi := make([]int64, ask), make([]int64, ask)
	for i := range asked {
		asked[i] = int64(i%(2*n)) - n
		hi[i] = asked[i] + int64(i%4)
	}
	a := answers{vals: make([]uint64, ask), column: make([]uint64, ask), found: make([]bool, ask), ranks: make([]int, ask), rows: make([]string, ask)}
	pairs := frozenOn(t, on, keys, vals)
	a.hits = pairs.GetBatch(asked, a.vals, a.found)
	pairs.RankBatch(asked[:few], a.ranks)
	a.rangeKeys = pairs.RangeBatch(asked[:few], hi[:few], 2).Keys
	pairs.Close()
	apart := frozenOn(t, on, keys, vals, pando.Layout(pando.Apart))
	a.hits += apart.GetBatch(asked[:few], a.column, nil)
	apart.Close()
	text := frozenOn(t, on, keys, rows)
	a.hits += text.GetBatch(asked[:few], a.rows, nil)
	text.Close()
	return a
}

func frozenOn[V any](t *testing.T, on pando.Device, keys []int64, vals []V, opts ...pando.Option) *pando.Frozen[int64, V] {
	t.Helper()
	f, err := pando.Freeze(keys, vals, append(opts, pando.On(on), pando.Workers(2))...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (a answers) equal(b answers) bool {
	return a.hits == b.hits && slices.Equal(a.vals, b.vals) && slices.Equal(a.column, b.column) && slices.Equal(a.found, b.found) &&
		slices.Equal(a.ranks, b.ranks) && slices.Equal(a.rangeKeys, b.rangeKeys) && slices.Equal(a.rows, b.rows)
}

// Whatever operation of a whole run fails, or loses the device, the answers
// are the same and nothing is left on the device.
func TestEveryFaultIsAnsweredByTheCPU(t *testing.T) {
	indextest.Hasty(t, 64)
	every := seed.Step(31)
	if seed.RaceDetector {
		every = 97
	}
	everyFault(t, pando.GPU(0), every, wholeRun)
}

// The same where CPU and GPU share the work, which begins with measurements.
// Package exec tries every operation.
func TestFaultsOfAHybrid(t *testing.T) {
	indextest.Hasty(t, 64)
	every := seed.Size(201, 23)
	if seed.RaceDetector {
		every = 701
	}
	everyFault(t, pando.Hybrid(0), every, wholeRun)
	indextest.PreferCPU(t, true) // a GPU that failed is not faster
	everyFault(t, pando.Hybrid(0), 5*every, wholeRun)
}

// everyFault lets one in every operations of a run fail.
func everyFault(t *testing.T, on pando.Device, every int, run func(*testing.T, pando.Device) answers) {
	indextest.Quiet(t)
	rng := seed.Rand(t)
	var opened []*faulty.Device
	var at int // the device opened that fails, and how
	var plan faulty.Plan
	indextest.UseGPU(t, func(int) (device.Device, error) {
		p := faulty.Plan{}
		if len(opened) == at {
			p = plan
		}
		d := faulty.New(ptx.New(ptx.Seed(uint64(len(opened))), ptx.RaceCheck(false)), p)
		opened = append(opened, d)
		return d, nil
	})
	use := func(index int, p faulty.Plan) { opened, at, plan = nil, index, p }
	use(0, faulty.Plan{})
	want := run(t, on)
	var counts []int
	for _, d := range opened {
		counts = append(counts, d.Count(faulty.Any))
	}
	t.Logf("operations of each index: %v", counts)
	for index, count := range counts {
		for at := 1 + rng.IntN(max(1, min(every, count))); at <= count; at += every {
			for _, lose := range []bool{false, true} {
				use(index, faulty.Plan{At: at, Lose: lose})
				if got := run(t, on); !got.equal(want) {
					t.Fatalf("index %d, operation %d, lost %v: other answers", index, at, lose)
				}
				for i, d := range opened {
					if live := d.Live(); live != 0 {
						t.Fatalf("index %d, operation %d, lost %v: device %d still holds %d things", index, at, lose, i, live)
					}
				}
			}
		}
	}
}

// A failure shows in Stats, in words.
func TestFailureIsInStats(t *testing.T) {
	indextest.Quiet(t)
	indextest.UseGPU(t, func(int) (device.Device, error) {
		return faulty.New(ptx.New(), faulty.Plan{Op: faulty.Launch, At: 1}), nil
	})
	f, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(pando.GPU(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s := f.Stats(); s.Device != pando.GPU(0) {
		t.Fatalf("on %v: %s", s.Device, s.Reason)
	}
	out := make([]uint64, 1)
	if f.GetBatch([]uint64{2}, out, nil); out[0] != 5 {
		t.Errorf("value %d", out[0])
	}
	if s := f.Stats(); s.Device != pando.CPU || s.Reason == "asked for" {
		t.Errorf("after the failure: on %v, %q", s.Device, s.Reason)
	}
}
