package packed_test

import (
	"testing"

	"github.com/pando-index/pando/internal/layouttest"
	"github.com/pando-index/pando/internal/packed"
)

// The layout is held to what all are.
func TestSuite(t *testing.T) {
	layouttest.Numbers(t, packed.Layout[uint32]{}, packed.Layout[uint64]{})
}
