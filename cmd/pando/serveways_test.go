package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asked is a client of HTTP.
var asked = &http.Client{Timeout: time.Minute}

// get returns the body of an answer, and its header.
func fetch(t *testing.T, status int, url string, headers ...string) (string, http.Header) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	res, err := asked.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Errorf("%s: %s, %v, want %d: %.300s", url, res.Status, err, status, body)
	}
	return string(body), res.Header
}

// One server answers clients of redis and of HTTP, which see each other's changes; pages show indexes by their names.
func TestServeBothWays(t *testing.T) {
	dir := t.TempDir()
	csv, file := filepath.Join(dir, "prices.csv"), filepath.Join(dir, "prices.pando")
	if err := os.WriteFile(csv, []byte("day,price\n2026-11-17,1.5\n2026-02-03,2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "build", csv, "-o", file, "--key", "day", "--value", "price", "-q")
	lines, stop := serveAnywhere(t, filepath.Join(dir, "data"), file, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--slower-than", "0s", "--log-format", "json")
	address, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base = strings.TrimSpace(base)
	c := connect(t, address)
	c.want("SET apple 3", "+OK")
	if got, _ := fetch(t, 200, base+"v1/range?lo=a&hi=b&format=csv"); got != "key,value\napple,3\n" {
		t.Errorf("%q", got)
	}
	r, err := asked.Post(base+"v1/batch", "text/csv", strings.NewReader("key,value\nbanana,5\n"))
	if err != nil || r.StatusCode != 200 {
		t.Fatal(err, r.Status)
	}
	r.Body.Close()
	c.want("GET banana", "5")
	// A file has its types, and its answers are known again.
	got, header := fetch(t, 200, base+"v1/range?index=prices&format=jsonl")
	if got != "{\"key\":\"2026-02-03\",\"value\":2}\n{\"key\":\"2026-11-17\",\"value\":1.5}\n" {
		t.Errorf("%q", got)
	}
	tag := header.Get("ETag")
	if tag == "" {
		t.Error("a file has no ETag")
	}
	fetch(t, 304, base+"v1/range?index=prices&format=jsonl", "If-None-Match", tag)
	if got, _ := fetch(t, 200, base+"v1/indexes?format=csv"); got != "name,entries,key,value,writable\ndata,2,binary,binary,true\nprices,2,date,float64,false\n" {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"data", "prices"} {
		if got, _ := fetch(t, 200, base+"view/"+name+"/api/index"); !strings.Contains(got, fmt.Sprintf("%q", name)) {
			t.Errorf("the page of %s: %.300s", name, got)
		}
	}
	got, _ = fetch(t, 200, base+"metrics")
	for _, want := range []string{`pando_entries{index="prices"} 2`, `pando_entries{index="data"} 2`, `pando_command_duration_seconds_count{command="set"} 1`, `pando_log_operations_total{index="data"} 2`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in %s", want, got)
		}
	}
	fetch(t, 200, base+"readyz")
	fetch(t, 403, base+"v1/range", "Host", "evil.example")
	c.want("SLOWLOG LEN", ":4") // of those, two that say where replies end
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// The setting pprof has go tool pprof answered, by names of this machine alone.
func TestServeProfiles(t *testing.T) {
	config := filepath.Join(t.TempDir(), "pando.conf")
	if err := os.WriteFile(config, []byte("pprof = 127.0.0.1:0\nlisten = off\nhttp = 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	told, in := io.Pipe()
	lines, stop := serveTelling(t, in, "--config", config, "--http-host", "data.example")
	base := make(chan string, 1)
	go func() {
		all := bufio.NewScanner(told)
		for all.Scan() {
			if address, is := strings.CutPrefix(all.Text(), "Profiles: go tool pprof "); is {
				base <- strings.TrimSuffix(address, "profile")
			}
		}
	}()
	web, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pages := <-base
	if got, _ := fetch(t, 200, pages+"goroutine?debug=1"); !strings.Contains(got, "goroutine profile") {
		t.Errorf("%.100q", got)
	}
	fetch(t, 200, pages+"cmdline")
	fetch(t, 403, pages+"cmdline", "Host", "evil.example")
	fetch(t, 403, pages+"cmdline", "Host", "data.example")
	fetch(t, 403, pages+"cmdline", "Origin", "http://evil.example")
	fetch(t, 404, strings.TrimSpace(web)+"debug/pprof/cmdline")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// The server answers by the names that it is given.
func TestServeNames(t *testing.T) {
	lines, stop := serveAnywhere(t, "--listen", "off", "--http", "127.0.0.1:0", "--http-host", "data.example, [2001:db8::1], b.example")
	base, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base = strings.TrimSpace(base)
	fetch(t, 200, base+"v1/indexes", "Host", "data.example:80")
	fetch(t, 200, base+"view/index/", "Host", "data.example:80")
	fetch(t, 200, base+"v1/indexes", "Host", "b.example:80")
	fetch(t, 200, base+"view/index/", "Host", "[2001:db8::1]:80")
	fetch(t, 403, base+"v1/indexes", "Host", "other.example:80")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
