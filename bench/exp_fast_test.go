package main

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// The model's masks keep order: whatever is below by them is below, and keys
// under the same page never differ outside of the granules before the last one
// taken.
func TestPartialKeysKeepOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, values := range entropies {
		m := newPartialModel(digitTexts(5000, entropyBytes, values, seed))
		for _, scheme := range []partialScheme{nonContiguous, contiguous} {
			for _, size := range []int{4, 32, 64, 128} {
				mask := scheme.mask(m.keys, size)
				for i := 1; i < len(m.keys); i++ {
					if a, b := m.keys[i-1].and(mask), m.keys[i].and(mask); b.less(a) {
						t.Fatalf("%s, %d values, %d bits: %x comes before %x", scheme.name, values, size, m.keys[i-1], m.keys[i])
					}
				}
			}
		}
	}
}

// A search that meets no equal partial keys compares one full key; one whose
// partial keys are all equal passes over all of them.
func TestPartialModelCounts(t *testing.T) {
	keys := digitTexts(200_000, entropyBytes, 128, 1)
	m := newPartialModel(keys)
	all := make([]int, 1000)
	for i := range all {
		all[i] = i * 200
	}
	if r := m.row(nonContiguous, all); r.Extra[colCompares] < 1 || r.Extra[colWork] > 1.02 || r.Extra[colWalked] > 1.02 {
		t.Errorf("128 values a byte: %v", r.Extra)
	}
	blind := partialScheme{"blind", func([]wide, int) wide { return wide{} }}
	for _, p := range []int{0, 1, 1023, 1024, 199_999} {
		m.widen(blind)
		masks := make([][]wide, len(m.tiers))
		for i, tier := range m.tiers {
			masks[i] = m.masks(tier, blind)
		}
		_, walked := m.find(m.keys[p], masks)
		want := p + 1 // from the first key of the first page on
		if p >= modelPage {
			want = p + 2 - modelPage // from that page's last
		}
		if walked != want {
			t.Errorf("key %d is found after %d steps, want %d", p, walked, want)
		}
	}
}

// Few values per byte cost the contiguous prefix more than the other scheme.
func TestKeyEntropyShowsTheDifference(t *testing.T) {
	s := interpreted(t, keyEntropy, 300_000, 1000)
	if err := keyEntropy.run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.rows) != 4*(len(entropies)+1) {
		t.Fatalf("%d rows: %q", len(s.rows), names(s.rows))
	}
	for _, r := range s.rows {
		if r.Extra[colCompares] < 1 || r.Extra[colWork] < 1 {
			t.Errorf("%s, %s: less than the least: %v", r.System, r.Case, r.Extra)
		}
	}
	at := slices.IndexFunc(s.rows, func(r *row) bool { return r.Case == "10" && r.System == contiguous.name })
	if other := s.rows[at-1]; other.Extra[colWalked] >= s.rows[at].Extra[colWalked] {
		t.Errorf("10 values a byte: %v non-contiguous, %v contiguous", other.Extra, s.rows[at].Extra)
	}
}

// The tree of full keys returns the same ranks as a sorted slice, for every
// key size, numbers of keys around what fills its levels, equal keys and
// misses.
func TestFullKeysRank(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, size := range keySizes {
		for _, n := range []int{1, 2, 3, 7, 15, 16, 255, 1000, 4095, 40_000} {
			for _, values := range []int{2, 10, 256} {
				keys := digitTexts(n, size, values, seed)
				tree, err := buildFullKeys(keys)
				if err != nil {
					t.Fatal(err)
				}
				q := append(digitTexts(500, size, values, seed+1), keys[:min(n, 500)]...)
				ranks := make([]int, len(q))
				tree.Rank(q, ranks)
				for i, key := range q {
					if want, _ := slices.BinarySearch(keys, key); ranks[i] != want {
						t.Fatalf("size %d, n %d, %d values: rank of %x is %d, want %d", size, n, values, key, ranks[i], want)
					}
				}
				tree.Close()
			}
		}
	}
	if _, err := buildFullKeys([]string{"abc"}); err == nil {
		t.Error("a tree of keys of 3 bytes")
	}
}

