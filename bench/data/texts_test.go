package data

import (
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

var textForms = map[string]*regexp.Regexp{
	"URLs":   regexp.MustCompile(`^https?://[a-z.]*[a-z]+[0-9]{0,2}\.[a-z.]+/[a-z]+/[a-z0-9./?=&-]*$`),
	"UUIDs":  regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
	"phones": regexp.MustCompile(`^[123][0-9]-[1-9][0-9]{2}-[1-9][0-9]{2}-[1-9][0-9]{3}$`),
}

// Strings of each kind are sorted, distinct, as many as requested, of the form
// of their kind, and the same again from the same seed.
func TestTextsAreWhatTheySay(t *testing.T) {
	start := seed.Of(t)
	for _, kind := range TextKinds {
		for _, n := range []int{1, 2, 3, 1000, 50_000} {
			keys := kind.Keys(n, start)
			if len(keys) != n || !isSortedSet(keys) {
				t.Fatalf("%s: %d keys of %d, in order and distinct: %v", kind.Label, len(keys), n, isSortedSet(keys))
			}
			for _, k := range keys {
				if !textForms[kind.Label].MatchString(k) {
					t.Fatalf("%s: %q is none", kind.Label, k)
				}
			}
			if again := kind.Keys(n, start); strings.Join(again, "") != strings.Join(keys, "") {
				t.Errorf("%s: another set from the same seed", kind.Label)
			}
		}
	}
}

// Every country's code is drawn, and the groups use their whole range.
func TestPhonesFillTheirRange(t *testing.T) {
	keys := Phones(50_000, 3)
	if a, b := keys[0][:2], keys[len(keys)-1][:2]; a != "10" || b != "34" {
		t.Errorf("countries from %s to %s", a, b)
	}
	for i, want := range []uint64{0, allPhones - 1} {
		dst := make([]byte, PhoneBytes)
		putPhone(dst, want)
		if got := string(dst); got != []string{"10-100-100-1000", "34-999-999-9999"}[i] {
			t.Errorf("number %d is %s", want, got)
		}
	}
}

// Scaled numbers stay in order and in their range, even where they are
// crowded.
func TestBelowStaysInRange(t *testing.T) {
	for _, in := range [][]uint64{{0, 0, 0}, {^uint64(0), ^uint64(0)}, {1, 1 << 63, 1<<63 + 1}} {
		out := Below(append([]uint64(nil), in...), 4)
		for i, k := range out {
			if k >= 4 || i > 0 && k <= out[i-1] {
				t.Errorf("%d became %d", in, out)
			}
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {7, 7}, {100, 7}, {1 << 20, 4096}} {
		sum := 0
		parts := shares(c[0], c[1])
		for i, p := range parts {
			sum += p
			if p < 1 || i > 0 && p > parts[i-1] {
				t.Errorf("%d in %d parts: part %d is %d", c[0], c[1], i, p)
			}
		}
		if sum != c[0] {
			t.Errorf("%d in %d parts adds up to %d", c[0], c[1], sum)
		}
	}
}

// Queries are equal to keys, but none is at the address of its key.
func TestTextQueriesAreCopies(t *testing.T) {
	set := &Texts{Keys: URLs(500, 1)}
	q := NewTextQueries(set, 2000)
	for round := range 3 {
		q.Draw(9, round)
		for i, k := range q.Q {
			if key := set.Keys[q.At[i]]; k != key || unsafe.StringData(k) == unsafe.StringData(key) {
				t.Fatalf("round %d, query %d: %q for %q", round, i, k, key)
			}
		}
	}
}

// Strings with few values per byte are sorted, of the right size, and use all
// values and no others.
func TestDigitTexts(t *testing.T) {
	for _, values := range []int{1, 2, 4, 10, 52, 128, 256} {
		for _, size := range []int{4, 8, 16, 33, 128} {
			keys := DigitTexts(3000, size, values, uint64(size))
			seen := map[byte]bool{}
			for i, k := range keys {
				if len(k) != size || i > 0 && k < keys[i-1] {
					t.Fatalf("%d values, size %d: key %d is %q", values, size, i, k)
				}
				for _, c := range []byte(k) {
					seen[c] = true
				}
			}
			for _, c := range letters(values) {
				if !seen[c] {
					t.Errorf("%d values, size %d: byte %d is never used", values, size, c)
				}
				delete(seen, c)
			}
			if len(seen) > 0 {
				t.Errorf("%d values, size %d: also uses %v", values, size, seen)
			}
		}
	}
}
