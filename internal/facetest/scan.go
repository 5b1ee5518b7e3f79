package facetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// CheckScans compares scans with the model: random bounds, directions and
// limits, until they have yielded many entries.
func CheckScans[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], asked []K, rng *rand.Rand) error {
	return checkScans(&anyIndex[K, V]{ix}, &anyModel[K, V]{m}, anys(asked), rng)
}

func checkScans(ix index, m model, asked []any, rng *rand.Rand) error {
	left := seed.Size(20_000, 1_000_000)
	for i := 0; i < min(200, 4*len(asked)) && left > 0; i++ {
		lo, hi, reverse, limit := 0, m.size(), false, -1
		var opts []pando.ScanOption
		for range rng.IntN(4) {
			k := asked[rng.IntN(len(asked))]
			bounds := m.bounds(k)
			switch what := rng.IntN(6); what {
			case 0:
				opts, lo = append(opts, bounds[0]), max(lo, m.rank(k))
			case 1:
				opts, lo = append(opts, bounds[1]), max(lo, m.after(k))
			case 2:
				opts, hi = append(opts, bounds[2]), min(hi, m.after(k))
			case 3:
				opts, hi = append(opts, bounds[3]), min(hi, m.rank(k))
			case 4:
				opts, reverse = append(opts, pando.Reverse()), true
			case 5:
				n := rng.IntN(20)
				opts = append(opts, pando.Limit(n))
				if limit < 0 || n < limit {
					limit = n
				}
			}
		}
		n, err := checkScan(ix, m, opts, lo, max(lo, hi), reverse, limit)
		if err != nil {
			return fmt.Errorf("Scan(%+v): %w", opts, err)
		}
		left -= n
	}
	return nil
}

// checkScan checks that a scan yields entries [lo, hi), the first limit of them
// where that is not below 0. It returns how many these are.
func checkScan(ix index, m model, opts []pando.ScanOption, lo, hi int, reverse bool, limit int) (n int, err error) {
	want := hi - lo
	if limit >= 0 {
		want = min(want, limit)
	}
	for k, v := range ix.Scan(opts) {
		i := lo + n
		if reverse {
			i = hi - 1 - n
		}
		if n >= want || !m.is(i, k, v) {
			return n, fmt.Errorf("entry %d is %v, %v; want %d entries of [%d, %d)", n, k, v, want, lo, hi)
		}
		n++
	}
	if n != want {
		return n, fmt.Errorf("%d entries, want %d of [%d, %d)", n, want, lo, hi)
	}
	return n, nil
}

// CheckCursor walks a cursor at random and compares it with the model.
func CheckCursor[K pando.Key, V any](ix pando.Index[K, V], m *Model[K, V], asked []K, rng *rand.Rand) error {
	return checkCursor((&anyIndex[K, V]{ix}).Cursor(), &anyModel[K, V]{m}, anys(asked), rng)
}

func checkCursor(c cursor, m model, asked []any, rng *rand.Rand) error {
	n := m.size()
	at, on := -1, false // before entry at, or at it; -1 for a new one
	for range 300 {
		name, got := "", false
		switch rng.IntN(12) {
		case 0:
			k := asked[rng.IntN(len(asked))]
			name, got, at = fmt.Sprintf("Seek(%v)", k), c.Seek(k), m.rank(k)
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
		if on && !m.is(at, c.Key(), c.Value()) {
			return fmt.Errorf("%s to entry %d: %v, %v", name, at, c.Key(), c.Value())
		}
		if on && isText(c.Key()) && string(c.AppendKey([]byte("<"))) != "<"+text(c.Key()) {
			return fmt.Errorf("AppendKey at entry %d: %q", at, c.AppendKey(nil))
		}
	}
	return nil
}
