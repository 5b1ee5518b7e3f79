package kernel

import (
	_ "embed"

	"github.com/pando-index/pando/internal/device"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S radix.cu -o radix.ptx

//go:embed radix.ptx
var radixPTX string

// RadixSource is the kernels of radix.cu.
var RadixSource = Source{&radixPTX, []string{
	"radixFind32", "radixTile32", "radixSlots32", "radixOwn32", "radixOwnRuns32", "radixAnswerRuns32", "radixLeafSlots32", "radixAdopt32",
	"radixFind64", "radixTile64", "radixSlots64", "radixOwn64", "radixOwnRuns64", "radixAnswerRuns64", "radixLeafSlots64", "radixAdopt64",
	"radixExpand", "radixHot", "radixRuns", "radixEndRuns",
}}

// The constants of the radix tree, as radix.h has them.
const (
	RadixNodes   = 4              // types of inner nodes
	RadixLeaf    = 1 << 31        // bit of a link to a leaf
	RadixUnit    = 8              // bytes that places of leaves are counted in
	RadixClasses = 4 + 32 + 1 + 8 // types of inner nodes, and sizes of leaves
	RadixMaxKey  = 65536 - 12     // bytes of the longest key
	// RadixCounts is how many numbers RadixSlots adds up: leaves that may be needed by
	// class, those that may be freed, and keys that are too long; behind them is what
	// Hot says.
	RadixCounts = 2*RadixClasses + 2
)

// Radix is a radix tree: struct Radix of radix.h, field by field.
type Radix struct {
	Nodes        [RadixNodes]device.Ptr
	Leaves, Far  device.Ptr // units from Split on are in Far, which is where unit 0 would be
	Table        device.Ptr
	Seed         uint64
	Skip, Direct uint32
	Shift        uint32 // 32 less the bits of a slot's number, below 32
	Longest      uint32 // keys above are not there, whatever is done to them
	Split, _     uint32
}

// StringKeys is strings in device memory: struct Keys of radix.h. Key i has the bytes
// from Offsets[i] to Offsets[i+1] (u32); where Offsets is 0, all are Width bytes.
// Memory is readable from and to a multiple of 4 bytes.
type StringKeys struct {
	Bytes, Offsets device.Ptr
	Width, N       uint32
}

// RadixPool is memory of a class: struct Pool of radixown.h.
type RadixPool struct {
	Free, Freed device.Ptr
	Count, Next uint32
}

// RadixPools is struct Pools of radixown.h: a RadixPool for each class, and counts
// (u32): those taken and given of each class, and the first units never used, of
// leaves and of those of FarClass and above.
type RadixPools struct {
	Of, Taken, Given, Units device.Ptr
	FarClass, _             uint32
}

// RadixChanges is operations in the order of their slots: struct Changes of
// radixown.h.
type RadixChanges struct {
	Keys          StringKeys
	Slots, Places device.Ptr
	Vals, Kinds   device.Ptr
	Old, Had      device.Ptr
	Kind, _       uint32
}

// RadixRun launches the kernels of radix.cu, for values of one width.
type RadixRun Runner

func startRadix[P any](r *RadixRun, narrow, wide string, n int, params P) error {
	return start((*Runner)(r), narrow, wide, GridOf(n), params)
}

// Find looks keys up: vals get their values, or 0, and found a bit each. A tile of
// four lanes takes a key, or a thread where that is not asked for.
func (r *RadixRun) Find(t *Radix, keys StringKeys, tile bool, vals, found device.Ptr) error {
	narrow, wide := "radixFind32", "radixFind64"
	if tile {
		narrow, wide = "radixTile32", "radixTile64"
	}
	return startRadix(r, narrow, wide, int(keys.N), struct {
		t           Radix
		keys        StringKeys
		vals, found device.Ptr
	}{*t, keys, vals, found})
}

// Slots gives the slot of each key (u32), and adds to counts, RadixCounts numbers,
// what operations of some kinds (u8), or of one where kinds is 0, may need.
func (r *RadixRun) Slots(t *Radix, keys StringKeys, kinds device.Ptr, kind uint32, slots, counts device.Ptr) error {
	return startRadix(r, "radixSlots32", "radixSlots64", int(keys.N), struct {
		t                    Radix
		keys                 StringKeys
		kinds, slots, counts device.Ptr
		kind                 uint32
	}{*t, keys, kinds, slots, counts, kind})
}

// Own does operations, each slot's by one thread.
func (r *RadixRun) Own(t *Radix, c *RadixChanges, p *RadixPools) error {
	return startRadix(r, "radixOwn32", "radixOwn64", int(c.Keys.N), struct {
		t Radix
		c RadixChanges
		p RadixPools
	}{*t, *c, *p})
}

// RadixRuns is operations in runs of one key: struct Runs of radixhot.h. All but the
// last two have a number (u32) for each operation, these one for each block.
type RadixRuns struct {
	Heads, Changes, Next, Last, BlockHeads, BlockChanges device.Ptr
}

// RadixRunBlocks returns for how many blocks n operations have numbers.
func RadixRunBlocks(n int) int { return GridOf(n).Blocks }

// Hot sets a number (u32) to 1 if one of n sorted slots has enough operations for
// runs to pay.
func (r *RadixRun) Hot(slots device.Ptr, n int, hot device.Ptr) error {
	return startRadix(r, "radixHot", "radixHot", n, struct {
		slots, hot device.Ptr
		n          uint32
	}{slots, hot, uint32(n)})
}

// OwnRuns is Own by runs, for which there is room.
func (r *RadixRun) OwnRuns(t *Radix, c *RadixChanges, runs *RadixRuns, p *RadixPools) error {
	n := int(c.Keys.N)
	err := startRadix(r, "radixRuns", "radixRuns", n, struct {
		c       RadixChanges
		runs    RadixRuns
		longest uint32
	}{*c, *runs, t.Longest})
	if err != nil {
		return err
	}
	err = startRadix(r, "radixEndRuns", "radixEndRuns", n, struct {
		runs RadixRuns
		n    uint32
	}{*runs, c.Keys.N})
	if err != nil {
		return err
	}
	err = startRadix(r, "radixOwnRuns32", "radixOwnRuns64", n, struct {
		t    Radix
		c    RadixChanges
		runs RadixRuns
		p    RadixPools
	}{*t, *c, *runs, *p})
	if err != nil || c.Old == 0 {
		return err
	}
	return startRadix(r, "radixAnswerRuns32", "radixAnswerRuns64", n, struct {
		c    RadixChanges
		runs RadixRuns
	}{*c, *runs})
}

// LeafSlots gives the slots of n leaves.
func (r *RadixRun) LeafSlots(t *Radix, leaves device.Ptr, n int, slots device.Ptr) error {
	return startRadix(r, "radixLeafSlots32", "radixLeafSlots64", n, struct {
		t             Radix
		leaves, slots device.Ptr
		n             uint32
	}{*t, leaves, slots, uint32(n)})
}

// Adopt puts n leaves, sorted by slots, into a table that has none of them. places are
// those of leaves in the order of slots.
func (r *RadixRun) Adopt(t *Radix, slots, places, leaves device.Ptr, n int, p *RadixPools) error {
	return startRadix(r, "radixAdopt32", "radixAdopt64", n, struct {
		t                     Radix
		slots, places, leaves device.Ptr
		p                     RadixPools
		n                     uint32
	}{*t, slots, places, leaves, *p, uint32(n)})
}

// Expand lists the inner nodes and leaves below n links, and those that are leaves
// themselves, counts them (two u32), and gives the nodes back.
func (r *RadixRun) Expand(t *Radix, links device.Ptr, n int, inner, leaves, counts device.Ptr, p *RadixPools) error {
	return startRadix(r, "radixExpand", "radixExpand", n, struct {
		t                            Radix
		links, inner, leaves, counts device.Ptr
		p                            RadixPools
		n                            uint32
	}{*t, links, inner, leaves, counts, *p, uint32(n)})
}
