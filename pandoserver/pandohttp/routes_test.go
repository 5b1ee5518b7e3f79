package pandohttp

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/internal/table/cols"
	"github.com/pando-index/pando/pandoserver"
)

var binaryKind = table.Kind{Of: cols.Binary}

// model is the simplest map that could be right.
type model map[string]string

func (m model) keys() (all []string) {
	for k := range m {
		all = append(all, k)
	}
	sort.Strings(all)
	return all
}

// within returns the keys from lo to hi.
func (m model) within(in func(key string) bool) (all []string) {
	for _, k := range m.keys() {
		if in(k) {
			all = append(all, k)
		}
	}
	return all
}

// randomKey returns a short key, so that random ones are often there. Its characters are those that
// formats and addresses have their own ideas of.
func randomKey(rng *rand.Rand) string {
	alphabet := []rune("ab,\"\n\t %&+é\\07")
	key := make([]rune, rng.IntN(3))
	for i := range key {
		key[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(key)
}

// set changes index and model.
func (m model) set(t testing.TB, src pandoserver.Changer, key, val string) {
	m[key] = val
	if err := src.Apply([]pando.Op{pando.OpSet}, []string{key}, [][]byte{[]byte(val)}, nil); err != nil {
		t.Fatal(err)
	}
}

// entries returns rows as they should come back.
func (m model) entries(keys []string, values bool) (rows []string) {
	for _, k := range keys {
		row := "key:" + k
		if values {
			row += " value:" + m[k]
		}
		rows = append(rows, row)
	}
	return rows
}

// Every route answers in every format, compressed in every way, what the model says.
func TestRoutesByModel(t *testing.T) {
	rng := seed.Rand(t)
	src, m := memory(t), model{}
	for range 150 {
		m.set(t, src, randomKey(rng), strconv.Itoa(rng.IntN(100)-50))
	}
	g := start(t, src, nil)
	codings := []string{"", "gzip", "zstd"}
	for i := range seed.Times(120, 3000) {
		f := formats[i%len(formats)]
		coding := codings[i/len(formats)%len(codings)]
		path, want := randomQuestion(rng, m)
		headers := []string{"Accept", f.media[0]}
		if coding != "" {
			headers = append(headers, "Accept-Encoding", coding)
		}
		r := g.want(200, "GET", path, nil, headers...)
		if f.sink == "csv" || f.sink == "tsv" { // which write a null as nothing
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], ":NULL", ":")
			}
		}
		if got := r.rows(t); !slices.Equal(got, want) {
			t.Fatalf("%s as %s: %q, want %q", path, f.name, got, want)
		}
		if c := r.Header.Get("Content-Encoding"); c != coding && f.name != "parquet" {
			t.Errorf("compressed by %q, want %q", c, coding)
		}
	}
}

