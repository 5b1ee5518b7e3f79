package pando_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// wordSets are strings that try to break something: by what they have in
// common, and where they differ.
var wordSets = []struct {
	name string
	word func(rng *rand.Rand, i int) string
}{
	{"all equal but the last byte", func(_ *rand.Rand, i int) string { return strings.Repeat("same", 9) + string([]byte{byte(i)}) }},
	{"one the prefix of the next", func(_ *rand.Rand, i int) string { return strings.Repeat("ab", i%700) }},
	{"one value a byte", func(rng *rand.Rand, _ int) string { return strings.Repeat("x", rng.IntN(300)) }},
	{"zeros", func(rng *rand.Rand, _ int) string { return strings.Repeat("\x00", rng.IntN(80)) }},
	{"two values a byte", func(rng *rand.Rand, _ int) string { return facetest.BytesOf(rng, 24, "ab") }},
	{"three values a byte", func(rng *rand.Rand, _ int) string { return facetest.BytesOf(rng, rng.IntN(20), "\x00a\xff") }},
	{"four values a byte", func(rng *rand.Rand, _ int) string { return facetest.BytesOf(rng, 16, "ACGT") }},
	{"different past 4 KiB", func(rng *rand.Rand, _ int) string { return longSame + facetest.BytesOf(rng, rng.IntN(4), "\x00az") }},
	{"random bytes", func(rng *rand.Rand, _ int) string { return facetest.AnyBytes(rng, rng.IntN(40)) }},
	{"long random bytes", func(rng *rand.Rand, i int) string { return facetest.AnyBytes(rng, 1<<(i%12)) }},
	{"URLs", facetest.AURL},
	{"UUIDs", facetest.AUUID},
	{"phone numbers", facetest.APhone},
}

// longSame is longer than what a tree looks at of a string.
var longSame = strings.Repeat("the same for long ", 300)

// near returns strings close to those of a list: cut, longer, changed.
func near(rng *rand.Rand, words []string, n int) (out []string) {
	out = []string{"", "\x00", "\xff", longSame, longSame + longSame}
	for len(out) < n && len(words) > 0 {
		w := words[rng.IntN(len(words))]
		switch rng.IntN(6) {
		case 0:
			w = w[:rng.IntN(len(w)+1)]
		case 1:
			w += string([]byte{byte(rng.IntN(256))})
		case 2:
			w += "\x00"
		case 3:
			b := append([]byte(w), 'x')
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			w = string(b[:len(w)])
		}
		out = append(out, w)
	}
	return out
}

// Every method gives what a sorted slice gives for strings that are made to be
// awkward, in every layout, in memory and in a file.
func TestAwkwardStrings(t *testing.T) {
	for _, set := range wordSets {
		t.Run(set.name, func(t *testing.T) {
			rng := seed.Rand(t)
			path := filepath.Join(t.TempDir(), "index")
			sizes := []int{1, 2, 17, 256, 700}
			if !seed.Long() {
				sizes = []int{17, sizes[rng.IntN(4)]}
			}
			for _, n := range sizes {
				words, vals := make([]string, n), make([]uint64, n)
				for i := range words {
					words[i], vals[i] = set.word(rng, i), facetest.Uint64Values.Of(i)
				}
				m := facetest.NewModel(words, vals, facetest.Uint64Values.Same)
				asked := near(rng, words, 60)
				for _, layout := range facetest.Layouts[string](facetest.Uint64Values) {
					opts := []pando.Option{pando.Layout(layout), pando.On(pando.CPU)}
					if err := inMemoryAndFile(path, words, vals, opts, m, asked); err != nil {
						t.Fatalf("%v, %d strings: %.400v", layout, n, err)
					}
				}
			}
		})
	}
}

// inMemoryAndFile compares an index with its model, and the same from a file.
func inMemoryAndFile[K pando.Key, V any](path string, keys []K, vals []V, opts []pando.Option, m *facetest.Model[K, V], asked []K) error {
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		return err
	}
	defer ix.Close()
	if err := facetest.CheckIndex(ix, m, asked); err != nil {
		return err
	}
	if err := ix.Save(path); err != nil {
		return err
	}
	opened, err := pando.Open[K, V](path, append(opts, pando.Verified())...)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := facetest.CheckIndex(opened, m, asked); err != nil {
		return fmt.Errorf("from a file: %w", err)
	}
	return pando.Verify(path)
}

// Prefixes that end in the greatest byte have no next string of their length.
func TestPrefixOfGreatestBytes(t *testing.T) {
	words := []string{"", "a", "a\xfe", "a\xff", "a\xff\x00", "a\xff\xff", "a\xff\xff\xff", "b", "\xfe", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff"}
	vals := make([]uint64, len(words))
	m := facetest.NewModel(words, vals, facetest.Uint64Values.Same)
	for _, layout := range facetest.Layouts[string](facetest.Uint64Values) {
		ix := facetest.MustFreeze(t, words, vals, pando.Layout(layout))
		for _, p := range append(words, "a\xff\xff\xff\xff", "\xff\xff\xff\xff", "\xfe\xff", "c", "\x00") {
			if err := facetest.CheckPrefix(ix, m, p); err != nil {
				t.Errorf("%v: %v", layout, err)
			}
		}
		ix.Close()
	}
}

// Numbers have no prefixes.
func TestPrefixOfNumbers(t *testing.T) {
	ix := counted(t, 5)
	defer ix.Close()
	for name, do := range map[string]func(){"Prefix": func() { ix.Prefix(1) }, "PrefixCount": func() { ix.PrefixCount(1) }} {
		if got := facetest.PanicOf(do); !strings.Contains(got, "pando: "+name+": only strings have prefixes") || !strings.Contains(got, "uint64") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
