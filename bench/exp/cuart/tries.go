package cuart

import (
	"encoding/binary"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/trie"
)

// What experiments vary in a radix tree that is built once.
type (
	rootTable = trie.Table
	wideNodes = trie.Wide
)

// buildTrie builds a tree of strings, which several threads ask.
func buildTrie(keys []string, table rootTable, wide wideNodes, threads int) (finder, error) {
	tree, err := trie.Strings{Table: table, Wide: wide}.Build(keys, nil, layout.Config{Pages: inside.HugePages})
	return finder{tree, threads}, err
}

// buildNumberTrie builds a tree of numbers.
func buildNumberTrie(codes []uint64, wide wideNodes, threads int) (numberFinder, error) {
	src := layout.Source[uint64]{Len: len(codes), Codes: codes}
	tree, err := trie.Numbers[uint64]{Wide: wide}.Build(src, layout.Config{Pages: inside.HugePages})
	return numberFinder{tree, threads}, err
}

// finder is a tree of strings whose lookups are compared: where keys are distinct,
// what Find returns is the rank.
type finder struct {
	layout.StringTree
	threads int
}

func (f finder) Rank(q []string, ranks []int) {
	contest.Spread(f.threads, len(q), func(lo, hi int) int {
		f.StringTree.Find(q[lo:hi], ranks[lo:hi])
		return 0
	})
}

// numberFinder is a tree of numbers whose lookups are compared.
type numberFinder struct {
	layout.Tree[uint64]
	threads int
}

func (f numberFinder) Rank(q []string, ranks []int) {
	contest.Spread(f.threads, len(q), func(lo, hi int) int {
		var codes [256]uint64
		for lo < hi {
			n := min(hi-lo, len(codes))
			for i, k := range q[lo : lo+n] {
				codes[i] = codeOf(k)
			}
			f.Tree.Find(codes[:n], ranks[lo:lo+n])
			lo += n
		}
		return 0
	})
}

func (f numberFinder) Seek(key string) (rank int, equal bool) { return f.Tree.Seek(codeOf(key)) }

// codeOf returns the number that a key of 8 bytes is.
func codeOf(key string) uint64 { return binary.BigEndian.Uint64([]byte(key)) }
