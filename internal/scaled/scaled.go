// Package scaled reads numbers as people write them: 5000, 16M, 1.5G.
package scaled

import (
	"fmt"
	"strconv"
	"strings"
)

// A Count is a flag for a number of things, with K, M and G for thousands,
// millions and thousands of millions.
type Count int64

func (c *Count) String() string { return strconv.FormatInt(int64(*c), 10) }

// Type is what help calls the flag's value.
func (c *Count) Type() string { return "count" }

// Set reads the flag's value.
func (c *Count) Set(s string) error {
	n, err := Parse(s, 1000)
	*c = Count(n)
	return err
}

// Parse reads numbers such as 5, 1.5M and 2G, in powers of unit.
func Parse(s string, unit float64) (int64, error) {
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	scale := 1.0
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number = rest
			for range i + 1 {
				scale *= unit
			}
		}
	}
	if n, err := strconv.ParseInt(strings.ReplaceAll(number, "_", ""), 10, 64); err == nil && scale == 1 && n >= 0 {
		return n, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f >= 0 && f*scale < 1<<62) {
		return 0, fmt.Errorf("%q is no number of things; write 5000, 16M or 1.5G", s)
	}
	return int64(f * scale), nil
}
