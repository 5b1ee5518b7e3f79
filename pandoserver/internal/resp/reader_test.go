package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pando-index/pando/internal/seed"
)

// result is all that a reader makes of a stream.
type result struct {
	commands [][]string
	err      string
}

// pieces is a stream that comes in pieces of sizes that next returns.
type pieces struct {
	data []byte
	next func() int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), max(1, p.next()))], p.data)
	p.data = p.data[n:]
	return n, nil
}

// read reads a stream to its end.
func read(src io.Reader, limits Limits) (res result) {
	r := Reader{Limits: limits}
	for {
		err := r.Fill(src)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				res.err = err.Error()
			}
			return res
		}
		for {
			args, ok, err := r.Next()
			if err != nil {
				res.err = err.Error()
				return res
			}
			if !ok {
				break
			}
			command := make([]string, len(args))
			for i, a := range args {
				command[i] = string(a)
			}
			res.commands = append(res.commands, command)
		}
	}
}

func same(a, b result) bool {
	return a.err == b.err && slices.EqualFunc(a.commands, b.commands, slices.Equal)
}

func bulk(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// streams are ones that have everything in them, right and wrong.
var streams = []string{
	bulk("GET", "a") + bulk("SET", "a", "b\r\nc") + bulk("") + bulk("PING"),
	"PING\r\nSET a \"b c\\x41\\n\"\nGET 'a\\'b'\r\n\r\n \r\nECHO x\n",
	bulk("MSET", "a", "", "", "b") + "INLINE\r\n" + "*0\r\n*-1\r\n" + bulk("GET", strings.Repeat("k", 300)),
	bulk("GET", "a") + "*1\r\n$x\r\n", "*2\r\n$1\r\na\r\n!", "*1\r\n$-1\r\n", "*x\r\n", "*01\r\n", "*1048577\r\n",
	"*1\r\n$536870913\r\n", "*1\r\n$1\r\nab\r\nPING\r\n", "\"abc\r\n", "'a'b\r\n", "*+1\r\n", "*1\rx$1\r\na\r\n",
	"*" + strings.Repeat("1", longestLine+10), strings.Repeat("a", longestLine+10), "*1\r\n$" + strings.Repeat("1", longestLine+10),
	"*18446744073709551617\r\n",
	strings.Repeat("a", longestLine) + "\nPING\n", strings.Repeat("a", longestLine+1) + "\nPING\n", "PING " + strings.Repeat(" ", longestLine+100) + "\nPING\n",
	"*" + strings.Repeat("1", longestLine+10) + "\r\nPING\n", "*1\r\n$" + strings.Repeat("1", longestLine+10) + "\r\n",
}

// A stream is the same commands and the same error wherever it is cut.
func TestEveryCut(t *testing.T) {
	for i, s := range streams {
		for _, limits := range []Limits{Known, Unknown} {
			want := read(strings.NewReader(s), limits)
			if got := read(iotest.OneByteReader(strings.NewReader(s)), limits); !same(got, want) {
				t.Errorf("stream %d byte by byte: %+v, want %+v", i, got, want)
			}
			for cut := 1; cut < len(s); cut += 1 + len(s)/1000 {
				first := true
				src := &pieces{[]byte(s), func() int {
					if first {
						first = false
						return cut
					}
					return len(s)
				}}
				if got := read(src, limits); !same(got, want) {
					t.Fatalf("stream %d cut at %d: %+v, want %+v", i, cut, got, want)
				}
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for i, s := range streams {
		f.Add([]byte(s), uint64(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, s uint64) {
		for _, limits := range []Limits{Known, Unknown} {
			want := read(bytes.NewReader(data), limits)
			rng := rand.New(rand.NewPCG(s, 1))
			if got := read(&pieces{data, func() int { return rng.IntN(20) }}, limits); !same(got, want) {
				t.Fatalf("%+v, want %+v", got, want)
			}
			for cut := 1; cut < min(len(data), 200); cut++ {
				size := cut
				got := read(&pieces{data, func() int {
					n := size
					size = len(data)
					return n
				}}, limits)
				if !same(got, want) {
					t.Fatalf("cut at %d: %+v, want %+v", cut, got, want)
				}
			}
		}
	})
}

// A buffer that a long command took is given back when the command is done, and the reader goes on.
func TestTrim(t *testing.T) {
	r := Reader{Limits: Known}
	src := strings.NewReader(bulk("SET", "a", strings.Repeat("x", 1<<20)))
	for ok := false; !ok; {
		if err := r.Fill(src); err != nil {
			t.Fatal(err)
		}
		_, done, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		r.Trim()
		if ok = done; !ok && r.Buffered() == 0 {
			t.Fatal("a command that is not whole is gone")
		}
	}
	if r.Room() > usualBuffer {
		t.Errorf("%d bytes are kept", r.Room())
	}
	if got := read(src, Known); len(got.commands) > 0 {
		t.Errorf("%v", got)
	}
	if err := r.Fill(strings.NewReader(bulk("GET", "a"))); err != nil {
		t.Fatal(err)
	}
	if args, ok, err := r.Next(); !ok || err != nil || len(args) != 2 || string(args[1]) != "a" {
		t.Errorf("%q, %v, %v", args, ok, err)
	}
}

// Random commands come out as they went in.
func TestRandomCommands(t *testing.T) {
	rng := seed.Rand(t)
	for range seed.Times(200, 5000) {
		var stream bytes.Buffer
		var want [][]string
		for range rng.IntN(50) {
			args := make([]string, 1+rng.IntN(10))
			for i := range args {
				args[i] = strings.Repeat(string(rune(rng.IntN(256))), rng.IntN(1+1<<rng.IntN(14)))
			}
			stream.WriteString(bulk(args...))
			want = append(want, args)
		}
		most := 1 << rng.IntN(18)
		if got := read(&pieces{stream.Bytes(), func() int { return rng.IntN(most) + 1 }}, Known); !same(got, result{commands: want}) {
			t.Fatal("other commands came out")
		}
	}
}

// A command of a million arguments comes in reads of a packet, and of a byte, in time
// linear in its bytes: were it parsed from its begin again each time, this would take hours.
func TestMillionArguments(t *testing.T) {
	for _, size := range []int{1, 1460, 1 << 20} {
		n := Known.Args
		if size == 1 {
			n /= seed.Size(8, 1)
		}
		stream := []byte("*" + strconv.Itoa(n) + "\r\n")
		for i := range n {
			a := strconv.Itoa(i)
			stream = append(append(append(append(append(stream, '$'), strconv.Itoa(len(a))...), "\r\n"...), a...), "\r\n"...)
		}
		r, src, fills := Reader{Limits: Known}, &pieces{stream, func() int { return size }}, 0
		for {
			if err := r.Fill(src); err != nil {
				t.Fatal(err)
			}
			fills++
			args, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				if len(args) != n || string(args[n-1]) != strconv.Itoa(n-1) {
					t.Fatalf("%d arguments, the last is %q", len(args), args[len(args)-1])
				}
				break
			}
		}
		t.Logf("%d reads of %d bytes", fills, size)
		_ = r.Fill(strings.NewReader("PING\r\n"))
		if r.Room() > usualBuffer {
			t.Errorf("the reader keeps %d bytes", r.Room())
		}
	}
}

// A client that has not said who it is cannot make the reader hold more than 64 KiB, with what it holds for arguments, and
// with the buffer that it had while it makes a larger one.
func TestUnknownClients(t *testing.T) {
	for _, s := range []string{
		bulk(slices.Repeat([]string{strings.Repeat("a", 16<<10)}, 10)...),
		strings.Repeat("a", 1<<20),
		"*1\r\n$" + strings.Repeat("1", 1<<20),
		"*10\r\n" + strings.Repeat("$16384\r\n"+strings.Repeat("x", 16386), 10),
		strings.Repeat("a ", 1<<14) + "\n" + strings.Repeat("a", 1<<20),
		strings.Repeat("PING\n", 1<<14) + strings.Repeat("a", 1<<20),
		strings.Repeat(bulk("a"), 1<<14) + strings.Repeat("a", 1<<20),
		strings.Repeat(bulk(slices.Repeat([]string{""}, 10)...), 1<<12) + strings.Repeat("a", 1<<20),
	} {
		r, src := Reader{Limits: Unknown}, strings.NewReader(s)
		most, err := 0, error(nil)
		for err == nil {
			before := r.Room()
			err = r.Fill(src)
			if r.Room() != before {
				most = max(most, r.Room()+before)
			}
			for ok := true; ok && err == nil; {
				_, ok, err = r.Next()
				most = max(most, r.Room())
			}
		}
		if most > 40<<10 || errors.Is(err, io.EOF) {
			t.Errorf("the reader took %d bytes: %v", most, err)
		}
	}
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-1": true, "9223372036854775807": true, "-9223372036854775808": true,
		"": false, "-": false, "+1": false, "01": false, "-0": false, "-01": false, "1a": false, " 1": false,
		"9223372036854775808": false, "-9223372036854775809": false, "99999999999999999999": false,
	} {
		n, ok := ParseInt([]byte(text))
		if ok != want || ok && strconv.FormatInt(n, 10) != text {
			t.Errorf("%q: %d %v", text, n, ok)
		}
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	stream := []byte(strings.Repeat(bulk("SET", "key:000000000001", "value"), 16))
	r, src := Reader{Limits: Known}, bytes.NewReader(stream)
	n := testing.AllocsPerRun(100, func() {
		src.Reset(stream)
		for r.Fill(src) == nil {
			for {
				if _, ok, err := r.Next(); !ok || err != nil {
					break
				}
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
