package pandohttp

import (
	"fmt"
	"iter"
	"sort"
	"strconv"

	"github.com/pando-index/pando/pandoserver"
)

// sortedNumbers is a list of numbers with values.
type sortedNumbers struct {
	keys    []int
	vals    []string
	version string
}

func newNumbers(keys []int, vals []string) *sortedNumbers { return &sortedNumbers{keys, vals, "1"} }

func (s *sortedNumbers) Types() (key, value string) { return "int64", "float64" }
func (s *sortedNumbers) Version() string            { return s.version }
func (s *sortedNumbers) Len() int                   { return len(s.keys) }

func (s *sortedNumbers) Check(key string) error {
	if _, err := strconv.Atoi(key); err != nil {
		return fmt.Errorf("%q is no int64", key)
	}
	return nil
}

func (s *sortedNumbers) Code(key string) uint64 {
	x, _ := strconv.Atoi(key)
	return uint64(sort.SearchInts(s.keys, x))
}

func (s *sortedNumbers) From(code uint64) pandoserver.Bounds {
	if code >= uint64(len(s.keys)) {
		return pandoserver.Bounds{}
	}
	return pandoserver.Bounds{Lo: strconv.Itoa(s.keys[code]), From: pandoserver.With}
}

func (s *sortedNumbers) span(b pandoserver.Bounds) (first, end int) {
	end = len(s.keys)
	lo, _ := strconv.Atoi(b.Lo)
	hi, _ := strconv.Atoi(b.Hi)
	switch b.From {
	case pandoserver.With:
		first = sort.SearchInts(s.keys, lo)
	case pandoserver.Without:
		first = sort.SearchInts(s.keys, lo+1)
	}
	switch b.To {
	case pandoserver.With:
		end = sort.SearchInts(s.keys, hi+1)
	case pandoserver.Without:
		end = sort.SearchInts(s.keys, hi)
	}
	return first, max(first, end)
}

func (s *sortedNumbers) Count(b pandoserver.Bounds) int {
	first, end := s.span(b)
	return end - first
}

func (s *sortedNumbers) At(i int) (string, []byte, bool) {
	if i < 0 || i >= len(s.keys) {
		return "", nil, false
	}
	return strconv.Itoa(s.keys[i]), []byte(s.vals[i]), true
}

func (s *sortedNumbers) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	for i, k := range keys {
		x, err := strconv.Atoi(k)
		at := sort.SearchInts(s.keys, x)
		if found[i] = err == nil && at < len(s.keys) && s.keys[at] == x; found[i] {
			vals[i] = []byte(s.vals[at])
			hits++
		}
	}
	return hits
}

func (s *sortedNumbers) Scan(b pandoserver.Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		first, end := s.span(b)
		for i := range end - first {
			at := first + i
			if b.Descending {
				at = end - 1 - i
			}
			if !yield(strconv.Itoa(s.keys[at]), []byte(s.vals[at])) {
				return
			}
		}
	}
}
