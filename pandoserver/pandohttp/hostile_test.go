package pandohttp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	memoryOf "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandoserver"
)

// A page of another site, also one that leads here by a name of its own, gets nothing and changes nothing.
func TestOtherSites(t *testing.T) {
	src := memory(t)
	g := start(t, src, nil, Hosts("data.example"))
	if err := g.s.View("index", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") })); err != nil {
		t.Fatal(err)
	}
	put := func() io.Reader { return strings.NewReader("key,value\na,b\n") }
	for _, headers := range [][]string{
		{"Host", "evil.example"}, {"Host", "evil.example:6380"}, {"Origin", "http://evil.example"}, {"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Host", "127.0.0.1.evil.example"},
	} {
		for _, r := range allRoutes {
			if r.open {
				continue
			}
			g.want(403, r.method, r.path, put(), headers...)
		}
		g.want(403, "GET", "/view/index/api/view", nil, headers...)
		g.want(403, "OPTIONS", "/v1/batch", nil, headers...)
	}
	if src.Len() != 0 {
		t.Error("a page of another site has changed something")
	}
	r := g.want(200, "PUT", "/v1/batch", put(), "Host", "DATA.example:6380", "Content-Type", "text/csv")
	for name := range r.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("the answer has %s", name)
		}
	}
	g.want(405, "OPTIONS", "/v1/batch", nil)
	g.want(200, "GET", "/healthz", nil, "Host", "10.0.0.1")
	g.want(200, "GET", "/readyz", nil, "Host", "10.0.0.1")
}

// What is not understood is an error that says what to do, and never ignored.
func TestWrongRequests(t *testing.T) {
	g := start(t, memory(t), nil)
	for path, status := range map[string]int{
		"/v1/range?from=a": 400, "/v1/range?limit=x": 400, "/v1/range?limit=-1": 400, "/v1/range?limit=1&limit=2": 400, "/v1/range?lo=a&after=b": 400,
		"/v1/range?hi=a&before=b": 400, "/v1/range?reverse=maybe": 400, "/v1/range?%zz": 400, "/v1/range?a;b": 400, "/v1/get": 400, "/v1/get?key=a&missing=x": 400,
		"/v1/at": 400, "/v1/at?rank=x": 400, "/v1/at?rank=99999999999999999999": 400, "/v1/rank": 400, "/v1/histogram": 400, "/v1/histogram?bound=x": 400,
		"/v1/histogram?bound=2&bound=1": 400, "/v1/histogram?bound=NaN": 400, "/v1/range?format=xml": 400, "/v1/range?key_type=thing": 400,
		"/v1/get?key=a&missing=fail": 404, "/v1/nothing": 404, "/v1/range/": 404, "/../v1/range": 404, "/view/none/": 404, "/view/": 404,
		"/v1/range?lo=" + strings.Repeat("x", mostURL): 414,
	} {
		r := g.want(status, "GET", path, nil)
		if status == 400 && !strings.Contains(string(r.body), `"next"`) {
			t.Errorf("%s: %s says not what to do", path, r.body)
		}
	}
	g.want(406, "GET", "/v1/range", nil, "Accept", "text/html, image/*;q=0.5, text/csv;q=0")
	g.want(200, "GET", "/v1/range", nil, "Accept", "text/html, */*;q=0.1")
	g.want(400, "GET", "/v1/range", strings.NewReader("body"))
	g.want(405, "POST", "/v1/range", nil)
	if r := g.want(405, "PATCH", "/v1/batch", nil); r.Header.Get("Allow") != "PUT, POST, DELETE" {
		t.Errorf("Allow: %q", r.Header.Get("Allow"))
	}
	if r := g.ask("GET", "/v1/range", nil, "X-Much", strings.Repeat("x", 2*mostHeader)); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %s", r.Status)
	}
	r := g.want(200, "GET", "/v1/range", nil, "Accept", "text/csv;q=0.5, application/vnd.apache.arrow.stream;q=0.7, application/*;q=0.1")
	if got := r.Header.Get("Content-Type"); got != mediaOf("arrow") {
		t.Errorf("the answer is of type %s", got)
	}
	for _, path := range []string{"/v1/range", "/v1/count", "/v1/indexes", "/", "/openapi.json", "/healthz"} {
		if r := g.want(200, "HEAD", path, nil); len(r.body) > 0 || r.Header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s: %q of type %q", path, r.body, r.Header.Get("Content-Type"))
		}
	}
}

