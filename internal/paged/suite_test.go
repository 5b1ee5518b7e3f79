package paged_test

import (
	"testing"

	"github.com/pando-index/pando/internal/layouttest"
	"github.com/pando-index/pando/internal/paged"
)

// The layout is held to what all are.
func TestSuite(t *testing.T) {
	layouttest.Numbers(t, paged.Layout[uint32]{}, paged.Layout[uint64]{})
}
