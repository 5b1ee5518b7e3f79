package radix_test

import (
	"testing"

	"github.com/pando-index/pando/internal/layouttest"
	"github.com/pando-index/pando/internal/radix"
)

// The layouts are held to what all are.
func TestNumbersSuite(t *testing.T) {
	layouttest.Numbers(t, radix.Numbers[uint32]{}, radix.Numbers[uint64]{})
}

func TestStringsSuite(t *testing.T) { layouttest.Strings(t, radix.Strings{}) }

// wideAll has wide nodes wherever they fit.
var wideAll = radix.Wide{Least: 2, Price: 1e-9}

func TestWideNumbersSuite(t *testing.T) {
	layouttest.Numbers(t, radix.Numbers[uint32]{Wide: wideAll}, radix.Numbers[uint64]{Wide: wideAll})
}

func TestWideStringsSuite(t *testing.T) {
	layouttest.Strings(t, radix.Strings{Wide: wideAll})
	below := wideAll
	below.BelowTops = true
	layouttest.Strings(t, radix.Strings{Wide: below})
}
