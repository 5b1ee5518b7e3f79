package fast

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
	"github.com/pando-index/pando/internal/seed"
)

// The model's masks keep order: whatever is below by them is below, and keys
// under the same page never differ outside of the granules before the last one
// taken.
func TestPartialKeysKeepOrder(t *testing.T) {
	start := seed.Of(t)
	for _, values := range entropies {
		m := newPartialModel(data.DigitTexts(5000, entropyBytes, values, start))
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
	keys := data.DigitTexts(200_000, entropyBytes, 128, 1)
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
	s := rigtest.Interpreted(t, keyEntropy, 300_000, 1000)
	if err := keyEntropy.Run(s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 4*(len(entropies)+1) {
		t.Fatalf("%d rows: %q", len(s.Rows), rigtest.Names(s.Rows))
	}
	for _, r := range s.Rows {
		if r.Extra[colCompares] < 1 || r.Extra[colWork] < 1 {
			t.Errorf("%s, %s: less than the least: %v", r.System, r.Case, r.Extra)
		}
	}
	at := slices.IndexFunc(s.Rows, func(r *contest.Row) bool { return r.Case == "10" && r.System == contiguous.name })
	if other := s.Rows[at-1]; other.Extra[colWalked] >= s.Rows[at].Extra[colWalked] {
		t.Errorf("10 values a byte: %v non-contiguous, %v contiguous", other.Extra, s.Rows[at].Extra)
	}
}

// The tree of full keys returns the same ranks as a sorted slice, for every
// key size, numbers of keys around what fills its levels, equal keys and
// misses.
func TestFullKeysRank(t *testing.T) {
	start := seed.Of(t)
	for _, size := range keySizes {
		for _, n := range []int{1, 2, 3, 7, 15, 16, 255, 1000, 4095, 40_000} {
			for _, values := range []int{2, 10, 256} {
				keys := data.DigitTexts(n, size, values, start)
				tree, err := buildFullKeys(keys)
				if err != nil {
					t.Fatal(err)
				}
				q := append(data.DigitTexts(500, size, values, start+1), keys[:min(n, 500)]...)
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
		n := keysOf(4*contest.Mega, size)
		tree, err := buildFullKeys(data.DigitTexts(n, size, 10, 1))
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
	for _, e := range []*contest.Experiment{fastSizes, fastBuild} {
		for _, n := range []int{1, 17, 300, 5000} {
			s := rigtest.Interpreted(t, e, n, 100)
			s.Elsewhere = true
			if err := e.Run(s); err != nil {
				t.Fatal(err)
			}
			for _, l := range layoutsCompared {
				if rows := slices.DeleteFunc(rigtest.Names(s.Rows), func(name string) bool { return !strings.HasPrefix(name, l.name) }); len(rows) != 2 {
					t.Errorf("%s, n %d: rows %q, want one on the CPU and one on the GPU", e.Name, n, rows)
				}
			}
			if len(s.Skipped) > 0 || s.GPUInfo == nil {
				t.Errorf("%s: left out %q, GPU %v", e.Name, s.Skipped, s.GPUInfo)
			}
		}
		s := rigtest.Interpreted(t, e, 1000, 100)
		rigtest.UseGPU(t, func() (rig.Device, error) { return nil, rig.ErrLost })
		if err := e.Run(s); !errors.Is(err, rig.ErrLost) {
			t.Errorf("%s: error %v, want that the GPU is lost", e.Name, err)
		}
	}
}

// Runs every experiment of this issue at sizes around a line, a page and a
// group.
func TestFastExperimentsAtSmallSizes(t *testing.T) {
	for _, e := range []*contest.Experiment{keySize, fastSteps, fastSizes, fastBuild, responseTime, layouts, packedDistance} {
		for _, n := range []int{1, 2, 15, 16, 17, 255, 257, 4097} {
			s := rigtest.Interpreted(t, e, n, 70)
			rigtest.UseGPU(t, func() (rig.Device, error) { return nil, rig.ErrNoDriver })
			if err := e.Run(s); err != nil {
				t.Fatalf("%s, n %d: %v", e.Name, n, err)
			}
			if len(s.Rows) == 0 {
				t.Errorf("%s, n %d: no rows; left out %q", e.Name, n, s.Skipped)
			}
		}
	}
}
