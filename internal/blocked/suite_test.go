package blocked_test

import (
	"testing"

	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/layouttest"
)

// The layout is held to what all are.
func TestSuite(t *testing.T) {
	layouttest.Numbers(t, blocked.Layout[uint32]{}, blocked.Layout[uint64]{})
}