// randomQuestion returns a request, and its rows.
func randomQuestion(rng *rand.Rand, m model) (path string, want []string) {
	keys := m.keys()
	key := randomKey(rng)
	first := func(all []string, last bool) []string {
		switch {
		case len(all) == 0:
			return nil
		case last:
			return all[len(all)-1:]
		}
		return all[:1]
	}
	var pairs []string
	lo, hi, after, before := "", "", false, false
	bounded := func(k string) bool { return true }
	ends := func() {
		if rng.IntN(3) > 0 {
			lo, after = randomKey(rng), rng.IntN(2) == 0
			name, was := "lo", bounded
			if after {
				name = "after"
			}
			pairs = append(pairs, name, lo)
			bounded = func(k string) bool { return was(k) && (k > lo || k == lo && !after) }
		}
		if rng.IntN(3) > 0 {
			hi, before = randomKey(rng), rng.IntN(2) == 0
			name, was := "hi", bounded
			if before {
				name = "before"
			}
			pairs = append(pairs, name, hi)
			bounded = func(k string) bool { return was(k) && (k < hi || k == hi && !before) }
		}
	}
	list := func(path string, all []string) (string, []string) {
		values := true
		if rng.IntN(3) == 0 {
			pairs = append(pairs, "reverse", "true")
			slices.Reverse(all)
		}
		if rng.IntN(3) == 0 {
			pairs = append(pairs, "keys", "true")
			values = false
		}
		if n := rng.IntN(8); n < 5 {
			pairs = append(pairs, "limit", strconv.Itoa(n))
			all = all[:min(n, len(all))]
		}
		return query(path, pairs...), m.entries(all, values)
	}
	switch rng.IntN(10) {
	case 0:
		ends()
		return list("/v1/range", m.within(bounded))
	case 1:
		pairs = append(pairs, "prefix", key)
		return list("/v1/prefix", m.within(func(k string) bool { return strings.HasPrefix(k, key) }))
	case 2:
		missing := []string{"skip", "null", ""}[rng.IntN(3)]
		if missing != "" {
			pairs = append(pairs, "missing", missing)
		}
		for range 1 + rng.IntN(5) {
			k := randomKey(rng)
			pairs = append(pairs, "key", k)
			if v, ok := m[k]; ok {
				want = append(want, "key:"+k+" value:"+v)
			} else if missing == "null" {
				want = append(want, "key:"+k+" value:NULL")
			}
		}
		return query("/v1/get", append(pairs, "value_type", "int64")...), want
	case 3:
		ends()
		return query("/v1/count", pairs...), []string{fmt.Sprint("count:", len(m.within(bounded)))}
	case 4:
		return query("/v1/rank", "key", key), []string{fmt.Sprint("rank:", len(m.within(func(k string) bool { return k < key })))}
	case 5:
		i := rng.IntN(2*len(keys)+4) - len(keys) - 2
		at := i
		if i < 0 {
			at += len(keys)
		}
		if at >= 0 && at < len(keys) {
			want = m.entries(keys[at:at+1], true)
		}
		return query("/v1/at", "rank", strconv.Itoa(i)), want
	case 6:
		return query("/v1/floor", "key", key), m.entries(first(m.within(func(k string) bool { return k <= key }), true), true)
	case 7:
		return query("/v1/ceil", "key", key), m.entries(first(m.within(func(k string) bool { return k >= key }), false), true)
	case 8:
		ends()
		return query("/v1/aggregate", pairs...), []string{m.sum(m.within(bounded))}
	}
	ends()
	bounds := []int{-20, 0, 0, 10}
	counts := make([]int, len(bounds)+1)
	for _, k := range m.within(bounded) {
		x, _ := strconv.Atoi(m[k])
		n := 0
		for _, b := range bounds {
			if b <= x {
				n++
			}
		}
		counts[n]++
	}
	for i, n := range counts {
		from, to := "NULL", "NULL"
		if i > 0 {
			from = strconv.Itoa(bounds[i-1])
		}
		if i < len(bounds) {
			to = strconv.Itoa(bounds[i])
			pairs = append(pairs, "bound", to)
		}
		want = append(want, fmt.Sprintf("from:%s to:%s count:%d", from, to, n))
	}
	return query("/v1/histogram", pairs...), want
}

// sum returns the row of the sum of values.
func (m model) sum(keys []string) string {
	if len(keys) == 0 {
		return "count:0 sum:0 min:NULL max:NULL mean:NULL"
	}
	total, low, high := 0, 1000, -1000
	for _, k := range keys {
		x, _ := strconv.Atoi(m[k])
		total, low, high = total+x, min(low, x), max(high, x)
	}
	mean := strconv.FormatFloat(float64(total)/float64(len(keys)), 'g', -1, 64)
	return fmt.Sprintf("count:%d sum:%d min:%d max:%d mean:%s", len(keys), total, low, high, mean)
}

