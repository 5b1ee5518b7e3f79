package gen

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table"
)

// keysOf makes all keys of a Spec, as text that sorts as the keys do.
func keysOf(t *testing.T, spec Spec) (keys []string) {
	t.Helper()
	s, err := New(spec)
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	var b table.Batch
	for {
		err := s.Next(&b)
		if errors.Is(err, io.EOF) {
			return keys
		}
		if err != nil {
			t.Fatal(err)
		}
		c := &b.Columns[0]
		for i := range b.Rows {
			keys = append(keys, sortable(c, i))
		}
	}
}

func sortable(c *table.Column, i int) string {
	switch c.Type {
	case table.Int64:
		return fmt.Sprintf("%020d", c.Int64[i])
	case table.Uint64:
		return fmt.Sprintf("%020d", c.Uint64[i])
	case table.Int32:
		return fmt.Sprintf("%020d", c.Int32[i])
	case table.Uint32:
		return fmt.Sprintf("%020d", c.Uint32[i])
	case table.Float64:
		return fmt.Sprintf("%030.10f", c.Float64[i])
	case table.Float32:
		return fmt.Sprintf("%030.10f", c.Float32[i])
	}
	return c.String[i]
}

// Whatever the distribution and the keys: there are as many rows as requested,
// the same keys whether sorted or not, sorted ones are in order, and keys are
// distinct if the distribution says so.
func TestEveryDistribution(t *testing.T) {
	rng := seed.Rand(t)
	for _, d := range Dists() {
		for _, k := range KeyKinds() {
			n := 1 + rng.Int64N(3000)
			spec := Spec{Rows: n, Dist: d, Keys: k, Value: "none", Skew: rng.Float64() * 1.5, Seed: rng.Uint64()}
			keys := keysOf(t, spec)
			spec.Sorted = true
			inOrder := keysOf(t, spec)
			spec.Sorted, spec.Limit = false, n/2+1
			part := keysOf(t, spec)
			if int64(len(keys)) != n || !slices.Equal(part, keys[:n/2+1]) {
				t.Errorf("%s %s: %d keys of %d", d, k, len(keys), n)
			}
			if !slices.IsSorted(inOrder) {
				t.Errorf("%s %s: sorted keys are not", d, k)
			}
			slices.Sort(keys)
			if !slices.Equal(keys, inOrder) {
				t.Errorf("%s %s: sorting changes the keys", d, k)
			}
			if dists[d].distinct && len(slices.Compact(keys)) != int(n) {
				t.Errorf("%s %s: keys are not distinct", d, k)
			}
		}
	}
}

// A permutation reaches every number exactly once.
func TestPermutation(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []uint64{1, 2, 3, 4, 5, 16, 17, 1000, 4096} {
		p := newPermutation(n, rng.Uint64())
		seen := make([]bool, n)
		for i := range n {
			seen[p.at(i)] = true
		}
		if slices.Contains(seen, false) {
			t.Errorf("of %d numbers some are not met", n)
		}
	}
}

// With a high skew, Zipf has few distinct keys; without any, many.
func TestSkew(t *testing.T) {
	different := func(skew float64) int {
		keys := keysOf(t, Spec{Rows: 10000, Dist: "zipf", Keys: "uint64", Value: "none", Skew: skew, Seed: seed.Of(t)})
		slices.Sort(keys)
		return len(slices.Compact(keys))
	}
	if even, some, much := different(0), different(1), different(2); !(even > some && some > much && much < 500) {
		t.Errorf("different keys: %d, %d, %d", even, some, much)
	}
}
