package strlist_test

import (
	"testing"

	"github.com/pando-index/pando/internal/layouttest"
	"github.com/pando-index/pando/internal/strlist"
)

// The layout is held to what all are.
func TestSuite(t *testing.T) {
	layouttest.Strings(t, strlist.Layout{})
}
