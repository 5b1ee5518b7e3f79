package kernel

import "strings"

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
func (s *SortJob) TempBytes() int { return sortHead + 2*s.tiles()*tileReport }

// SumTile is the number of numbers in a tile of Sum.
const SumTile = sumTile

// Text returns the PTX of a source.
func (s Source) Text() string { return s.ptx }

// With returns the source with another text.
func (s Source) With(ptx string) Source { return Source{ptx, s.names} }

// Part returns where the text of a kernel begins and ends in PTX.
func Part(ptx, kernel string) (from, to int) {
	from = strings.Index(ptx, ".entry "+kernel+"(")
	return from, from + strings.Index(ptx[from:], "\n}\n")
}
