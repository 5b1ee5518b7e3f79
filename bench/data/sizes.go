package data

import (
	"fmt"
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
)

// EachFitting calls body for each size that fits into free memory, with the
// given bytes per entry and per query. It prints a line for those that do not.
func EachFitting[W Word](s *contest.Session, perEntry float64, perQuery int, body func(d *Dataset[W]) error) error {
	for _, n := range s.Sizes {
		debug.FreeOSMemory() // frees the memory of the previous size
		need, free := int64(perEntry*float64(n))+int64(perQuery)*int64(s.Queries), contest.FreeMemory()
		if need > free {
			s.Skip("n %s, %d bits: needs about %s, %s of memory are free", contest.SizeText(n), BitsOf[W](), contest.GiB(need), contest.GiB(free))
			continue
		}
		d, err := NewDataset[W](s, n)
		if err != nil {
			s.Skip("%v", err)
			continue
		}
		if err := body(d); err != nil {
			return err
		}
	}
	return nil
}

// BothWidths runs an experiment's body for 64-bit and for 32-bit keys.
func BothWidths(s *contest.Session, wide func(*Dataset[uint64]) error, narrow func(*Dataset[uint32]) error) error {
	if err := ForEachSize(s, wide); err != nil {
		return err
	}
	return ForEachSize(s, narrow)
}

// WidthName returns the name of the type of keys.
func WidthName[W Word]() string { return fmt.Sprintf("uint%d", BitsOf[W]()) }

// ForEachSize runs an experiment's body once per size, with a dataset that is
// dropped afterwards.
func ForEachSize[W Word](s *contest.Session, body func(d *Dataset[W]) error) error {
	for _, n := range s.Sizes {
		d, err := NewDataset[W](s, n)
		if err != nil {
			return err
		}
		if err := body(d); err != nil {
			return err
		}
	}
	return nil
}

// KeyBytesU32 is the size of a key of 32 bits in bytes.
const KeyBytesU32 = 4

// PairBytes returns the size of a key and a value in bytes.
func PairBytes[W Word]() float64 { return float64(2 * BitsOf[W]() / 8) }
