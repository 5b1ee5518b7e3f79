package attack

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/facetest"
	core "github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/simd"
)

// config is how the index of a case is made.
type config struct {
	n        int
	set      string // of keys
	order    string // that they come in
	path     simd.Path
	on       pando.Device
	layout   pando.LayoutKind
	workers  int
	limit    int64
	room     int64
	response time.Duration
	pages    pando.PageMode
	source   string // where the index comes from
	portion  int    // queries from which on they are partitioned by sub-trees; 0 as by default
	prefer   bool   // the CPU where it is measured to be faster
	sample   int    // keys to measure with
}

func (f config) String() string {
	return fmt.Sprintf("%d keys, %s, %s; %v, on %v, layout %v, %d workers, memory limit %d, device memory %d, response time %v, %v; %s; partitioned from %d; prefer the CPU %v, by %d keys",
		f.n, f.set, f.order, f.path, f.on, f.layout, f.workers, f.limit, f.room, f.response, f.pages, f.source, f.portion, f.prefer, f.sample)
}

// building returns the options that a Frozen is built with.
func (f config) building() []pando.Option {
	return append(f.opening(), pando.HugePages(f.pages))
}

// opening returns the options that a Frozen is opened with.
func (f config) opening() []pando.Option {
	return append(f.options(), pando.ResponseTime(f.response))
}

// options returns the options that any index may be made with.
func (f config) options() []pando.Option {
	opts := []pando.Option{pando.On(f.on), pando.Workers(f.workers)}
	if f.layout != pando.AutoLayout {
		opts = append(opts, pando.Layout(f.layout))
	}
	if f.limit > 0 {
		opts = append(opts, pando.MemoryLimit(f.limit))
	}
	if f.room > 0 {
		opts = append(opts, pando.DeviceMemory(f.room))
	}
	return opts
}

// force makes searches run as the configuration says where no option does, and
// returns a function that undoes it.
func (f config) force() (undo func()) {
	path, prefer, sample := simd.Use(f.path), core.PreferCPU, core.SampleKeys
	core.PreferCPU, core.SampleKeys = f.prefer, f.sample
	partition := func() {}
	if f.portion > 0 {
		partition = exec.PartitionFrom(0, f.portion)
	}
	return func() {
		path()
		partition()
		core.PreferCPU, core.SampleKeys = prefer, sample
	}
}

// interpreted reports whether batches run on the interpreter.
func (f config) interpreted() bool { return f.on != pando.CPU && f.on != pando.Auto }

// sources are the ways to get an index.
var sources = []string{"Freeze", "Freeze", "Freeze", "FreezeSeq", "saved and opened", "saved, opened and verified", "written and opened"}

// drawConfig draws all but the keys.
func drawConfig(rng *rand.Rand) config {
	f := config{
		path:     pick(rng, simd.Paths()...),
		on:       pick(rng, pando.CPU, pando.CPU, pando.CPU, pando.Auto, pando.GPU(0), pando.Hybrid(0), pando.Hybrid(0)),
		layout:   pick(rng, pando.Layouts()...),
		workers:  pick(rng, 0, 1, 1, 2, 3, 5, math.MaxInt),
		response: pick(rng, 0, 0, 1, time.Microsecond, time.Millisecond, time.Hour),
		pages:    pick(rng, pando.HugeAll, pando.HugeInner, pando.SmallPages),
		source:   pick(rng, sources...),
		portion:  pick(rng, 0, 0, 0, 1, 16, 1000),
		prefer:   oneIn(rng, 40), // to measure takes the interpreter seconds
		sample:   pick(rng, 1, 64, 64, 64, 300, 1200),
		order:    pick(rng, "as they come", "sorted", "backwards", "almost sorted", "shuffled"),
	}
	f.n = drawLen(rng, !f.interpreted())
	if oneIn(rng, 6) { // more, less, or about as much as is needed
		f.limit = 1 + int64(upTo(rng, 64<<10+60*f.n))
	}
	if f.interpreted() && oneIn(rng, 3) {
		f.room = 1 + int64(upTo(rng, 1<<20+30*f.n))
	}
	return f
}

// edges are numbers of keys around those of nodes, leaves, pages, and buckets.
var edges = []int{0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 63, 64, 65, 71, 72, 73, 127, 128, 129, 135, 136, 137, 255, 256, 257, 271, 272, 273,
	511, 512, 513, 575, 576, 577, 647, 648, 649, 1023, 1024, 1025, 2303, 2304, 2305, 4095, 4096, 4097}

// drawLen draws a number of keys: mostly few, and rarely very many.
func drawLen(rng *rand.Rand, large bool) int {
	switch {
	case oneIn(rng, 2):
		return pick(rng, edges...)
	case large && oneIn(rng, 200):
		return pick(rng, 1<<20-1, 1<<20, 1<<20+1, 100_000+rng.IntN(900_000))
	case large && oneIn(rng, 8): // more than one worker sorts by itself
		return pick(rng, 32_767, 32_768, 32_769, 65_535, 65_536, 65_537, 5000+rng.IntN(60_000))
	}
	return upTo(rng, 5000)
}

// drawEntries draws keys, and values that tell them apart.
func (p pair[K, V]) drawEntries(c *testCase, f *config) ([]K, []V) {
	set := pick(c.rng, p.sets(c.rng)...)
	f.set = set.Name
	keys, vals := make([]K, f.n), make([]V, f.n)
	for i := range keys {
		keys[i], vals[i] = set.Key(i, f.n), p.vals.Of(i)
	}
	switch f.order {
	case "sorted", "almost sorted":
		slices.SortFunc(keys, cmp.Compare)
	case "backwards":
		slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(b, a) })
	case "shuffled":
		c.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	if f.order == "almost sorted" && f.n > 1 {
		i := pick(c.rng, 0, f.n-2, c.rng.IntN(f.n-1))
		keys[i], keys[i+1] = keys[i+1], keys[i]
	}
	return keys, vals
}

// serves reports whether a layout can hold keys and values of these types.
func (p pair[K, V]) serves(layout pando.LayoutKind) bool {
	return layout == pando.AutoLayout || layout == pando.Implicit || slices.Contains(facetest.Layouts[K](p.vals), layout)
}
