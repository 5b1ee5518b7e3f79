package data

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/bench/contest"
)

// hosts is the number of sites that the URLs belong to, if there are that many
// URLs.
const hosts = 4 * contest.Kilo

// URLs returns n addresses of pages as in logs: the host's share follows
// Zipf's law, the path consists of words and numbers, and some have a query.
func URLs(n int, seed uint64) []string {
	sites := newSites(min(hosts, n), seed)
	counts := shares(n, len(sites))
	keys := make([]string, n)
	// The large hosts come first, so that cores finish at about the same time;
	// where a host's keys go depends on its name.
	starts := startsBy(sites, counts)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range contest.AllCores() {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(sites); i = int(next.Add(1)) - 1 {
				fillSite(keys[starts[i]:][:counts[i]], sites[i], NewRand(seed, StreamTexts+uint64(i)))
			}
		})
	}
	wg.Wait()
	return keys
}

// shares cuts n into parts in proportion to 1, 1/2, 1/3, ..., each at least 1.
func shares(n, parts int) []int {
	sum := 0.0
	for i := range parts {
		sum += 1 / float64(i+1)
	}
	out, left := make([]int, parts), n-parts
	for i := range out {
		out[i] = 1 + int(math.Floor(float64(n-parts)/float64(i+1)/sum))
		left -= out[i] - 1
	}
	out[0] += left
	return out
}

// startsBy returns where the keys of each site begin, in the order of names.
func startsBy(sites []string, counts []int) []int {
	order := make([]int, len(sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(sites[a], sites[b]) })
	starts, at := make([]int, len(sites)), 0
	for _, i := range order {
		starts[i] = at
		at += counts[i]
	}
	return starts
}

// newSites makes n different beginnings of URLs, none a prefix of another:
// each ends with the slash after the host.
func newSites(n int, seed uint64) []string {
	rng, seen := NewRand(seed, StreamTexts-1), map[string]bool{}
	var out []string
	for len(out) < n {
		name := anyOf(rng, urlWords) + anyOf(rng, urlWords)
		if rng.IntN(4) == 0 {
			name += strconv.Itoa(rng.IntN(100))
		}
		site := anyOf(rng, urlSchemes) + anyOf(rng, urlPrefixes) + name + anyOf(rng, urlDomains) + "/"
		if !seen[site] {
			seen[site] = true
			out = append(out, site)
		}
	}
	return out
}

// fillSite fills keys with different URLs of a site, in order.
func fillSite(keys []string, site string, rng *rand.Rand) {
	var drawn []string
	for len(drawn) < len(keys) {
		drawn = append(drawn, drawURLs(site, len(keys)-len(drawn)+8, rng)...)
		slices.Sort(drawn)
		drawn = slices.Compact(drawn)
	}
	// Not the first ones: dropping random ones keeps the mix as it was drawn.
	for extra := len(drawn) - len(keys); extra > 0; extra-- {
		at := rng.IntN(len(drawn))
		drawn = slices.Delete(drawn, at, at+1)
	}
	total := 0
	for _, k := range drawn {
		total += len(k)
	}
	block := make([]byte, 0, total)
	for i, k := range drawn {
		start := len(block)
		block = append(block, k...)
		keys[i] = asString(block[start:len(block):len(block)])
	}
}

func drawURLs(site string, n int, rng *rand.Rand) []string {
	out, block := make([]string, n), make([]byte, 0, 64*n)
	for i := range out {
		start := len(block)
		block = appendURL(block, site, rng)
		out[i] = asString(block[start:len(block):len(block)])
	}
	return out
}

// appendURL appends one address: up to three words, then usually an article,
// an item's number or a file, then for some a query.
func appendURL(b []byte, site string, rng *rand.Rand) []byte {
	b = append(b, site...)
	for range 1 + rng.IntN(3) {
		b = append(append(b, skewed(rng, urlWords)...), '/')
	}
	switch rng.IntN(4) {
	case 0: // an article
		b = strconv.AppendInt(b, 2005+rng.Int64N(20), 10)
		for range 3 + rng.IntN(3) {
			b = append(append(b, '-'), anyOf(rng, urlWords)...)
		}
		b = append(b, ".html"...)
	case 1: // an item
		b = strconv.AppendInt(b, rng.Int64N(1e8), 10)
	case 2: // a file
		b = strconv.AppendUint(b, rng.Uint64()>>16, 16)
		b = append(b, anyOf(rng, urlEndings)...)
	case 3: // a page of a list
		b = append(b, anyOf(rng, urlWords)...)
	}
	if rng.IntN(10) < 3 {
		b = append(append(append(b, '?'), skewed(rng, urlWords)...), '=')
		b = strconv.AppendInt(b, rng.Int64N(1e6), 10)
		if rng.IntN(2) == 0 {
			b = append(append(b, "&page="...), strconv.Itoa(1+rng.IntN(40))...)
		}
	}
	return b
}

func anyOf(rng *rand.Rand, words []string) string { return words[rng.IntN(len(words))] }

// skewed prefers the first words: the share of a word falls as in a list of
// sections, where a few hold most pages.
func skewed(rng *rand.Rand, words []string) string {
	x := rng.Float64()
	return words[int(x*x*x*float64(len(words)))]
}

var (
	urlSchemes  = []string{"https://", "https://", "https://", "https://", "http://"}
	urlPrefixes = []string{"www.", "www.", "", "", "shop.", "blog.", "m.", "docs."}
	urlDomains  = []string{".com", ".com", ".com", ".org", ".net", ".de", ".co.uk", ".io", ".fr", ".jp"}
	urlEndings  = []string{".jpg", ".png", ".css", ".js", ".pdf"}
	urlWords    = []string{
		"news", "products", "article", "images", "user", "search", "category", "static", "archive", "item",
		"sports", "world", "music", "photo", "video", "travel", "health", "science", "market", "review",
		"forum", "topic", "thread", "reply", "profile", "account", "order", "cart", "price", "sale",
		"book", "film", "game", "food", "garden", "house", "street", "river", "mountain", "forest",
		"summer", "winter", "spring", "autumn", "morning", "evening", "night", "light", "dark", "blue",
		"green", "red", "white", "black", "silver", "golden", "small", "large", "early", "late",
		"open", "closed", "public", "private", "local", "global", "north", "south", "east", "west",
		"engine", "wheel", "train", "plane", "ship", "harbor", "bridge", "tower", "castle", "city",
		"school", "lesson", "teacher", "student", "paper", "letter", "story", "poem", "song", "dance",
		"bread", "coffee", "tea", "apple", "orange", "lemon", "pepper", "salt", "sugar", "honey",
		"data", "cloud", "server", "network", "code", "release", "version", "guide", "manual", "index",
		"about", "contact", "press", "career", "partner", "support", "policy", "terms", "event", "calendar",
	}
)
