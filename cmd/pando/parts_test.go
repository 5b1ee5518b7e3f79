package main

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/table"
)

// Negative numbers are arguments; values of flags and what follows -- are left
// alone.
func TestGuardNegatives(t *testing.T) {
	for line, want := range map[string]string{
		"get f -5":             "get f !-5",
		"get f -.5 -0":         "get f !-.5 !-0",
		"get f -Inf":           "get f !-Inf",
		"range f -5 -n 3":      "range f !-5 -n 3",
		"range f -n -5":        "range f -n -5",
		"range f --limit -5":   "range f --limit -5",
		"range f --limit=3 -5": "range f --limit=3 !-5",
		"get f --json -5":      "get f --json !-5",
		"get f -- -5":          "get f -- -5",
		"get f -x -":           "get f -x -",
	} {
		got := strings.Join(guardNegatives(newRoot(), strings.Fields(line)), " ")
		if got = strings.ReplaceAll(got, guard, "!"); got != want {
			t.Errorf("%q became %q, want %q", line, got, want)
		}
	}
}

// Every command has a summary, a paragraph, and examples of itself.
func TestHelpTeaches(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.GroupID == "" {
			continue
		}
		if c.Short == "" || len(c.Long) < 40 || !strings.Contains(c.Example, "pando "+c.Name()) && !strings.Contains(c.Example, "| pando") {
			t.Errorf("pando %s: the help does not teach", c.Name())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len([]rune(line)) > 90 {
				t.Errorf("pando %s: long line %q", c.Name(), line)
			}
		}
	}
}

// What is available is the least of what the machine, control groups and ulimit
// leave.
func TestAvailable(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want int64) {
		t.Helper()
		proc := filepath.Join(root, "proc")
		if got := spare(proc).orGroups(proc, filepath.Join(root, "groups")).orLimits(proc); got.bytes != want {
			t.Errorf("%+v, want %d", got, want)
		}
	}
	expect(math.MaxInt64) // not known
	write("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable:   1000 kB\n")
	expect(1000 << 10)
	write("proc/self/cgroup", "0::/a/b\n")
	write("groups/a/b/memory.max", "max\n")
	expect(1000 << 10)
	write("groups/a/memory.max", "600000\n")
	write("groups/a/memory.current", "500000\n")
	expect(100000)
	write("groups/a/memory.stat", "anon 5\ninactive_file 50000\n")
	expect(150000)
	write("groups/a/memory.stat", "anon 5\ninactive_file 50000\nactive_file 7\n")
	expect(150007)
	write("proc/self/cgroup", "9:cpu,memory:/x\n")
	write("groups/memory/x/memory.limit_in_bytes", "3000")
	write("groups/memory/x/memory.usage_in_bytes", "5000")
	expect(1) // less than nothing
	write("proc/self/cgroup", "")
	write("proc/self/status", "VmSize:\t     100 kB\nVmData:\t      50 kB\n")
	write("proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"+
		"Max data size             unlimited            unlimited            bytes\n"+
		"Max address space         unlimited            unlimited            bytes\n")
	expect(1000 << 10)
	write("proc/self/limits", "Max address space         204800               unlimited            bytes\n")
	expect(50 << 10)
	write("proc/self/limits", "Max data size             61440                unlimited            bytes\n")
	expect(5 << 10)
}

// The limit of the process holds whatever --memory says, and is never raised.
func TestProcessLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	for limit, want := range map[int64]int64{0: 1 << 30, 2 << 30: 1 << 30, 1 << 20: 1 << 20} {
		b := newBudget(limit)
		if b.bytes > want || limit > 0 && b.bytes != want {
			t.Errorf("--memory %d: %+v, want %d", limit, b, want)
		}
		undo := b.hold()
		if held := debug.SetMemoryLimit(-1); held > 1<<30 {
			t.Errorf("--memory %d: the limit was raised to %d", limit, held)
		}
		undo()
	}
	if debug.SetMemoryLimit(-1) != 1<<30 {
		t.Error("the limit is not what it was")
	}
}

