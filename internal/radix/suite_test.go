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
