package pandoview_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandoview"
)

// numbers returns an index of n numbers, each ten above the one before.
func numbers(t testing.TB, n int, opts ...pando.Option) *pando.Frozen[uint64, uint64] {
	t.Helper()
	keys, vals := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i)*10, uint64(i)
	}
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

// ask sends a request, changed by change, and returns its status and body.
func ask(t testing.TB, h http.Handler, target string, change func(*http.Request)) (int, []byte) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost:1234"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// get asks for JSON.
func get[T any](t testing.TB, h http.Handler, target string) (out T) {
	t.Helper()
	status, body := ask(t, h, target, nil)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", target, status, body)
	}
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return out
}

// Whoever is not the page itself, or asks for what is not there, gets a status and a
// sentence that says why.
func TestRefusals(t *testing.T) {
	h := pandoview.Handler(numbers(t, 1000))
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for _, c := range []struct {
		target string
		change func(*http.Request)
		status int
		says   string
	}{
		{"/", host("evil.example"), 403, "this machine alone"},
		{"/", host("localhost.evil.example"), 403, "this machine alone"},
		{"/api/index", host("192.168.1.5:80"), 403, "this machine alone"},
		{"/api/index", host(""), 403, "this machine alone"},
		{"/api/index", host(strings.Repeat("x", 5000)), 403, "…"},
		{"/api/index", header("Origin", "https://evil.example"), 403, "https://evil.example"},
		{"/api/index", header("Origin", "http://localhost:9"), 403, "http://localhost:9"},
		{"/api/index", header("Origin", "null"), 403, "null"},
		{"/api/index", header("Origin", "http://%zz"), 403, "not answered"},
		{"/api/index", header("Sec-Fetch-Site", "cross-site"), 403, "other sites"},
		{"/api/index", header("Sec-Fetch-Site", "same-site"), 403, "other sites"},
		{"/api/index", func(r *http.Request) { r.Method = http.MethodPost }, 405, "GET, not POST"},
		{"/api/index", func(r *http.Request) { r.Method = http.MethodDelete }, 405, "GET, not DELETE"},
		{"/" + strings.Repeat("a", 9000), nil, 414, "8192 are the most"},
		{"/api/search?key=" + strings.Repeat("1", 9000), nil, 414, "8192 are the most"},
		{"/etc/passwd", nil, 404, "/etc/passwd"},
		{"/dist/app.js", nil, 404, "there is no"},
		{"/sources.sum", nil, 404, "there is no"},
		{"/%2e%2e/%2e%2e/etc/passwd", nil, 404, "there is no"},
		{"/api/nothing", nil, 404, "there is no"},
		{"/api/search?key=abc", nil, 400, "no key of type uint64"},
		{"/api/search?key=-1", nil, 400, "no key of type uint64"},
		{"/api/search?key=99999999999999999999999", nil, 400, "no key of type uint64"},
		{"/api/search?key=%zz", nil, 400, "cannot be read"},
		{"/api/view?lo=x", nil, 400, `lo is "x"`},
		{"/api/view?lo=-1", nil, 400, "lo is"},
		{"/api/view?max=100000", nil, 400, "max is"},
		{"/api/node?level=99", nil, 400, "level is"},
		{"/api/node?level=0&node=5", nil, 400, "node is"},
		{"/api/steps", nil, 400, "op is"},
		{"/api/steps?op=drop", nil, 400, `op is "drop"`},
		{"/api/steps?op=insert&n=0", nil, 400, "n is"},
		{"/api/steps?op=insert&n=1000000000", nil, 400, "n is"},
		{"/api/steps?op=kernel&seed=x", nil, 400, "seed is"},
		{"/api/steps?op=watch", nil, 501, "never changed"},
		{"/api/steps?op=latched&schedule=fair", nil, 400, "schedule is"},
		{"/api/steps?op=latched&n=257", nil, 400, "n is"},
		{"/api/steps?op=latched&seed=-1", nil, 400, "seed is"},
		{"/api/steps?op=delete", nil, 501, "in layout radix only"},
		{"/api/live", nil, 501, "never changes"},
	} {
		status, body := ask(t, h, c.target, c.change)
		var answer struct{ Error string }
		if err := json.Unmarshal(body, &answer); err != nil || status != c.status || !strings.Contains(answer.Error, c.says) {
			t.Errorf("%.60s: %d %.200s, want %d and %q", c.target, status, body, c.status, c.says)
		}
	}
}