// Lines are read as strconv reads them, whatever their line ends.
func TestLines(t *testing.T) {
	rng := seed.Rand(t)
	var text bytes.Buffer
	var want []int64
	for range 150_000 {
		n := int64(rng.Uint64()) >> rng.IntN(64)
		want = append(want, n)
		text.WriteString(strconv.FormatInt(n, 10) + []string{"\n", "\r\n", " \n", "\n\n"}[rng.IntN(4)])
	}
	got, err := readLines(t, text.String()+"42", table.Int64)
	if err != nil || !slices.Equal(got.Int64, append(want, 42)) {
		t.Errorf("%v: %d of %d lines", err, got.Len(), len(want))
	}
	words, err := readLines(t, "a b\n\n\"c\",d\r\n", table.String)
	if err != nil || !slices.Equal(words.String, []string{"a b", "", "\"c\",d"}) {
		t.Errorf("%v: %q", err, words.String)
	}
}

// A value that does not fit the type is an error with its line, at every
// limit.
func TestLinesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		t       table.Type
		text    string
		healthy bool
	}{
		{table.Int64, "9223372036854775807", true}, {table.Int64, "9223372036854775808", false},
		{table.Int64, "-9223372036854775808", true}, {table.Uint64, "18446744073709551615", true},
		{table.Uint64, "18446744073709551616", false}, {table.Uint64, "9999999999999999999", true},
		{table.Uint64, "-1", false}, {table.Int32, "2147483647", true}, {table.Int32, "2147483648", false},
		{table.Uint32, "4294967295", true}, {table.Uint32, "4294967296", false}, {table.Float64, "-1e300", true},
		{table.Float32, "1e300", false}, {table.Float32, "NaN", true}, {table.Int64, "1.5", false}, {table.Int64, "1 2", false},
	} {
		_, err := readLines(t, "1\n"+c.text+"\n", c.t)
		var at *table.Error
		if (err == nil) != c.healthy || err != nil && (!errors.As(err, &at) || at.Line != 2) {
			t.Errorf("%v %s: %v", c.t, c.text, err)
		}
	}
	if _, err := readLines(t, strings.Repeat("x", 2<<20), table.String); err == nil {
		t.Error("a key of 2 MiB was taken")
	}
}

func readLines(t *testing.T, text string, typ table.Type) (*table.Column, error) {
	l, err := openLines("-", strings.NewReader(text), table.Field{Name: "key", Type: typ})
	if err != nil {
		t.Fatal(err)
	}
	all := &table.Column{Field: table.Field{Type: typ}}
	var b table.Batch
	for {
		err := l.Next(&b)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all.Int64 = append(all.Int64, b.Columns[0].Int64...)
		all.String = append(all.String, b.Columns[0].String...)
	}
}

// Plain progress lines tell how many, how fast and how much longer.
func TestProgressLine(t *testing.T) {
	p := newProgress(io.Discard, false, "reading")
	if got, want := p.line(25, 100, 1_000_000, 10*time.Second), "reading: 1,000,000 rows, 100,000 a second, 25 %, 30s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := p.line(25, 0, 10, time.Second), "reading: 10 rows, 10 a second"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A terminal's bar does not fail if the terminal has no size.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, false, "reading")
	for i := range int64(3) {
		p.drawBar(i, 2, int(i))
	}
	p.end()
	if !strings.Contains(out.String(), "reading") {
		t.Errorf("%q", out.String())
	}
	p = newProgress(&out, false, "reading")
	p.drawBar(1, 0, 1)
	p.end()
}

// fillNulls works for every type.
func TestFillNulls(t *testing.T) {
	for typ := table.Int64; typ <= table.String; typ++ {
		c, with := &table.Column{Field: table.Field{Type: typ}}, &table.Column{Field: table.Field{Type: typ}}
		if err := errors.Join(appendText(c, "1"), appendText(with, "7")); err != nil {
			t.Fatal(err)
		}
		c.AppendNull()
		fillNulls(c, with)
		var got table.Column
		pick(&got, c, []int{1, 0})
		if text := cellText(&got, 0) + cellText(&got, 1); strings.ReplaceAll(text, `"`, "") != "71" || slices.Contains(got.Null, true) {
			t.Errorf("%v: %s", typ, text)
		}
	}
}
