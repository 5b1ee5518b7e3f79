//go:build linux || darwin

package duckdb

import (
	"errors"
	"math"
	"testing"
)

func TestAggregate(t *testing.T) {
	whole := make([]uint64, 10_000)
	floats := make([]float64, len(whole))
	var sum uint64
	var total float64
	for i := range whole {
		whole[i], floats[i] = math.MaxUint64-uint64(i)*3, float64(i)/4
		sum += whole[i]
		total += floats[i]
	}
	c, err := Load(whole, 2)
	if errors.Is(err, ErrNoLibrary) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	n, got, err := c.Aggregate()
	if err != nil || n != len(whole) || got != sum {
		t.Errorf("%d values with the sum %d, %v, want %d with %d", n, got, err, len(whole), sum)
	}
	t.Log(c.Version())
	c.Close()
	f, err := Load(floats, 1)
	if err != nil {
		t.Fatal(err)
	}
	n, of, err := f.Aggregate()
	if err != nil || n != len(floats) || math.Abs(of-total) > 1e-6 {
		t.Errorf("%d values with the sum %g, %v, want %d with %g", n, of, err, len(floats), total)
	}
	f.Close()
}