// A range that is asked for page by page has all entries once, also where some come and go meanwhile: those
// that are there throughout.
func TestPages(t *testing.T) {
	rng := seed.Rand(t)
	src, m := memory(t), model{}
	g := start(t, src, nil)
	for i := range 300 {
		m.set(t, src, fmt.Sprintf("k%03d", i*2), "v")
	}
	for _, reverse := range []bool{false, true} {
		var got []string
		pairs := []string{"limit", "7", "lo", "k1", "keys", "1", "format", "csv"}
		want := m.within(func(k string) bool { return k >= "k1" })
		if reverse {
			pairs = append(pairs, "reverse", "1")
			slices.Reverse(want)
		}
		for cursor, n := "", 0; ; n++ {
			r := g.want(200, "GET", query("/v1/range", append(pairs, "cursor", cursor)...), nil)
			rows := r.rows(t)
			if len(rows) > 7 {
				t.Fatalf("%d rows", len(rows))
			}
			got = append(got, rows...)
			if cursor = r.Header.Get(cursorHeader); cursor == "" {
				break
			}
			if n > 1000 {
				t.Fatal("there is no end of pages")
			}
			odd := fmt.Sprintf("k%03d", 2*rng.IntN(300)+1) // comes and goes
			if err := src.Apply([]pando.Op{pando.OpSet}, []string{odd}, [][]byte{nil}, nil); err != nil {
				t.Fatal(err)
			}
		}
		got = slices.DeleteFunc(got, func(row string) bool { _, ok := m[strings.TrimPrefix(row, "key:")]; return !ok })
		if !slices.Equal(got, m.entries(want, false)) {
			t.Errorf("reverse %v: %d keys, want %d", reverse, len(got), len(want))
		}
	}
	// A cursor does not lead out of the range that is asked for.
	outside := place{"a", 1}.cursor()
	g.want(400, "GET", query("/v1/range", "lo", "k", "cursor", outside), nil)
	g.want(400, "GET", query("/v1/range", "hi", "0", "cursor", outside), nil)
	for _, cursor := range []string{"x", "!", "AAAA", "gIAAYQ"} {
		g.want(400, "GET", query("/v1/range", "cursor", cursor), nil)
	}
}

// A long answer is streamed: it has its cursor in a trailer, and all rows in every format.
func TestLongAnswers(t *testing.T) {
	src := memory(t)
	const n = 12_000
	var ops []pando.Op
	var keys []string
	var vals [][]byte
	var want []string
	for i := range n {
		ops, keys, vals = append(ops, pando.OpSet), append(keys, fmt.Sprintf("%08d", i)), append(vals, bytes.Repeat([]byte{'a' + byte(i%26)}, 100))
		want = append(want, "key:"+keys[i]+" value:"+string(vals[i]))
	}
	if err := src.Apply(ops, keys, slices.Clone(vals), nil); err != nil {
		t.Fatal(err)
	}
	g := start(t, src, nil)
	for i, f := range formats {
		for _, coding := range []string{"identity", "zstd"}[i%2 : i%2+1] {
			r := g.want(200, "GET", "/v1/range?limit=all", nil, "Accept", f.media[0], "Accept-Encoding", coding)
			if got := r.rows(t); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d rows, want %d", f.name, coding, len(got), n)
			}
			if c := r.Trailer.Get(cursorHeader) + r.Header.Get(cursorHeader); c != "" {
				t.Errorf("%s: there is nothing behind the whole, and the cursor is %q", f.name, c)
			}
		}
	}
	r := g.want(200, "GET", "/v1/range?limit=9000", nil)
	r = g.want(200, "GET", query("/v1/range", "limit", "all", "cursor", r.Trailer.Get(cursorHeader)), nil)
	if got := r.rows(t); !slices.Equal(got, want[9000:]) {
		t.Errorf("%d rows behind the first 9000, the first %q", len(got), got[:min(1, len(got))])
	}
	// The keys of a body are looked up while answers go.
	var asked [][]string
	for i := range keys {
		asked = append(asked, []string{keys[(i*7)%n]})
	}
	for _, f := range []string{"csv", "jsonl", "arrow", "parquet"} {
		r := g.want(200, "POST", "/v1/get", bytes.NewReader(written(t, f, []string{"key"}, asked)), "Content-Type", mediaOf(f))
		got := r.rows(t)
		for i := range got {
			if got[i] != want[(i*7)%n] {
				t.Fatalf("%s: row %d is %.60q", f, i, got[i])
			}
		}
		if len(got) != n {
			t.Errorf("%s: %d rows", f, len(got))
		}
	}
}

// watchedLookups is an index that tells when keys are looked up.
type watchedLookups struct {
	pandoserver.Source
	looked func()
}

func (w watchedLookups) GetBatch(keys []string, vals [][]byte, found []bool) int {
	w.looked()
	return w.Source.GetBatch(keys, vals, found)
}

