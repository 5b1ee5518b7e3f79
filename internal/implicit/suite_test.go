package implicit_test

import (
	"testing"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layouttest"
)

// The layout is held to what all are.
func TestSuite(t *testing.T) {
	layouttest.Numbers(t, implicit.Layout[uint32]{}, implicit.Layout[uint64]{})
}