// raw sends bytes over a connection of its own.
func (g *rig) raw(text string) net.Conn {
	g.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(g.base, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		g.t.Fatal(err)
	}
	return c
}

// idle waits until no request is under way.
func (g *rig) idle() {
	g.t.Helper()
	for end := time.Now().Add(patience); len(g.s.slots) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatal("a request goes on for ever")
		}
	}
}

// big fills an index with more than sockets hold.
func big(t testing.TB, src pandoserver.Changer) (size int) {
	t.Helper()
	val := bytes.Repeat([]byte("v"), 1<<20)
	for i := range 24 {
		if err := src.Apply([]pando.Op{pando.OpSet}, []string{fmt.Sprint("k", i)}, [][]byte{val}, nil); err != nil {
			t.Fatal(err)
		}
		size += len(val)
	}
	return size
}

// A client that does not read its answer is dropped, and what it gets is not whole.
func TestSlowReader(t *testing.T) {
	src := memory(t)
	size := big(t, src)
	g := start(t, src, nil, StallTimeout(200*time.Millisecond))
	for _, f := range []string{"jsonl", "csv", "arrow", "parquet"} {
		c := g.raw("GET /v1/range?limit=all&format=" + f + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		g.idle()
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil && f != "parquet" || n >= int64(size) { // Parquet makes little of equal values
			t.Errorf("%s: %d bytes and %v, though nobody read them for long", f, n, err)
		}
	}
}

// A client that does not send its body, or too slowly, is dropped.
func TestSlowWriter(t *testing.T) {
	src := memory(t)
	g := start(t, src, nil, StallTimeout(200*time.Millisecond))
	head := "PUT /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 100000\r\n\r\n"
	for _, begin := range []string{"", "key,value\n", "key,value\na,b\n"} {
		c := g.raw(head + begin)
		if text, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 408") {
			t.Errorf("%q, %v", text, err)
		}
	}
	c := g.raw(head + "key,value\n")
	ended := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(c)
		ended <- string(text)
	}()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := io.WriteString(c, "a"); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a body may trickle for ever")
		}
	}
	<-ended
	g.idle()
	if src.Len() != 0 {
		t.Error("something was changed")
	}
}

// Whoever may not do what a body is for is told before it comes.
func TestRightsBeforeBodies(t *testing.T) {
	users, err := pandoserver.ReadUsers(strings.NewReader("user reader on >pw +pando.range ~*\nuser deletes on >pw +del ~*\n"))
	if err != nil {
		t.Fatal(err)
	}
	src := memory(t)
	g := start(t, src, nil, Restrict(users))
	head := func(method, path, name string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(name, "pw")
		return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nAuthorization: " + r.Header.Get("Authorization") + "\r\nContent-Length: "
	}
	for _, what := range []string{"PUT /v1/batch", "DELETE /v1/batch", "POST /v1/get"} {
		method, path, _ := strings.Cut(what, " ")
		c := g.raw(head(method, path, "reader") + "100000\r\n\r\n")
		_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // before a body that does not come is given up
		if r, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || r.StatusCode != 403 {
			t.Errorf("%s: %v, %v", what, r, err)
		}
		c.Close()
	}
	const deletes = "key,op\na,delete\n"
	for body, want := range map[string]string{deletes: "200", deletes + "b,set\n": "400", "key,value\na,b\n": "403"} {
		c := g.raw(head("PUT", "/v1/batch", "deletes") + fmt.Sprint(len(body)) + "\r\nConnection: close\r\n\r\n" + body)
		if text, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 "+want) {
			t.Errorf("%q: %q, %v", body, text, err)
		}
	}
}