// Lookups end when their client has gone, and when their time is over, also where no key is there: then nothing is
// written that would see it.
func TestLookupsEnd(t *testing.T) {
	body := "key\n" + strings.Repeat("nothing\n", 3*batchRows)
	for _, gone := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n, longest := 0, time.Nanosecond
		if gone {
			longest = time.Hour
		}
		srv, err := pandoserver.New(watchedLookups{memory(t), func() { n++; cancel() }})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(srv, MaxDuration(longest))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/v1/get", strings.NewReader(body)).WithContext(ctx)
		r.Host = "localhost"
		r.Header.Set("Content-Type", "text/csv")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		want := 0
		if gone {
			want = 1
		}
		if w.Code != 503 || n != want {
			t.Errorf("gone %v: %d after %d lookups, want 503 after %d: %.200s", gone, w.Code, n, want, w.Body)
		}
	}
}

// An index of numbers is served with the types that it has, in the order of numbers. Some keys are there several times.
func TestFilesOfNumbers(t *testing.T) {
	src := newNumbers([]int{-5, 9, 10, 10, 10, 100}, []string{"1.5", "3", "2", "7", "8", "4"})
	g := start(t, src, []pandoserver.Option{pandoserver.Name("numbers"), pandoserver.And("text", memory(t))})
	for path, want := range map[string]string{
		"/v1/range":                             "key:-5 value:1.5, key:9 value:3, key:10 value:2, key:10 value:7, key:10 value:8, key:100 value:4",
		"/v1/range?lo=9&hi=10&keys":             "key:9, key:10, key:10, key:10",
		"/v1/range?after=10&index=numbers":      "key:100 value:4",
		"/v1/range?hi=9&reverse":                "key:9 value:3, key:-5 value:1.5",
		"/v1/get?key=10&key=x&key=100":          "key:10 value:2, key:100 value:4",
		"/v1/count?lo=9":                        "count:5",
		"/v1/rank?key=10":                       "rank:2",
		"/v1/at?rank=-1":                        "key:100 value:4",
		"/v1/floor?key=50":                      "key:10 value:8",
		"/v1/ceil?key=-7":                       "key:-5 value:1.5",
		"/v1/aggregate?lo=9":                    "count:5 sum:24 min:2 max:8 mean:4.8",
		"/v1/range?index=text":                  "",
		"/v1/indexes":                           "name:numbers entries:6 key:int64 value:float64 writable:false, name:text entries:0 key:binary value:binary writable:true",
		"/v1/range?limit=1&value_type=binary":   "key:-5 value:1.5",
		"/v1/range?limit=1&key_type=decimal[2]": "key:-5.00 value:1.5",
	} {
		for _, f := range formats {
			sep := "?"
			if strings.Contains(path, "?") {
				sep = "&"
			}
			if got := strings.Join(g.want(200, "GET", path+sep+"format="+f.name, nil).rows(t), ", "); got != want {
				t.Errorf("%s as %s: %q, want %q", path, f.name, got, want)
			}
		}
	}
	for _, reverse := range []string{"", "1"} { // equal keys on both sides of an end of a page
		var got []string
		for cursor, n := "", 0; n < 20; n++ {
			r := g.want(200, "GET", query("/v1/range", "limit", "2", "cursor", cursor, "reverse", reverse), nil)
			got = append(got, r.rows(t)...)
			if cursor = r.Header.Get(cursorHeader); cursor == "" {
				break
			}
		}
		if len(got) != 6 {
			t.Errorf("in pages: %q", got)
		}
	}
	for path, status := range map[string]int{
		"/v1/range?lo=x": 400, "/v1/prefix?prefix=1": 400, "/v1/rank?key=1.5": 400, "/v1/range?index=none": 404,
		"/v1/range?value_type=date": 422, "/v1/range?cursor=" + place{"x", 1}.cursor(): 400, "/v1/range?lo=10&cursor=" + place{"9", 1}.cursor(): 400,
	} {
		g.want(status, "GET", path, nil)
	}
	g.want(405, "DELETE", "/v1/batch?key=9", nil)
	g.want(405, "DELETE", "/v1/range?lo=9", nil)
}
