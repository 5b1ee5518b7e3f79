package layouttest_test

import (
	"testing"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layouttest"
)

// Layout implicit is held to what all are. Other layouts have this test in their own package;
// there, this one would have package exec, which imports it, and the suite compiled again.
func TestImplicit(t *testing.T) {
	layouttest.Numbers(t, implicit.Layout[uint32]{}, implicit.Layout[uint64]{})
}
