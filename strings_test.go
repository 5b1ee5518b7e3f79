package pando_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pando-index/pando"
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
	{"two values a byte", func(rng *rand.Rand, _ int) string { return bytesOf(rng, 24, "ab") }},
	{"three values a byte", func(rng *rand.Rand, _ int) string { return bytesOf(rng, rng.IntN(20), "\x00a\xff") }},
	{"four values a byte", func(rng *rand.Rand, _ int) string { return bytesOf(rng, 16, "ACGT") }},
	{"different past 4 KiB", func(rng *rand.Rand, _ int) string { return longSame + bytesOf(rng, rng.IntN(4), "\x00az") }},
	{"random bytes", func(rng *rand.Rand, _ int) string { return anyBytes(rng, rng.IntN(40)) }},
	{"long random bytes", func(rng *rand.Rand, i int) string { return anyBytes(rng, 1<<(i%12)) }},
	{"URLs", aURL},
	{"UUIDs", aUUID},
	{"phone numbers", aPhone},
}

// longSame is longer than what a tree looks at of a string.
var longSame = strings.Repeat("the same for long ", 300)

// bytesOf gives n bytes of few values.
func bytesOf(rng *rand.Rand, n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[rng.IntN(len(from))]
	}
	return string(b)
}

// anyBytes gives n bytes of any value.
func anyBytes(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

func aURL(rng *rand.Rand, _ int) string {
	path := []string{"/", "/index.html", "/item?id=", "/de/item?id=", "/img/"}[rng.IntN(5)]
	return fmt.Sprintf("https://%s%d.example.%s%s%d", []string{"www", "shop", "m"}[rng.IntN(3)], rng.IntN(20),
		[]string{"com", "org", "net"}[rng.IntN(3)], path, rng.IntN(500))
}

func aUUID(rng *rand.Rand, _ int) string {
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", rng.Uint32(), rng.IntN(1<<16), rng.IntN(1<<12), 0x8000|rng.IntN(1<<14), rng.Uint64()>>16)
}

// aPhone is a number as TPC-H makes them: a country and ten digits.
func aPhone(rng *rand.Rand, _ int) string {
	return fmt.Sprintf("%d-%d-%d-%d", 10+rng.IntN(25), 100+rng.IntN(900), 100+rng.IntN(900), 1000+rng.IntN(9000))
}

// near gives strings close to those of a list: cut, longer, changed.
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
			for _, n := range []int{1, 2, 17, 256, 700} {
				if (raceDetector || testing.Short()) && n > 256 {
					continue
				}
				words, vals := make([]string, n), make([]uint64, n)
				for i := range words {
					words[i], vals[i] = set.word(rng, i), uint64Values.of(i)
				}
				m := newModel(words, vals, uint64Values.same)
				asked := near(rng, words, 60)
				for _, layout := range layouts[string](uint64Values) {
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
func inMemoryAndFile[K pando.Key, V any](path string, keys []K, vals []V, opts []pando.Option, m *model[K, V], asked []K) error {
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		return err
	}
	defer ix.Close()
	if err := checkIndex(ix, m, asked); err != nil {
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
	if err := checkIndex(opened, m, asked); err != nil {
		return fmt.Errorf("from a file: %w", err)
	}
	return pando.Verify(path)
}

// checkPrefix compares Prefix and PrefixCount with a look at every key.
func checkPrefix[K pando.Key, V any](ix *pando.Frozen[K, V], m *model[K, V], p K) error {
	text := func(k K) string { return reflect.ValueOf(k).String() }
	first := m.rank(p)
	end := first
	for end < len(m.keys) && strings.HasPrefix(text(m.keys[end]), text(p)) {
		end++
	}
	if n := ix.PrefixCount(p); n != end-first {
		return fmt.Errorf("PrefixCount(%q) = %d, want %d", text(p), n, end-first)
	}
	if err := m.sequence(ix.Prefix(p), first, end, 200); err != nil {
		return fmt.Errorf("Prefix(%q): %w", text(p), err)
	}
	return nil
}

// Prefixes that end in the greatest byte have no next string of their length.
func TestPrefixOfGreatestBytes(t *testing.T) {
	words := []string{"", "a", "a\xfe", "a\xff", "a\xff\x00", "a\xff\xff", "a\xff\xff\xff", "b", "\xfe", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff"}
	vals := make([]uint64, len(words))
	m := newModel(words, vals, uint64Values.same)
	for _, layout := range layouts[string](uint64Values) {
		ix := mustFreeze(t, words, vals, pando.Layout(layout))
		for _, p := range append(words, "a\xff\xff\xff\xff", "\xff\xff\xff\xff", "\xfe\xff", "c", "\x00") {
			if err := checkPrefix(ix, m, p); err != nil {
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
		if got := panicOf(do); !strings.Contains(got, "pando: "+name+": only strings have prefixes") || !strings.Contains(got, "uint64") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
