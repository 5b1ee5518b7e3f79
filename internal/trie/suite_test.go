package trie_test

import (
	"testing"

	"github.com/pando-index/pando/internal/layouttest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/trie"
)

// The layouts are held to what all are.
func TestNumbersSuite(t *testing.T) {
	layouttest.Numbers(t, trie.Numbers[uint32]{}, trie.Numbers[uint64]{})
}

func TestStringsSuite(t *testing.T) { layouttest.Strings(t, trie.Strings{}) }

// wide has wide nodes wherever they fit.
var wide = trie.Wide{Least: 2, Bytes: 2}

func TestWideNumbersSuite(t *testing.T) {
	layouttest.Numbers(t, trie.Numbers[uint32]{Wide: wide}, trie.Numbers[uint64]{Wide: wide})
}

// A quick run has wide nodes at the root of strings, or below it, too.
func TestWideStringsSuite(t *testing.T) {
	first := seed.Of(t)
	if seed.Long() || first%2 == 0 {
		layouttest.Strings(t, trie.Strings{Wide: wide})
	}
	if seed.Long() || first%2 == 1 {
		below := wide
		below.Below = true
		layouttest.Strings(t, trie.Strings{Wide: below})
	}
}