// A tree of 2^d-1 keys holds nothing else, except the last slot of a line.
func TestFullKeysWasteNothing(t *testing.T) {
	for _, size := range keySizes {
		n := keysOf(4*mega, size)
		tree, err := buildFullKeys(digitTexts(n, size, 10, 1))
		if err != nil {
			t.Fatal(err)
		}
		keys := float64(int(1)<<tree.levels - 1)
		if most := 1.01 * float64(tree.node) / keys; tree.bytes() > most {
			t.Errorf("size %d: %.1f bytes a key, more than %.1f", size, tree.bytes(), most)
		}
		tree.Close()
	}
}

// With a GPU, each layout has a row for it. Pando's public API finds none
// here: its indexes answer on the CPU.
func TestFastExperimentsWithAGPU(t *testing.T) {
	for _, e := range []*experiment{fastSizes, fastBuild} {
		for _, n := range []int{1, 17, 300, 5000} {
			s := interpreted(t, e, n, 100)
			s.elsewhere = true
			if err := e.run(s); err != nil {
				t.Fatal(err)
			}
			for _, l := range layoutsCompared {
				if rows := slices.DeleteFunc(names(s.rows), func(name string) bool { return !strings.HasPrefix(name, l.name) }); len(rows) != 2 {
					t.Errorf("%s, n %d: rows %q, want one on the CPU and one on the GPU", e.name, n, rows)
				}
			}
			if len(s.skipped) > 0 || s.gpuInfo == nil {
				t.Errorf("%s: left out %q, GPU %v", e.name, s.skipped, s.gpuInfo)
			}
		}
		s := interpreted(t, e, 1000, 100)
		s.openGPU = func() (device.Device, error) { return nil, device.ErrLost }
		if err := e.run(s); !errors.Is(err, device.ErrLost) {
			t.Errorf("%s: error %v, want that the GPU is lost", e.name, err)
		}
	}
}

// Runs every experiment of this issue at sizes around a line, a page and a
// group.
func TestFastExperimentsAtSmallSizes(t *testing.T) {
	for _, e := range []*experiment{stringsExp, keySize, fastSteps, fastSizes, fastBuild, responseTime, layouts, packedDistance} {
		for _, n := range []int{1, 2, 15, 16, 17, 255, 257, 4097} {
			s := interpreted(t, e, n, 70)
			s.openGPU = func() (device.Device, error) { return nil, device.ErrNoDriver }
			if err := e.run(s); err != nil {
				t.Fatalf("%s, n %d: %v", e.name, n, err)
			}
			if len(s.rows) == 0 {
				t.Errorf("%s, n %d: no rows; left out %q", e.name, n, s.skipped)
			}
		}
	}
}

// A wrong rank or value ends the run.
func TestWrongTextAnswersAreFoundOut(t *testing.T) {
	s := testSession(t, 41)
	set := newTexts(s, textKinds[0], 100)
	l := newTextLookups(s, set)
	l.draw(1, 0)
	hits := textBinary{set}.Get(l.q, l.vals, l.found)
	l.vals[len(l.vals)-1]++
	if err := l.check(len(l.q), hits); err == nil || !strings.Contains(err.Error(), "wrong answer") {
		t.Errorf("a wrong value: error %v", err)
	}
	if err := l.check(len(l.q), hits); err == nil {
		t.Error("answers that were there before pass")
	}
	r := newTextRanks(s, set)
	r.draw(1, 0)
	if err := r.check(len(r.q)); err == nil || !strings.Contains(err.Error(), "wrong rank") {
		t.Errorf("a wrong rank: error %v", err)
	}
}
