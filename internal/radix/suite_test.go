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

// wide has wide nodes wherever they fit.
var wide = radix.Wide{Least: 2, Bytes: 2}

func TestWideNumbersSuite(t *testing.T) {
	layouttest.Numbers(t, radix.Numbers[uint32]{Wide: wide}, radix.Numbers[uint64]{Wide: wide})
}

func TestWideStringsSuite(t *testing.T) {
	layouttest.Strings(t, radix.Strings{Wide: wide})
	below := wide
	below.Below = true
	layouttest.Strings(t, radix.Strings{Wide: below})
}
