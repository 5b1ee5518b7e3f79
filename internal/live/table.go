package live

import (
	"slices"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// The table of mutable trees: a new one is a package, a Tree over it, and a row here. Of
// several that serve, the first is taken.
var kinds = [...]kind{
	{name: "bplus", fanout: 64, narrow: loadCodes[uint32], wide: loadCodes[uint64]},
	{name: "radix", fanout: 256, strings: true, wide: loadTexts},
	{name: chunkedName, also: "bplus", fanout: 256, alone: true, narrow: loadSolo[uint32], wide: loadSolo[uint64]},
}

// kind is a row of the table. All hold numbers.
type kind struct {
	name    layout.Kind // as Layout and Stats have it
	also    layout.Kind // another name that it is asked for by
	fanout  int         // for Stats
	strings bool        // it holds strings, too
	alone   bool        // it is on a GPU alone
	// narrow makes a tree of codes of 32 bits, and values that take no more; nil where wide
	// makes all.
	narrow, wide func(l *loading) (Tree, error)
}

// chunkedName is the name of the tree that is on a GPU alone.
const chunkedName layout.Kind = "chunked"

// serves reports whether the tree is asked for by a name.
func (k *kind) serves(asked layout.Kind) bool {
	return asked == k.name || asked == k.also && asked != ""
}

// loading is a map whose tree is made, of n entries. span sets keys and vals to those from
// lo on, as LoadMap has it.
type loading struct {
	*Map
	n    int
	span func(lo int, keys order.Keys, vals index.Column)
}

// kindOf returns the row for keys of a type. Layouts other than those of trees are for
// saving, or freezing.
func kindOf(key order.Type, cfg *index.Config) (*kind, error) {
	asked := slices.ContainsFunc(kinds[:], func(k kind) bool { return k.serves(cfg.Layout) })
	holds := false // a tree of that name holds such keys
	for i := range kinds {
		k := &kinds[i]
		if !k.strings && key.Bits() == 0 || asked && !k.serves(cfg.Layout) {
			continue
		}
		if k.alone == cfg.DeviceOnly {
			return k, nil
		}
		holds = true
	}
	switch {
	case !asked:
		return nil, errAlone()
	case holds && !cfg.DeviceOnly:
		return nil, index.Problem(index.ErrLayout, "layout %v is that of a Tree on a GPU alone: give DeviceOnly, or leave Layout out", cfg.Layout)
	case holds:
		return nil, index.Problem(index.ErrLayout, "a Tree on a GPU alone cannot be in layout %v; leave Layout out", cfg.Layout)
	}
	return nil, index.Problem(index.ErrLayout, "a Tree of strings cannot be in layout %v; leave Layout out", cfg.Layout)
}

// load makes the tree.
func (k *kind) load(l *loading) (Tree, error) {
	if k.narrow != nil && l.key.Bits() == 32 && l.size != 8 {
		return k.narrow(l)
	}
	return k.wide(l)
}
