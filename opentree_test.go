package pando_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// A bit that has changed anywhere in a file is seen, whatever it means.
func TestOpenTreeSeesDamage(t *testing.T) {
	t.Run("numbers", seesDamage(func(i int) uint64 { return uint64(i) * 3 }))
	t.Run("strings", seesDamage(func(i int) string { return fmt.Sprint(i * 3) }))
}

func seesDamage[K pando.Key](key func(i int) K) func(t *testing.T) {
	return func(t *testing.T) {
		tree, err := pando.NewTree[K, uint64]()
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		for i := range 3000 {
			if err := tree.Set(key(i), uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), "tree")
		if err := tree.Save(path); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rng := seed.Rand(t)
		for range 40 {
			at := rng.IntN(len(data))
			damaged := slices.Clone(data)
			damaged[at] ^= 1 << rng.IntN(8)
			if err := os.WriteFile(path, damaged, 0o666); err != nil {
				t.Fatal(err)
			}
			if got, err := pando.OpenTree[K, uint64](path); !errors.Is(err, pando.ErrFile) && !errors.Is(err, pando.ErrVersion) {
				t.Errorf("a bit of byte %d of %d has changed: %v, %v", at, len(data), got, err)
			}
		}
	}
}

// A file with equal keys is refused by that name, wherever they are.
func TestOpenTreeOfEqualKeys(t *testing.T) {
	t.Run("numbers", refusesEqual(func(i int) int32 { return int32(i) }, uint64(0)))
	t.Run("wide", refusesEqual(func(i int) uint64 { return uint64(i) << 40 }, uint64(0)))
	t.Run("floats", refusesEqual(func(i int) float64 {
		if i == 0 {
			return math.NaN()
		}
		return float64(i)
	}, ""))
	t.Run("strings", refusesEqual(func(i int) string { return fmt.Sprintf("%06d", i) }, uint64(0)))
}

func refusesEqual[K pando.Key, V any](key func(i int) K, _ V) func(t *testing.T) {
	return func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "index")
		for _, n := range []int{2, 9, 600, 9000} {
			for _, at := range []int{0, (n - 1) / 2, n - 2} {
				keys, vals := make([]K, n), make([]V, n)
				for i := range keys {
					keys[i] = key(i)
				}
				keys[at+1] = keys[at]
				slices.SortStableFunc(keys, cmp.Compare[K])
				ix := facetest.MustFreeze(t, keys, vals)
				err := ix.Save(path)
				ix.Close()
				if err != nil {
					t.Fatal(err)
				}
				for _, layout := range []pando.LayoutKind{pando.AutoLayout, pando.Radix} {
					_, err := pando.OpenTree[K, V](path, pando.Layout(layout))
					if !errors.Is(err, pando.ErrEqualKeys) || errors.Is(err, pando.ErrFile) || !strings.Contains(err.Error(), fmt.Sprint(keys[at])) {
						t.Fatalf("%d keys, %d and the next are equal, %v: %v", n, at, layout, err)
					}
				}
			}
		}
	}
}