// Few bytes that stand for very many end neither the process nor its memory, and what is wrong is told in few words.
func TestSmallBodies(t *testing.T) {
	const rows, deep = 8192, 8_000_000
	src := memory(t)
	g := start(t, src, nil, BufferLimit(128<<20))
	var arrows bytes.Buffer
	word, codes := array.NewStringBuilder(memoryOf.DefaultAllocator), array.NewInt8Builder(memoryOf.DefaultAllocator)
	word.Append(strings.Repeat("w", 400_000))
	codes.AppendValues(make([]int8, rows), nil)
	words := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: codes.Type(), ValueType: word.Type()}, codes.NewArray(), word.NewArray())
	schema := arrow.NewSchema([]arrow.Field{{Name: "key", Type: words.DataType()}}, nil)
	w := ipc.NewWriter(&arrows, ipc.WithSchema(schema), ipc.WithZstd())
	if err := w.Write(array.NewRecordBatch(schema, []arrow.Array{words}, rows)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	parquet := append([]byte("PAR1"), bytes.Repeat([]byte{0x1c}, deep)...)
	parquet = append(binary.LittleEndian.AppendUint32(parquet, deep), "PAR1"...)
	for _, c := range []struct {
		status int
		format string
		body   []byte
		says   string
	}{
		{400, "parquet", parquet, "within each other"},
		{413, "arrow", arrows.Bytes(), ""},
		{400, "csv", append(bytes.Repeat([]byte{','}, 4_000_000), '\n'), "more than 16 columns"},
		{400, "csv", []byte("key,value,key\na,b,c\n"), `two columns \"key\"`},
	} {
		body := packed(t, "zstd", c.body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		method := "PUT"
		if c.format == "arrow" {
			method = "DELETE"
		}
		r := g.want(c.status, method, "/v1/batch", bytes.NewReader(body), "Content-Type", mediaOf(c.format), "Content-Encoding", "zstd")
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 || len(r.body) > 3000 || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s: %d bytes took %d bytes of memory: %.300s", c.format, len(body), took, r.body)
		}
	}
	if src.Len() != 0 {
		t.Errorf("%d keys were changed", src.Len())
	}
}

// A body that is in memory as a whole counts as long as it is.
func TestKeptBodies(t *testing.T) {
	g := start(t, memory(t), nil, BodyLimit(1<<20), BufferLimit(2<<20))
	const size = 900_000
	send := func() net.Conn {
		return g.raw("PUT /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/vnd.apache.parquet\r\nContent-Length: " + fmt.Sprint(size+1) + "\r\n\r\n" + strings.Repeat("x", size))
	}
	for n := range 2 {
		defer send().Close()
		for end := time.Now().Add(20 * time.Second); g.s.held.Load() < int64(n+1)*size; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes count of %d bodies", g.s.held.Load(), n+1)
			}
		}
	}
	if r, err := http.ReadResponse(bufio.NewReader(send()), nil); err != nil || r.StatusCode != 503 {
		t.Errorf("%v, %v", r, err)
	}
}

// No more requests are under way than there may be, and those who do not get in are told.
func TestManyRequests(t *testing.T) {
	src := memory(t)
	big(t, src)
	g := start(t, src, nil, MaxRequests(2), MaxConnections(4))
	var open []*http.Response
	for range 2 {
		c := g.raw("GET /v1/range?limit=all HTTP/1.1\r\nHost: localhost\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	if r := g.want(503, "GET", "/v1/count", nil); r.Header.Get("Retry-After") == "" {
		t.Error("nobody says when to come again")
	}
	g.want(200, "GET", "/healthz", nil)
	g.raw("")                                // the fourth
	for end := time.Now().Add(patience); ; { // beyond it, one is closed
		c := g.raw("")
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("there is no end of connections")
		}
	}
	for _, r := range open {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
	}
}