// The page's own requests are answered, by every name of this machine, with its
// headers; and those of hosts that are allowed.
func TestAllowed(t *testing.T) {
	h := pandoview.Handler(numbers(t, 10), pandoview.Hosts("Index.example"))
	for _, host := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:1", "127.0.0.2", "[::1]:5", "::1", "index.example:443"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(w.Body.String(), "app.js") {
			t.Errorf("%s: %d, policy %q", host, w.Code, csp)
		}
	}
	for _, file := range []string{"/app.js", "/app.css", "/icon.svg"} {
		if status, body := ask(t, h, file, nil); status != http.StatusOK || len(body) < 100 {
			t.Errorf("%s: %d, %d bytes", file, status, len(body))
		}
	}
}

// An index that is closed says so, and does not take the server with it.
func TestClosed(t *testing.T) {
	ix := numbers(t, 1000)
	tree, err := pando.TreeOf([]uint64{1, 2, 3}, []uint64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	frozen, live := pandoview.Handler(ix), pandoview.Handler(tree)
	ix.Close()
	tree.Close()
	for _, h := range []http.Handler{frozen, live} {
		for _, target := range []string{"/api/index", "/api/view", "/api/node", "/api/search?key=5", "/api/steps?op=insert"} {
			if status, body := ask(t, h, target, nil); status != http.StatusGone || !bytes.Contains(body, []byte("after Close")) {
				t.Errorf("%s: %d %s", target, status, body)
			}
		}
		if status, _ := ask(t, h, "/", nil); status != http.StatusOK {
			t.Errorf("the page itself: %d", status)
		}
	}
}

// A view of any stretch has at most as many groups as are asked for, and they
// cover it.
func TestView(t *testing.T) {
	rng := seed.Rand(t)
	for name, ix := range indexes(t) {
		h := pandoview.Handler(ix)
		type view struct {
			Lo, Hi, Last int
			Levels       []struct {
				Nodes, From, Step int
				Groups            [][6]int
				Keys              [][]string
			}
		}
		last := get[view](t, h, "/api/view").Last
		for range 15 {
			lo := rng.IntN(last)
			hi := lo + 1 + rng.IntN(last-lo)
			most := 1 + rng.IntN(300)
			v := get[view](t, h, fmt.Sprintf("/api/view?lo=%d&hi=%d&max=%d", lo, hi, most))
			for l, s := range v.Levels {
				if len(s.Groups) > most+1 || len(s.Groups) == 0 || s.Groups[0][0] > lo || s.Groups[len(s.Groups)-1][1] < hi {
					t.Fatalf("%s: level %d of leaves %d to %d, at most %d: %d groups from %v to %v", name, l, lo, hi, most, len(s.Groups), s.Groups[0], s.Groups[len(s.Groups)-1])
				}
				for i, g := range s.Groups {
					if g[2] > g[3] || i > 0 && g[0] != s.Groups[i-1][1] {
						t.Fatalf("%s: level %d, group %d: %v", name, l, i, g)
					}
				}
			}
		}
	}
}

// indexes returns an index of each kind that there is.
func indexes(t testing.TB) map[string]pandoview.Index {
	t.Helper()
	out := map[string]pandoview.Index{}
	for _, kind := range []pando.LayoutKind{pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed} {
		out[kind.String()] = numbers(t, 10_000, pando.Layout(kind))
	}
	var keys []string
	for i := range 5000 {
		keys = append(keys, fmt.Sprintf("key %05d", i*7%5000))
	}
	words, err := pando.Freeze(keys, make([]int32, len(keys)))
	if err != nil {
		t.Fatal(err)
	}
	list, err := pando.Freeze(keys, make([]int32, len(keys)), pando.Layout(pando.Apart))
	if err != nil {
		t.Fatal(err)
	}
	floats := make([]float32, 8_000)
	for i := range floats {
		floats[i] = float32(i) - 4000.5
	}
	tree, err := pando.TreeOf(floats, make([]string, len(floats)))
	if err != nil {
		t.Fatal(err)
	}
	small, err := pando.TreeOf([]int8{-3, 5, 7}, []struct{}{{}, {}, {}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := tree.Snapshot()
	t.Cleanup(func() { words.Close(); list.Close(); snapshot.Close(); tree.Close(); small.Close() })
	out["words"], out["list"], out["tree"], out["small"], out["snapshot"] = words, list, tree, small, snapshot
	return out
}

// Every key of every kind of index is found where it is, and no other.
func TestSearch(t *testing.T) {
	asked := map[string][2]string{ // one that is there, one that is not
		"words": {"key 00777", "key 007771"}, "list": {"key 04999", ""}, "tree": {"-77.5", "1e30"}, "snapshot": {"0.5", "-Inf"}, "small": {"-3", "4"},
	}
	for name, ix := range indexes(t) {
		h := pandoview.Handler(ix)
		keys, ok := asked[name]
		if !ok {
			keys = [2]string{"12340", "12341"}
		}
		type found struct {
			Found bool
			Way   []struct {
				Level, Node, Slot int
				Here              bool
				Keys              []string
			}
		}
		f := get[found](t, h, "/api/search?key="+url.QueryEscape(keys[0]))
		end := f.Way[len(f.Way)-1]
		if !f.Found || !end.Here || end.Keys[end.Slot] != keys[0] {
			t.Errorf("%s: %s: found %v, at place %d of %.100q", name, keys[0], f.Found, end.Slot, end.Keys)
		}
		if f := get[found](t, h, "/api/search?key="+url.QueryEscape(keys[1])); f.Found || f.Way[len(f.Way)-1].Here {
			t.Errorf("%s: %s is found", name, keys[1])
		}
	}
}

// Steps of every kind are recorded from every index that has them, and change none.
func TestSteps(t *testing.T) {
	for name, ix := range indexes(t) {
		h := pandoview.Handler(ix)
		before := ix.Stats().Len
		texts := name == "words" || name == "list"
		radix := texts || ix.Stats().Layout == pando.Radix
		for op, want := range map[string]bool{
			"insert&n=50": true, "batch&n=200": true, "delete&n=50": radix, "beside&n=50": radix,
			"kernel&n=40&seed=3": name != "list", "latched&n=20&seed=3&schedule=frozen": !texts,
		} {
			status, body := ask(t, h, "/api/steps?op="+op, nil)
			if want && status != http.StatusOK || !want && status != http.StatusNotImplemented {
				t.Errorf("%s, %s: %d %.200s", name, op, status, body)
			}
		}
		if now := ix.Stats().Len; now != before {
			t.Errorf("%s: %d entries, then %d", name, before, now)
		}
	}
}

// An index without entries can be looked at.
func TestEmpty(t *testing.T) {
	none, err := pando.Freeze([]string{}, []int{})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	tree, err := pando.NewTree[int64, string]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, ix := range []pandoview.Index{numbers(t, 0), none, tree} {
		h := pandoview.Handler(ix)
		for _, target := range []string{"/api/index", "/api/view", "/api/search?key=5"} {
			if status, body := ask(t, h, target, nil); status != http.StatusOK {
				t.Errorf("%s: %d %s", target, status, body)
			}
		}
		for _, target := range []string{"/api/node", "/api/steps?op=insert", "/api/steps?op=batch", "/api/steps?op=delete", "/api/steps?op=kernel", "/api/steps?op=latched", "/api/live"} {
			if status, body := ask(t, h, target, nil); status >= 500 && status != http.StatusNotImplemented {
				t.Errorf("%s: %d %s", target, status, body)
			}
		}
	}
}

// A damaged file that opens is shown, with nonsense in it, or refused in words.
func TestDamagedFile(t *testing.T) {
	rng := seed.Rand(t)
	path := filepath.Join(t.TempDir(), "x.pando")
	if err := numbers(t, 20_000, pando.Layout(pando.Compressed)).Save(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		data := bytes.Clone(whole)
		for range 200 {
			data[4096+rng.IntN(len(data)-4096)] = byte(rng.Uint32())
		}
		bad := filepath.Join(t.TempDir(), "bad.pando")
		if err := os.WriteFile(bad, data, 0o600); err != nil {
			t.Fatal(err)
		}
		ix, err := pando.Open[uint64, uint64](bad)
		if err != nil {
			continue
		}
		h := pandoview.Handler(ix)
		for _, target := range []string{"/api/index", "/api/view", "/api/view?lo=3&hi=9", "/api/node?level=1&node=0", "/api/search?key=77", "/api/steps?op=insert&n=5", "/api/steps?op=kernel", "/api/steps?op=latched&n=9"} {
			if status, body := ask(t, h, target, nil); status != http.StatusOK && !json.Valid(body) {
				t.Errorf("%s: %d %s", target, status, body)
			}
		}
		ix.Close()
	}
}

// A pulse of a tree has what changes, and changes show in it.
func TestLive(t *testing.T) {
	tree, err := pando.TreeOf([]uint64{10, 20, 30}, []uint64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	h := pandoview.Handler(tree)
	type pulse struct {
		Entries, Leaves int
		Sample          [][4]uint64
	}
	before := get[pulse](t, h, "/api/live")
	for i := range uint64(5) {
		if err := tree.Set(i, i); err != nil {
			t.Fatal(err)
		}
	}
	after := get[pulse](t, h, "/api/live")
	if before.Entries != 3 || after.Entries != 8 || len(after.Sample) != 1 || after.Sample[0][1] < before.Sample[0][1]+5 {
		t.Errorf("%+v, then %+v", before, after)
	}
	if status, body := ask(t, h, "/api/steps?op=watch&ms=5", nil); status != http.StatusOK {
		t.Errorf("watch: %d %s", status, body)
	}
}

// Keys of all types are read and written alike.
func TestKeysAsText(t *testing.T) {
	ix, err := pando.Freeze([]float64{math.Inf(-1), -2.5, 0, math.MaxFloat64}, []bool{true, false, true, true})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	h := pandoview.Handler(ix)
	for _, key := range []string{"-Inf", "-2.5", "0", "1.7976931348623157e+308"} {
		if f := get[struct{ Found bool }](t, h, "/api/search?key="+url.QueryEscape(key)); !f.Found {
			t.Errorf("%s is not found", key)
		}
	}
}

// The page that is committed was made from the sources that are: web/build.sh
// notes their checksums.
func TestPageIsFresh(t *testing.T) {
	noted, err := os.ReadFile("dist/sources.sum")
	if err != nil {
		t.Fatal(err)
	}
	var now strings.Builder
	for _, root := range []string{"package-lock.json", "package.json", "src", "static", "tsconfig.json"} {
		err := fs.WalkDir(os.DirFS("web"), root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join("web", path))
			fmt.Fprintf(&now, "%x  %s\n", sha256.Sum256(data), path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if now.String() != string(noted) {
		t.Errorf("the sources of the page have changed since it was built: run make web\nnow:\n%snoted:\n%s", now.String(), noted)
	}
	for _, name := range []string{"index.html", "app.css", "icon.svg"} {
		made, err := os.ReadFile("dist/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if from, err := os.ReadFile("web/static/" + name); err != nil || !bytes.Equal(made, from) {
			t.Errorf("dist/%s is not web/static/%s: %v", name, name, err)
		}
	}
}

// A file that is cut short while it is open is said to be, and the server goes on.
func TestFileCutShort(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not mapped there")
	}
	path := filepath.Join(t.TempDir(), "x.pando")
	if err := numbers(t, 200_000).Save(path); err != nil {
		t.Fatal(err)
	}
	ix, err := pando.Open[uint64, uint64](path)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	h := pandoview.Handler(ix)
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/api/view?lo=5000&hi=5003", "/api/search?key=1500000", "/api/steps?op=insert&key=1500000"} {
		if status, body := ask(t, h, target, nil); status != http.StatusInternalServerError || !bytes.Contains(body, []byte("cut short")) {
			t.Errorf("%s: %d %s", target, status, body)
		}
	}
	if status, _ := ask(t, h, "/", nil); status != http.StatusOK {
		t.Errorf("the page itself: %d", status)
	}
}

// Several who look at once, at a tree that others change, are all answered, or told
// to come again.
func TestManyLook(t *testing.T) {
	tree, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = tree.Set(i*2654435761%1_000_000, i)
			}
		}
	}()
	h := pandoview.Handler(tree)
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for _, target := range []string{"/api/index", "/api/view", "/api/node", "/api/search?key=77", "/api/live", "/api/steps?op=insert&n=5", "/api/steps?op=watch&ms=2"} {
				if status, body := ask(t, h, target, nil); status != http.StatusOK && status != http.StatusServiceUnavailable {
					t.Errorf("%s: %d %s", target, status, body)
				}
			}
		})
	}
	lookers.Wait()
	close(stop)
	<-done
}
