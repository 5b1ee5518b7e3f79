package facetest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pando-index/pando"
)

// CheckScans compares scans with the model: random bounds, directions and
// limits.
func CheckScans[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], asked []K, rng *rand.Rand) error {
	for range min(200, 4*len(asked)) {
		lo, hi, reverse, limit := 0, len(m.Keys), false, -1
		var opts []pando.ScanOption
		var said []string
		for range rng.IntN(4) {
			k := asked[rng.IntN(len(asked))]
			switch what := rng.IntN(6); what {
			case 0:
				opts, lo = append(opts, pando.From(k)), max(lo, m.Rank(k))
			case 1:
				opts, lo = append(opts, pando.After(k)), max(lo, m.After(k))
			case 2:
				opts, hi = append(opts, pando.To(k)), min(hi, m.After(k))
			case 3:
				opts, hi = append(opts, pando.Before(k)), min(hi, m.Rank(k))
			case 4:
				opts, reverse = append(opts, pando.Reverse()), true
			case 5:
				n := rng.IntN(20)
				opts = append(opts, pando.Limit(n))
				if limit < 0 || n < limit {
					limit = n
				}
			}
			said = append(said, fmt.Sprintf("%+v", opts[len(opts)-1]))
		}
		if err := checkScan(ix, m, opts, lo, max(lo, hi), reverse, limit); err != nil {
			return fmt.Errorf("Scan(%s): %w", strings.Join(said, ", "), err)
		}
	}
	return nil
}

// checkScan checks that a scan yields entries [lo, hi), the first limit of them
// where that is not below 0.
func checkScan[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], opts []pando.ScanOption, lo, hi int, reverse bool, limit int) error {
	want := hi - lo
	if limit >= 0 {
		want = min(want, limit)
	}
	n := 0
	for k, v := range ix.Scan(opts...) {
		i := lo + n
		if reverse {
			i = hi - 1 - n
		}
		if n >= want || !m.Is(i, k, v) {
			return fmt.Errorf("entry %d is %v, %v; want %d entries of [%d, %d)", n, k, v, want, lo, hi)
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%d entries, want %d of [%d, %d)", n, want, lo, hi)
	}
	return nil
}

// CheckCursor walks a cursor at random and compares it with the model.
func CheckCursor[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], asked []K, rng *rand.Rand) error {
	c, n := ix.Cursor(), len(m.Keys)
	at, on := -1, false // before entry at, or at it; -1 for a new one
	for range 300 {
		name, got := "", false
		switch rng.IntN(12) {
		case 0:
			k := asked[rng.IntN(len(asked))]
			name, got, at = fmt.Sprintf("Seek(%v)", k), c.Seek(k), m.Rank(k)
		case 1:
			name, got, at = "First", c.First(), 0
		case 2:
			name, got, at = "Last", c.Last(), n-1
		case 3, 4, 5, 6, 7:
			name, got = "Next", c.Next()
			if on || at < 0 {
				at++
			}
		default:
			name, got = "Prev", c.Prev()
			if at < 0 {
				at = n
			}
			at--
		}
		on = at >= 0 && at < n
		at = max(0, min(at, n))
		if got != on || c.Valid() != on {
			return fmt.Errorf("%s to entry %d of %d: %v, Valid %v", name, at, n, got, c.Valid())
		}
		if on && !m.Is(at, c.Key(), c.Value()) {
			return fmt.Errorf("%s to entry %d: %v, %v", name, at, c.Key(), c.Value())
		}
		if on && CodeBytes[K]() == 0 && string(c.AppendKey([]byte("<"))) != fmt.Sprint("<", m.Keys[at]) {
			return fmt.Errorf("AppendKey at entry %d: %q", at, c.AppendKey(nil))
		}
	}
	return nil
}