// While indexes are not open yet the server says so, and no more.
func TestNotReady(t *testing.T) {
	sick := errors.New("the disk is full")
	var mu sync.Mutex
	s, err := New(nil, Ready(func() error { mu.Lock(); defer mu.Unlock(); return sick }))
	if err != nil {
		t.Fatal(err)
	}
	g := run(t, s, nil)
	g.want(200, "GET", "/healthz", nil)
	g.want(503, "GET", "/readyz", nil)
	g.want(503, "GET", "/v1/range", nil)
	g.want(200, "GET", "/openapi.json", nil)
	srv, err := pandoserver.New(memory(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Use(srv)
	g.want(200, "GET", "/v1/range", nil)
	if r := g.want(503, "GET", "/readyz", nil); !strings.Contains(string(r.body), "the disk is full") {
		t.Errorf("%s", r.body)
	}
	if r := g.want(503, "GET", "/readyz", nil, "Host", "10.0.0.1"); strings.Contains(string(r.body), "disk") {
		t.Errorf("a stranger is told: %s", r.body)
	}
	mu.Lock()
	sick = nil
	mu.Unlock()
	g.want(200, "GET", "/readyz", nil)
	g.want(200, "GET", "/readyz", nil, "Host", "10.0.0.1")
}

// Everybody may ask whether the server is ready, and those who may ask for metrics are told why it is not.
func TestNotReadyForStrangers(t *testing.T) {
	users, err := pandoserver.ReadUsers(strings.NewReader("user alice on >secret +@all ~*\nuser reader on >pw +@read ~*\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, memory(t), nil, Restrict(users), Ready(func() error { return errors.New("the disk is full") }))
	as := func(name, secret string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(name, secret)
		return r.Header.Get("Authorization")
	}
	for who, told := range map[string]bool{"": false, as("alice", "wrong"): false, as("reader", "pw"): false, as("alice", "secret"): true} {
		r := g.want(503, "GET", "/readyz", nil, "Authorization", who)
		if strings.Contains(string(r.body), "disk") != told || r.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%q: %s %v", who, r.body, r.Header)
		}
	}
}

// A user may do what his rights to the commands say, on the keys that are his.
func TestUsers(t *testing.T) {
	users, err := pandoserver.ReadUsers(strings.NewReader("user alice on >secret +@all ~*\nuser reader on >pw +@read ~public:*\nuser off off >pw +@all ~*\n"))
	if err != nil {
		t.Fatal(err)
	}
	src := memory(t)
	view := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page ", r.URL.Path) })
	g := start(t, src, nil, Restrict(users))
	for _, name := range []string{"", "a/b"} {
		if err := g.s.View(name, view); err == nil {
			t.Errorf("a page is called %q", name)
		}
	}
	if err := g.s.View("index", view); err != nil {
		t.Fatal(err)
	}
	as := func(name, secret string, headers ...string) []string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(name, secret)
		return append(headers, "Authorization", r.Header.Get("Authorization"))
	}
	alice, reader := as("alice", "secret"), as("reader", "pw")
	put := func(key string) io.Reader { return strings.NewReader("key,value\n" + key + ",v\n") }
	csv := append(slices.Clone(alice), "Content-Type", "text/csv")
	g.want(200, "PUT", "/v1/batch", put("public:a"), csv...)
	g.want(200, "PUT", "/v1/batch", put("private"), csv...)
	if r := g.want(401, "GET", "/v1/range", nil); !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("%v", r.Header)
	}
	for _, no := range [][]string{as("alice", "wrong"), as("nobody", "secret"), as("off", "pw"), {"Authorization", "Bearer x"}} {
		g.want(401, "PUT", "/v1/batch", put("public:c"), no...)
	}
	for _, r := range allRoutes {
		if !r.open {
			g.want(401, r.method, r.path, nil)
		}
	}
	g.want(401, "GET", "/view/index/", nil)
	for path, status := range map[string]int{
		"/v1/range": 403, "/v1/range?lo=public:&hi=public:z": 200, "/v1/range?lo=a&hi=public:z": 403, "/v1/prefix?prefix=public:": 200, "/v1/prefix?prefix=p": 403,
		"/v1/get?key=public:a": 200, "/v1/get?key=public:a&key=private": 403, "/v1/count": 403, "/v1/at?rank=0": 403, "/v1/rank?key=public:a": 403,
		"/v1/floor?key=public:z": 403, "/v1/aggregate": 403, "/v1/histogram?bound=1": 403, "/metrics": 403, "/view/index/": 403, "/openapi.json": 200,
		"/v1/range?lo=public:&hi=public:z&cursor=" + place{"private", 1}.cursor(): 400,
	} {
		g.want(status, "GET", path, nil, reader...)
		if strings.HasPrefix(path, "/v1/agg") || strings.HasPrefix(path, "/v1/hist") || strings.Contains(path, "cursor") {
			continue
		}
		g.want(200, "GET", path, nil, alice...)
	}
	g.want(403, "PUT", "/v1/batch", put("public:b"), append(slices.Clone(reader), "Content-Type", "text/csv")...)
	g.want(403, "DELETE", "/v1/batch?key=public:a", nil, reader...)
	g.want(403, "DELETE", "/v1/prefix?prefix=public:", nil, reader...)
	if r := g.want(200, "GET", "/v1/indexes", nil, reader...); len(r.rows(t)) != 0 {
		t.Errorf("%s", r.body)
	}
	if r := g.want(200, "GET", "/view/index/api/index", nil, alice...); string(r.body) != "page /api/index" {
		t.Errorf("%s", r.body)
	}
	if got := all(src); len(got) != 2 {
		t.Errorf("%q", got)
	}
	g.want(200, "GET", "/healthz", nil)
}

// A password that is asked for on the wire of redis is asked for by HTTP.
func TestUsersOfTheServer(t *testing.T) {
	users, err := pandoserver.ReadUsers(strings.NewReader("user alice on >secret +@all ~*\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, memory(t), []pandoserver.Option{pandoserver.Restrict(users)})
	g.want(401, "GET", "/v1/count", nil)
	g.want(401, "DELETE", "/v1/batch?key=a", nil)
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth("alice", "secret")
	g.want(200, "GET", "/v1/count", nil, "Authorization", r.Header.Get("Authorization"))
}

// Other machines cannot reach a server without TLS and users.
func TestExposed(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	srv, err := pandoserver.New(memory(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(srv)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(context.Background(), l); !errors.Is(err, pandoserver.ErrExposed) {
		t.Errorf("%v", err)
	}
}

// Batches of the same keys do not come between each other, and a reader of one key sees whole values.
func TestBatchesBesideEachOther(t *testing.T) {
	src := memory(t)
	g := start(t, src, nil)
	keys := []string{"a", "b", "c", "d", "e"}
	var writers sync.WaitGroup
	for i := range 6 {
		writers.Go(func() {
			for r := range seed.Times(15, 500) {
				var rows [][]string
				for _, k := range keys {
					rows = append(rows, []string{k, fmt.Sprint("value ", i, " ", r)})
				}
				body := written(t, "jsonl", []string{"key", "value"}, rows)
				if got := g.ask("PUT", "/v1/batch", bytes.NewReader(body), "Content-Type", mediaOf("jsonl")); got.StatusCode != 200 {
					t.Errorf("%s: %s", got.Status, got.body)
				}
				if got := g.ask("GET", "/v1/range", nil); got.StatusCode != 200 || len(got.rows(t)) != len(keys) {
					t.Errorf("%s: %s", got.Status, got.body)
				}
			}
		})
	}
	writers.Wait()
	got := all(src)
	for _, k := range keys {
		if got[k] != got["a"] {
			t.Fatalf("the batches are mixed: %q", got)
		}
	}
}

// A file's answers have an ETag, which changes with the file, the question and the form; those of what can be changed
// have none.
func TestETags(t *testing.T) {
	src := newNumbers([]int{1, 2, 3}, []string{"4", "5", "6"})
	g := start(t, src, []pandoserver.Option{pandoserver.And("tree", memory(t))})
	seen := map[string]string{}
	for _, path := range []string{"/v1/range", "/v1/range?lo=2", "/v1/range?format=csv", "/v1/count", "/v1/get?key=1", "/v1/aggregate"} {
		r := g.want(200, "GET", path, nil)
		tag := r.Header.Get("ETag")
		if other := seen[tag]; tag == "" || other != "" {
			t.Errorf("%s has the tag %q, as %q has", path, tag, other)
		}
		seen[tag] = path
		if again := g.want(200, "GET", path, nil).Header.Get("ETag"); again != tag {
			t.Errorf("%s: %s and then %s", path, tag, again)
		}
		if head := g.want(200, "HEAD", path, nil).Header.Get("ETag"); head != tag {
			t.Errorf("%s: %s, and HEAD says %s", path, tag, head)
		}
		for _, match := range []string{tag, `"x", ` + tag, "*"} {
			if r := g.want(304, "GET", path, nil, "If-None-Match", match); len(r.body) > 0 || r.Header.Get("ETag") != tag {
				t.Errorf("%s: %q, %v", path, r.body, r.Header)
			}
			g.want(200, "GET", path, nil, "If-Match", match)
		}
		g.want(200, "GET", path, nil, "If-None-Match", `"x"`)
		g.want(412, "GET", path, nil, "If-Match", `"x"`)
		if zipped := g.want(200, "GET", path, nil, "Accept-Encoding", "gzip").Header.Get("ETag"); zipped == tag {
			t.Errorf("%s: a compressed answer has the same tag", path)
		}
		src.version += "+"
		g.want(200, "GET", path, nil, "If-None-Match", tag)
		src.version = "1"
	}
	r := g.want(200, "GET", "/v1/range?index=tree", nil, "If-None-Match", "*")
	if r.Header.Get("ETag") != "" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", r.Header)
	}
	g.want(412, "PUT", "/v1/batch?index=tree", nil, "If-Match", `"x"`)
	if r := g.want(400, "GET", "/v1/range?lo=x", nil); r.Header.Get("ETag") != "" {
		t.Error("an error has a tag")
	}
}

// The description has every route with all its parameters, and each is what JSON and OpenAPI say it should be.
func TestOpenAPI(t *testing.T) {
	g := start(t, memory(t), nil)
	var all struct {
		OpenAPI string
		Info    struct{ Title, Version string }
		Paths   map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In string
				Required bool
				Schema   map[string]any
			}
			RequestBody *struct{ Content map[string]any }
			Responses   map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(g.want(200, "GET", "/openapi.json", nil).body, &all); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(all.OpenAPI, "3.1") || all.Info.Title == "" || all.Info.Version == "" {
		t.Errorf("%+v", all)
	}
	n, ids := 0, map[string]bool{}
	for _, methods := range all.Paths {
		n += len(methods)
	}
	if n != len(allRoutes) {
		t.Errorf("%d operations of %d routes", n, len(allRoutes))
	}
	for _, r := range allRoutes {
		op, ok := all.Paths[r.path][strings.ToLower(r.method)]
		if !ok || ids[op.OperationID] || op.OperationID == "" {
			t.Errorf("%s %s is not there, or its name %q is another's", r.method, r.path, op.OperationID)
		}
		ids[op.OperationID] = true
		if (r.body != "") != (op.RequestBody != nil) || len(op.Responses["200"].Content) == 0 || len(op.Responses["default"].Content) == 0 || len(op.Parameters) != len(r.params) {
			t.Errorf("%s %s: %+v", r.method, r.path, op)
		}
		for i, p := range op.Parameters {
			if p.Name != r.params[i].name || p.In != "query" || p.Required != r.params[i].needed || p.Schema["type"] == "" {
				t.Errorf("%s %s: %+v", r.method, r.path, p)
			}
		}
		if r.method == "GET" { // it is answered, and not by nothing
			if got := g.ask("GET", r.path, nil); got.StatusCode != 200 && got.StatusCode != 400 {
				t.Errorf("%s: %s", r.path, got.Status)
			}
		}
	}
}

// A panic of an index that was closed is an answer, and the server goes on.
func TestClosedIndex(t *testing.T) {
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, pandoserver.Tree(tree), nil)
	tree.Close()
	for range 2 {
		g.want(503, "GET", "/v1/count", nil)
		g.want(503, "PUT", "/v1/batch", strings.NewReader("key,value\na,b\n"), "Content-Type", "text/csv")
	}
}

// A Server is a handler among others, too.
func TestHandler(t *testing.T) {
	srv, err := pandoserver.New(memory(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(srv)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/v1/count", nil)
	r.Host = "localhost"
	if s.ServeHTTP(w, r); w.Code != 200 || w.Body.String() != "{\"count\":0}\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Options that make no sense are errors.
func TestOptions(t *testing.T) {
	for i, o := range []Option{MaxRequests(0), MaxConnections(0), BodyLimit(1), BufferLimit(1), StallTimeout(0), MaxDuration(-1), Grace(-1), Logger(nil)} {
		if _, err := New(nil, o); err == nil {
			t.Errorf("option %d", i)
		}
	}
}
