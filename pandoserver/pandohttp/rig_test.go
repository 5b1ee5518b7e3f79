package pandohttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandoserver"
)

// patience is how long tests wait for what should come at once.
const patience = time.Minute

// memory returns an empty tree in memory.
func memory(t testing.TB) pandoserver.Changer {
	t.Helper()
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return pandoserver.Tree(tree)
}

// rig is a server under test.
type rig struct {
	t    testing.TB
	s    *Server
	srv  *pandoserver.Server
	base string // its address
	http *http.Client
}

// start serves an index, and others by the options of pandoserver.
func start(t testing.TB, src pandoserver.Source, more []pandoserver.Option, opts ...Option) *rig {
	t.Helper()
	srv, err := pandoserver.New(src, more...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(srv, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s, srv)
}

// run serves on a free port until the test ends.
func run(t testing.TB, s *Server, srv *pandoserver.Server) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	g := &rig{t: t, s: s, srv: srv, base: "http://" + l.Addr().String(), http: &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: patience}}
	t.Cleanup(func() {
		cancel()
		g.http.CloseIdleConnections()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the server does not end")
		}
		if n := s.held.Load(); n != 0 {
			t.Errorf("%d bytes are held when all is over", n)
		}
	})
	return g
}

// reply is what came back.
type reply struct {
	*http.Response
	body []byte
	err  error // of reading the body
}

// ask makes a request. Headers are pairs of a name and a value.
func (g *rig) ask(method, path string, body io.Reader, headers ...string) reply {
	g.t.Helper()
	r, err := http.NewRequest(method, g.base+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	got, err := g.http.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer got.Body.Close()
	all, err := io.ReadAll(got.Body)
	return reply{got, all, err}
}

// want asks, and fails if the status is another.
func (g *rig) want(status int, method, path string, body io.Reader, headers ...string) reply {
	g.t.Helper()
	r := g.ask(method, path, body, headers...)
	if r.StatusCode != status || r.err != nil {
		g.t.Fatalf("%s %s: %s, %v, want %d: %.300s", method, path, r.Status, r.err, status, r.body)
	}
	if status >= 400 && method != "HEAD" {
		var says struct {
			Error  string
			Next   string
			Status int
		}
		if err := json.Unmarshal(r.body, &says); err != nil || says.Error == "" || says.Status != status {
			g.t.Errorf("%s %s: the error is %q, %v", method, path, r.body, err)
		}
	}
	return r
}

// query makes an address of pairs of a name and a value.
func query(path string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// unpacked returns a body without its compression.
func (r reply) unpacked(t testing.TB) []byte {
	t.Helper()
	var z io.Reader
	var err error
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "":
		return r.body
	case "gzip":
		z, err = gzip.NewReader(bytes.NewReader(r.body))
	case "zstd":
		d, e := zstd.NewReader(bytes.NewReader(r.body))
		if e == nil {
			defer d.Close()
		}
		z, err = d, e
	default:
		t.Fatalf("the answer is compressed by %q", coding)
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rows returns the rows of an answer as texts, with the columns first: name:value. A null is NULL.
func (r reply) rows(t testing.TB) (rows []string) {
	t.Helper()
	data := r.unpacked(t)
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	format := ""
	for _, f := range formats {
		if f.media[0] == media {
			format = f.name
		}
	}
	switch format {
	case "":
		t.Fatalf("the answer is of type %q: %.200s", media, data)
	case "json":
		var all []json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatalf("%v: %.200s", err, data)
		}
		data = nil
		for _, one := range all {
			data = append(append(data, one...), '\n')
		}
		format = "jsonl"
	}
	if format == "jsonl" && len(data) == 0 {
		return nil
	}
	src, err := table.Read(bytes.NewReader(data), "the answer", 1<<30, table.Options{Format: format, Pass: true, Workers: 1, Header: true, Comma: comma(format)})
	if err != nil {
		t.Fatalf("%v: %.200q", err, data)
	}
	defer src.Close()
	var b table.Batch
	for {
		if err := src.Next(&b); err == io.EOF {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		for i := range b.Rows {
			var cells []string
			for j := range b.Columns {
				text := "NULL"
				if !b.Columns[j].IsNull(i) {
					text = table.CellText(&b.Columns[j], i)
				}
				cells = append(cells, b.Columns[j].Name+":"+text)
			}
			rows = append(rows, strings.Join(cells, " "))
		}
	}
}

// written returns rows as a body of a format.
func written(t testing.TB, format string, names []string, rows [][]string) []byte {
	t.Helper()
	schema := make([]table.Field, len(names))
	for i, n := range names {
		schema[i] = table.Field{Name: n, Type: table.String, Kind: binaryKind}
	}
	var out bytes.Buffer
	sink, err := table.NewSink(&out, format, schema)
	if err != nil {
		t.Fatal(err)
	}
	var b table.Batch
	b.Reset(schema)
	for _, r := range rows {
		for i, text := range r {
			b.Columns[i].String = append(b.Columns[i].String, text)
		}
		b.Rows++
	}
	if err := sink.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// mediaOf returns the type of a format.
func mediaOf(name string) string {
	for _, f := range formats {
		if f.name == name {
			return f.media[0]
		}
	}
	panic(fmt.Sprint("no format ", name))
}
