package work

import (
	"fmt"

	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// Tally is the sum of the answers. Every system's answers are read once, as a
// caller would.
type Tally[W data.Word] struct {
	Entries      int
	KeySum, Sums W
}

// Add adds an entry.
func (t *Tally[W]) Add(out *peers.Flat[W]) {
	t.Entries += len(out.Keys)
	for i, k := range out.Keys {
		t.KeySum += k
		t.Sums += out.Vals[i]
	}
}

// CompareTally returns an error if two tallies differ.
func CompareTally[W data.Word](got, want Tally[W]) error {
	if got != want {
		return fmt.Errorf("wrong answers: %d entries with sums %#x and %#x; they should be %d, %#x and %#x",
			got.Entries, got.KeySum, got.Sums, want.Entries, want.KeySum, want.Sums)
	}
	return nil
}
