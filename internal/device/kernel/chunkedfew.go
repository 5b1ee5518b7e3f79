package kernel

import "github.com/pando-index/pando/internal/device"

// FewOps is the most operations that PlanFew and MoveFew take: a tile of a sum.
const FewOps = sumTile

// PlanFew does what Owns, Plan, Sums and, unless keys is 0, Effects do, for a few
// operations in one launch. Its requirements are theirs.
func (c *Chunked) PlanFew(v *Version, b *Batch, o *Owned, next *Next, keys, vals, kinds, told device.Ptr, turns, chunks Scan) error {
	grid := device.Grid{Blocks: 1 + sumTiles(int(v.Count)), Threads: blockThreads}
	if keys != 0 {
		grid.Blocks++
	}
	return start((*Runner)(c), "planFew32", "planFew64", grid, struct {
		v                       Version
		b                       Batch
		o                       Owned
		become, fresh           device.Ptr
		keys, vals, kinds, told device.Ptr
		begun, planned          device.Ptr
		ticket, reports         device.Ptr
	}{*v, *b, *o, next.Become, next.Fresh, keys, vals, kinds, told, turns.ticket(), turns.reports(), chunks.ticket(), chunks.reports()})
}

// MoveFew does what Move and Store do: a warp for each leaf that is touched.
func (c *Chunked) MoveFew(v *Version, b *Batch, o *Owned, touched int, leaves *Slots) error {
	return c.moveBy("moveFew32", "moveFew64", v, b, o, touched, leaves)
}
