package pandohttp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandoserver"
)

// packed compresses a body.
func packed(t testing.TB, coding string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var z io.WriteCloser = plain{&out}
	var err error
	switch coding {
	case "gzip":
		z = gzip.NewWriter(&out)
	case "zstd":
		z, err = zstd.NewWriter(&out, zstd.WithWindowSize(1<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// all returns the entries of an index.
func all(src pandoserver.Source) model {
	m := model{}
	for k, v := range src.Scan(pandoserver.Bounds{}) {
		m[k] = string(v)
	}
	return m
}

// Batches in every format, compressed in every way, do what the model does, in the order of their rows; and what a range
// answers is a batch that makes the same index again.
func TestBodies(t *testing.T) {
	rng := seed.Rand(t)
	codings := []string{"", "gzip", "zstd"}
	read := []string{"jsonl", "csv", "tsv", "arrow", "parquet"}
	src, m := memory(t), model{}
	g := start(t, src, nil)
	for i := range seed.Times(30, 600) {
		format, coding := read[i%len(read)], codings[i/len(read)%len(codings)]
		method := []string{"PUT", "POST"}[rng.IntN(2)]
		var rows [][]string
		sets, deletes := 0, 0
		for range rng.IntN(20) {
			key, val, op := randomKey(rng), randomKey(rng), []string{"set", "delete", ""}[rng.IntN(3)]
			if op == "delete" {
				delete(m, key)
				deletes++
			} else {
				m[key] = val
				sets++
			}
			rows = append(rows, []string{key, val, op})
		}
		names := []string{"key", "value", "op"}
		if rng.IntN(3) == 0 { // columns come in any order
			names = []string{"op", "key", "value"}
			for i, r := range rows {
				rows[i] = []string{r[2], r[0], r[1]}
			}
		}
		r := g.want(200, method, "/v1/batch", bytes.NewReader(packed(t, coding, written(t, format, names, rows))), "Content-Type", mediaOf(format), "Content-Encoding", coding)
		if got, want := r.rows(t), fmt.Sprintf("set:%d deleted:%d", sets, deletes); len(got) != 1 || got[0] != want {
			t.Fatalf("%s: %q, want %q", format, got, want)
		}
		if got := all(src); !equal(got, m) {
			t.Fatalf("%s, %s: %q, want %q", format, coding, got, m)
		}
		again := memory(t)
		h := start(t, again, nil)
		h.want(200, "PUT", "/v1/batch", bytes.NewReader(g.want(200, "GET", "/v1/range?limit=all&format="+format, nil).body), "Content-Type", mediaOf(format))
		if got := all(again); !equal(got, m) {
			t.Fatalf("%s there and back: %q, want %q", format, got, m)
		}
	}
	// Keys are deleted by a body, by the address, by a range, and by a prefix.
	keys := m.keys()
	half := keys[:len(keys)/2]
	var rows [][]string
	for _, k := range append(slices.Clone(half), "none") {
		rows = append(rows, []string{k})
	}
	r := g.want(200, "DELETE", "/v1/batch", bytes.NewReader(written(t, "arrow", []string{"key"}, rows)), "Content-Type", mediaOf("arrow"))
	if got := r.rows(t); got[0] != fmt.Sprint("deleted:", len(half)) {
		t.Errorf("%q of %d", got, len(half))
	}
	keys = keys[len(half):]
	if len(keys) > 3 {
		g.want(200, "DELETE", query("/v1/batch", "key", keys[0], "key", "none"), nil)
		g.want(200, "DELETE", query("/v1/range", "after", keys[1], "hi", keys[3]), nil)
		keys = append([]string{keys[1]}, keys[4:]...)
	}
	if got := all(src).keys(); !slices.Equal(got, keys) {
		t.Errorf("%q, want %q", got, keys)
	}
	g.want(400, "DELETE", "/v1/range", nil)
	g.want(400, "DELETE", "/v1/batch", nil)
	g.want(200, "DELETE", "/v1/prefix?prefix=", nil)
	if n := src.Len(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func equal(a, b model) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// Bytes that are no text go there and back where the format has them, and are an error, not something else, where not.
func TestBytes(t *testing.T) {
	src := memory(t)
	g := start(t, src, nil)
	key, val := "\xff\x00k", "\x80\n\x00"
	for _, f := range []string{"csv", "tsv", "arrow", "parquet"} {
		g.want(200, "PUT", "/v1/batch", bytes.NewReader(written(t, f, []string{"key", "value"}, [][]string{{key, val}})), "Content-Type", mediaOf(f))
		if got := all(src); got[key] != val || len(got) != 1 {
			t.Errorf("%s: %q", f, got)
		}
		if got := g.want(200, "GET", query("/v1/get", "key", key, "format", f), nil).rows(t); len(got) != 1 || got[0] != "key:"+key+" value:"+val {
			t.Errorf("%s: %q", f, got)
		}
		g.want(200, "DELETE", query("/v1/batch", "key", key), nil)
		if src.Len() != 0 {
			t.Errorf("%d are left", src.Len())
		}
	}
	g.want(200, "PUT", "/v1/batch", bytes.NewReader(written(t, "csv", []string{"key", "value"}, [][]string{{key, val}})), "Content-Type", "text/csv")
	for _, path := range []string{"/v1/range", "/v1/range?keys", "/v1/range?format=json", "/v1/range?format=arrow&key_type=string", "/v1/ceil?key=a", "/v1/range?value_type=int64&format=csv"} {
		g.want(422, "GET", path, nil)
	}
}

// What is wrong with a body is told, and changes nothing.
func TestWrongBodies(t *testing.T) {
	src := memory(t)
	g := start(t, src, nil, BodyLimit(1<<20))
	long := strings.Repeat("x", 1<<20)
	zeros := make([]byte, 64<<20)
	for _, c := range []struct {
		status      int
		media, body string
		more        []string
	}{
		{400, "text/csv", "", nil},
		{400, "text/csv", "key,other\na,b\n", nil},
		{400, "text/csv", "key,value,key\na,b,c\n", nil},
		{400, "text/csv", strings.Repeat(",", 100_000) + "\n", nil},
		{400, "text/csv", "key\na\n", nil},
		{400, "text/csv", "value,op\na,set\n", nil},
		{400, "text/csv", "key,value,op\na,b,set\nc,d,drop\n", nil},
		{400, "text/csv", "key,value\na,b\nc\n", nil},
		{400, "text/csv", "key,value\na,b\nc,\"d\n", nil},
		{400, "application/x-ndjson", `{"key":"a","value":"b"}` + "\n" + `{"key":"c"}`, nil},
		{400, "application/x-ndjson", `{"key":"a","value":"b"}` + "\n" + `{"key":null,"value":"c"}`, nil},
		{400, "application/x-ndjson", `{"key":"a","value":"b"}` + "\n" + `{"key":"c","val`, nil},
		{400, "application/x-ndjson", `{"key":"a","value":"b"}` + "\n" + `{"key":"c","value":"d","ttl":5}`, nil},
		{400, "application/vnd.apache.arrow.stream", "ARROW1 no", nil},
		{400, "application/vnd.apache.parquet", "PAR1 no PAR1", nil},
		{400, "text/csv", "no gzip", []string{"Content-Encoding", "gzip"}},
		{400, "text/csv", "no zstd", []string{"Content-Encoding", "zstd"}},
		{400, "text/csv", string(packed(t, "gzip", []byte("key,value\na,b\n"))[:20]), []string{"Content-Encoding", "gzip"}},
		{400, "text/csv", string(packed(t, "zstd", []byte("key,value\na,b\n"))[:18]), []string{"Content-Encoding", "zstd"}},
		{415, "text/csv", "x", []string{"Content-Encoding", "br"}},
		{415, "application/x-www-form-urlencoded", "key=a&value=b", nil},
		{415, "application/json", `[{"key":"a","value":"b"}]`, nil},
		{413, "text/csv", "key,value\na," + long + "\n", nil},
		{413, "text/csv", string(packed(t, "gzip", append([]byte("key,value\na,"), zeros...))), []string{"Content-Encoding", "gzip"}},
		{413, "text/csv", string(packed(t, "zstd", append([]byte("key,value\na,"), zeros...))), []string{"Content-Encoding", "zstd"}},
		{413, "application/vnd.apache.parquet", long + "x", nil},
	} {
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(c.body)
			if chunked {
				body = struct{ io.Reader }{body}
			}
			r := g.want(c.status, "PUT", "/v1/batch", body, append([]string{"Content-Type", c.media}, c.more...)...)
			if n := src.Len(); n != 0 {
				t.Fatalf("%.60q, answered by %s, has changed %d keys", c.body, r.body, n)
			}
		}
	}
	// A small body that asks for much is refused by what its rows take in memory.
	many := "key,value\n" + strings.Repeat("a,\n", 200_000)
	h := start(t, src, nil, BodyLimit(1<<20), BufferLimit(4<<20))
	h.want(413, "PUT", "/v1/batch", strings.NewReader(many), "Content-Type", "text/csv")
	if src.Len() != 0 {
		t.Error("some of it was done")
	}
}

// A body that is cut anywhere changes nothing, whatever its format.
func TestCutBodies(t *testing.T) {
	rng := seed.Rand(t)
	src := memory(t)
	g := start(t, src, nil)
	address := strings.TrimPrefix(g.base, "http://")
	var rows [][]string
	for i := range 50 {
		rows = append(rows, []string{fmt.Sprint("k", i), randomKey(rng)})
	}
	for _, format := range []string{"csv", "jsonl", "arrow", "parquet"} {
		body := written(t, format, []string{"key", "value"}, rows)
		for range seed.Times(6, 200) {
			cut := rng.IntN(len(body))
			head := fmt.Sprintf("PUT /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n", mediaOf(format))
			if rng.IntN(2) == 0 {
				head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
			} else {
				head += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(body))
			}
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write(append([]byte(head), body[:cut]...))
			_ = c.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(c)
			c.Close()
			if len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
				t.Errorf("%s cut at %d of %d: %.100q", format, cut, len(body), answer)
			}
			if n := src.Len(); n != 0 {
				t.Fatalf("%s cut at %d of %d has changed %d keys", format, cut, len(body), n)
			}
		}
	}
}

// Bodies of bytes that mean nothing, and such as have a byte changed, are answered, and nothing of the server is lost.
func TestGarbageBodies(t *testing.T) {
	rng := seed.Rand(t)
	g := start(t, memory(t), nil)
	var rows [][]string
	for i := range 20 {
		rows = append(rows, []string{fmt.Sprint("k", i), randomKey(rng)})
	}
	for i := range seed.Times(60, 5000) {
		format := []string{"csv", "jsonl", "arrow", "parquet"}[i%4]
		body := written(t, format, []string{"key", "value"}, rows)
		for range 1 + rng.IntN(4) {
			body[rng.IntN(len(body))] = byte(rng.IntN(256))
		}
		if i%8 > 5 {
			body = garbage(rng)
		}
		said := []string{"Content-Type", mediaOf(format)}
		if rng.IntN(3) == 0 {
			said = nil
		}
		if r := g.ask("PUT", "/v1/batch", bytes.NewReader(body), said...); r.StatusCode != 200 && r.StatusCode/100 != 4 {
			t.Errorf("%s: %s: %s", format, r.Status, r.body)
		}
	}
	g.want(200, "GET", "/v1/count", nil)
}

func garbage(rng *rand.Rand) []byte {
	b := make([]byte, rng.IntN(3000))
	for i := range b {
		b[i] = byte(rng.IntN(256))
	}
	return b
}

// A body without a type is what its content says.
func TestBodyWithoutType(t *testing.T) {
	src := memory(t)
	g := start(t, src, nil)
	for i, f := range []string{"csv", "jsonl", "arrow", "parquet"} {
		body := written(t, f, []string{"key", "value"}, [][]string{{f, "v"}})
		g.want(200, "PUT", "/v1/batch", bytes.NewReader(body))
		if src.Len() != i+1 {
			t.Errorf("%s: %d keys", f, src.Len())
		}
	}
}
