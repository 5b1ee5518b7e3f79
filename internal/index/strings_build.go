package index

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/partial"
)

// textBuilder builds a tree of strings.
type textBuilder struct {
	keys   []string
	cfg    layout.Config
	column int64 // bytes that values take off the heap
	sorted bool  // keys are in order,
	order  []int // or have this one, once they are sorted

	stopped func() error // an error if the build is to be stopped
}

// buildStrings makes the engine for string keys, in the first of the layouts
// asked for that can hold them.
func buildStrings(keys []string, vals values, cfg Config) (built, error) {
	layouts, err := SettleStrings(cfg.Layouts, cfg.Layout)
	if err != nil {
		return built{}, err
	}
	b := &textBuilder{keys: keys, column: vals.off, cfg: layout.Config{Pages: cfg.Pages, Limit: cfg.Limit, Workers: par.Workers(cfg.Workers), Stop: cfg.stop()}, stopped: cfg.stopped}
	b.sorted = partial.Sorted(keys, b.cfg.Workers)
	for _, lay := range layouts {
		var tree layout.StringTree
		if tree, err = b.build(lay); err == nil {
			return built{newTexts(tree, cfg), rows{ints: b.order}}, nil
		}
		if !errors.Is(err, layout.ErrTooLong) && !errors.Is(err, layout.ErrTooLarge) {
			return built{}, err
		}
	}
	if cfg.Layout != layout.Auto {
		err = fmt.Errorf("%w; leave Layout out", err)
	}
	return built{}, err
}

// build builds a tree in a layout.
func (b *textBuilder) build(lay layout.Strings) (layout.StringTree, error) {
	if err := b.fits(lay); err != nil {
		return nil, err
	}
	if err := b.stopped(); err != nil {
		return nil, err
	}
	if !b.sorted && b.order == nil {
		var err error
		if b.order, err = partial.OrderUntil(b.keys, b.cfg.Workers, b.cfg.Stop); err != nil {
			return nil, err
		}
	}
	if err := b.stopped(); err != nil {
		return nil, err
	}
	return lay.Build(b.keys, b.order, b.cfg)
}

// fits checks the limit for tree, column of values and scratch memory for
// sorting. Most of the latter is given back before the tree is built. Only the
// order stays, by which values are put in place in the end.
func (b *textBuilder) fits(lay layout.Strings) error {
	tree, err := lay.Need(b.keys, b.cfg)
	if err != nil {
		return err
	}
	tree += b.column
	b.cfg.Beside = b.column
	if b.sorted {
		return within(b.cfg.Limit, tree, 0)
	}
	most, heap, err := partial.Need(len(b.keys), b.cfg.Workers)
	if err != nil {
		return err
	}
	b.cfg.Beside += heap
	return within(b.cfg.Limit, tree, max(heap, most-tree))
}
