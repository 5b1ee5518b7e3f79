package pandoserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// randomKey returns a key of one of several kinds: short ones of few bytes, and long
// ones that begin alike.
func randomKey(rng *rand.Rand) string {
	switch rng.IntN(5) {
	case 0:
		out := make([]byte, rng.IntN(12))
		for i := range out {
			out[i] = "\x00\x01az09:\xfe\xff"[rng.IntN(9)]
		}
		return string(out)
	case 1:
		return fmt.Sprintf("user:%d", rng.IntN(2000))
	case 2:
		return fmt.Sprintf("https://www.example.com/a/long/way/to/%05d", rng.IntN(2000))
	case 3:
		return strings.Repeat("z", rng.IntN(40)) + strconv.Itoa(rng.IntN(20))
	}
	out := make([]byte, rng.IntN(20))
	for i := range out {
		out[i] = byte(rng.IntN(256))
	}
	return string(out)
}

// Codes are in the order of keys, and the key of a code is the least that has it or a
// greater one.
func TestCodes(t *testing.T) {
	rng := seed.Rand(t)
	keys := make([]string, seed.Times(20_000, 1_000_000))
	for i := range keys {
		keys[i] = randomKey(rng)
	}
	slices.Sort(keys)
	before := ""
	for _, k := range keys {
		code := codeOf(k)
		if code < codeOf(before) || code >= 1<<codeBits {
			t.Fatalf("%q: %d, %q: %d", before, codeOf(before), k, code)
		}
		least := keyOf(code)
		if least > k || codeOf(least) != code {
			t.Fatalf("%q has the code %d, whose least key is %q, of %d", k, code, least, codeOf(least))
		}
		if codeOf(before) < code && least <= before {
			t.Fatalf("the least key of %q is %q, which is not behind %q", k, least, before)
		}
		before = k
	}
	for range 100_000 { // clients may send any number
		if code := rng.Uint64() >> 7; codeOf(keyOf(code)) > code {
			t.Fatalf("%d: %q", code, keyOf(code))
		}
	}
}

// How far keys are told apart.
func TestCodesTell(t *testing.T) {
	for _, pair := range [][2]string{
		{"key:00000001", "key:00000002"}, {"user:1000123", "user:1000124"}, {"session:ab", "session:ac"}, {"2026-11-16", "2026-11-17"}, {"0000000000000", "0000000000001"},
	} {
		if codeOf(pair[0]) == codeOf(pair[1]) {
			t.Errorf("%q and %q have one code", pair[0], pair[1])
		}
	}
}

// scanned is a scan of a source, step by step, as a client does it.
type scanned struct {
	src  Source
	scan scanning
	seen map[string]bool
	done bool
}

func (s *scanned) step() {
	s.scan.most = 1 << 30
	next, keys, _ := s.scan.texts(s.src)
	for _, k := range keys {
		s.seen[k] = true
	}
	s.scan.cursor, s.done = next, next == 0
}

// A scan returns every key that is there throughout, whatever others do meanwhile, and nothing
// that was never there.
func TestScanReturnsWhatStays(t *testing.T) {
	rng := seed.Rand(t)
	for round := range seed.Times(150, 5000) {
		t.Run(strconv.Itoa(round), func(t *testing.T) { scanOnce(t, rng) }) // each closes its tree
	}
}

// scanOnce is one scan beside changes.
func scanOnce(t *testing.T, rng *rand.Rand) {
	src := memory(t)
	stays, ever := map[string]bool{}, map[string]bool{}
	put := func(k string) {
		ever[k] = true
		if err := src.Update(k, func([]byte, bool) ([]byte, bool) { return nil, true }); err != nil {
			t.Fatal(err)
		}
	}
	// Keys of one kind at first, so that they begin alike, and then of all.
	kind := rng.Uint64()
	for range 1 + rng.IntN(300) {
		k := fmt.Sprintf("https://www.example.com/a/long/way/to/%05d", rng.IntN(2000))
		if kind%3 == 0 {
			k = randomKey(rng)
		}
		put(k)
		stays[k] = true
	}
	s := scanned{src: src, scan: scanning{count: 1 + rng.Int64N(20)}, seen: map[string]bool{}}
	if kind%4 == 0 {
		s.scan.pattern, s.scan.matches = "https://www.*", true
	}
	for steps := 0; !s.done; steps++ {
		s.step()
		if steps < 50 && rng.IntN(2) == 0 { // later nothing changes, or it would not end
			k := randomKey(rng)
			put(k)
			for k := range stays {
				if rng.IntN(10) == 0 {
					delete(stays, k)
					if _, err := src.DeleteRange(Bounds{Lo: k, Hi: k, From: With, To: With}); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
		}
		if steps > 100_000 {
			t.Fatal("the scan does not end")
		}
	}
	for k := range stays {
		if s.scan.matches && !matches(s.scan.pattern, k) {
			continue
		}
		if !s.seen[k] {
			t.Fatalf("%q was there throughout, and not returned", k)
		}
	}
	for k := range s.seen {
		if !ever[k] || s.scan.matches && !matches(s.scan.pattern, k) {
			t.Fatalf("%q was returned", k)
		}
	}
}

// Without changes every key is returned once, in pages of about the size that was asked for.
func TestScanPages(t *testing.T) {
	for _, form := range []string{"key:%012d", "user:%d", "https://www.example.com/a/long/way/to/an/entry/with/number/%08d", "%d"} {
		src := memory(t)
		const n = 20_000
		for i := range n {
			_ = src.Update(fmt.Sprintf(form, i), func([]byte, bool) ([]byte, bool) { return nil, true })
		}
		s, total := scanning{count: 100, most: 1 << 30}, 0
		for {
			next, keys, _ := s.texts(src)
			if total += len(keys); len(keys) > 300 {
				t.Errorf("%s: a page of %d keys", form, len(keys))
			}
			if next >= 1<<63 {
				t.Fatalf("%s: the cursor is %d", form, next)
			}
			if s.cursor = next; next == 0 {
				break
			}
		}
		if total != n {
			t.Errorf("%s: %d keys of %d", form, total, n)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, key string
		want         bool
	}{
		{"", "", true}, {"*", "", true}, {"?", "", false}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"**a**", "a", true},
		{"[a-c]x", "bx", true}, {"[c-a]x", "bx", true}, {"[^a-c]x", "bx", false}, {"[^a-c]x", "dx", true}, {`\*`, "*", true}, {`\*`, "a", false},
		{`[\]]`, "]", true}, {"[abc", "c", true}, {"[", "[", false}, {`a\`, `a\`, true}, {"h?llo", "hello", true}, {"[]", "a", false}, {"[^]", "a", true},
		{strings.Repeat("a*", 30) + "b", strings.Repeat("a", 200), false},
	} {
		if got := matches(c.pattern, c.key); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.key, got)
		}
	}
}
