package kernel

import (
	"strings"

	"github.com/pando-index/pando/internal/device"
)

// UseTiles lets a job use small tiles, or large ones, whatever its size is. The
// result is the number of keys in a tile.
func (s *SortJob) UseTiles(large bool) int {
	switch {
	case !large:
		s.tile = few
	case s.KeyBits == 32:
		s.tile = many32
	default:
		s.tile = many64
	}
	return s.tile
}

// TempBytes is SortTemp for the tiles in use.
func (s *SortJob) TempBytes() int { return SortHead + 2*s.tiles()*tileReport }

// SumTile is the number of numbers in a tile of Sum.
const SumTile = sumTile

// Text returns the PTX of a source.
func (s Source) Text() string { return *s.ptx }

// With returns the source with another text.
func (s Source) With(ptx string) Source { return Source{&ptx, s.names} }

// Part returns where the text of a kernel begins and ends in PTX.
func Part(ptx, kernel string) (from, to int) {
	from = strings.Index(ptx, ".entry "+kernel+"(")
	return from, from + strings.Index(ptx[from:], "\n}\n")
}

// SumHead is where reports begin in temporary memory.
const SumHead = sumHead

// OwnReport is what a tile reports of its own count.
func OwnReport[T uint32 | uint64](count T) T { return count + 1 }

// ReportUpTo is what a tile reports of its count and that of all before it.
func ReportUpTo[T uint32 | uint64](count T) T { return count | ^(^T(0) >> 1) }

// LastSortTile runs one block of the first pass on temporary memory as it is.
func (s *Set) LastSortTile(one device.Stream, p *Params, job *SortJob) error {
	return s.sortPass(one, p, job, 0, digitBits)
}

// LastSumTile runs one block of Sum on temporary memory as it is.
func (s *Set) LastSumTile(one device.Stream, in device.Ptr, n int, out, temp device.Ptr) error {
	return s.SumCleared(one, 64, in, n, out, temp)
}
