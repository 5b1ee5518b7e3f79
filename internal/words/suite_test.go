package words_test

import (
	"testing"

	"github.com/pando-index/pando/internal/layouttest"
	"github.com/pando-index/pando/internal/words"
)

// The layout is held to what all are.
func TestSuite(t *testing.T) {
	layouttest.Strings(t, words.Layout{})
}
