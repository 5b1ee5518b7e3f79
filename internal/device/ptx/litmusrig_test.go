package ptx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// litmus is a program of a few threads and the outcomes that PTX allows. The
// threads' instructions are PTX, with [x] to [w] for words that are 0 at the
// start, $0 to $9 for registers that are part of the outcome, and without the
// ending .global.u32 of ld and st. The outcome has these registers, in order,
// and then the final values of the words named in final.
type litmus struct {
	threads []string
	near    int    // threads of a block, 0 for one
	final   string // such as "xy"
	allowed []string
}

// wordsOf are the places of the words of a litmus test: in lines of their own,
// though that makes no difference here.
var wordsOf = strings.NewReplacer("[x]", "[%d1]", "[y]", "[%d1+64]", "[z]", "[%d1+128]", "[w]", "[%d1+192]",
	"[x+4]", "[%d1+4]", "$", "%r2")

// expand turns the shorthand of an instruction into PTX.
func expand(line string) string {
	guard := ""
	if strings.HasPrefix(line, "@") {
		guard, line, _ = strings.Cut(line, " ")
		guard += " "
	}
	head, rest, _ := strings.Cut(line, " ")
	if (strings.HasPrefix(head, "ld.") || strings.HasPrefix(head, "st.")) && !strings.Contains(head, ".u") {
		head += ".global.u32"
	}
	return guard + wordsOf.Replace(head+" "+rest) + ";\n"
}

// text returns the kernel of a litmus test, and the number of registers of its
// outcome.
func (l *litmus) text() (string, int) {
	count := 0
	var b strings.Builder
	b.WriteString("ld.param.u64 %d1, [p0];\nld.param.u64 %d3, [p1];\nadd.u64 %d4, %d1, 64;\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %ctaid.x;\nmad.lo.u32 %r1, %r2, %r3, %r1;\n")
	for i := range l.threads {
		fmt.Fprintf(&b, "setp.eq.u32 %%p0, %%r1, %d;\n@%%p0 bra T%d;\n", i, i)
	}
	for i, body := range l.threads {
		fmt.Fprintf(&b, "T%d:\n", i)
		for _, line := range strings.Split(body, ";") {
			if line = strings.TrimSpace(line); line != "" {
				b.WriteString(expand(line))
			}
		}
		for r := range 10 {
			if strings.Contains(body, fmt.Sprintf("$%d", r)) {
				fmt.Fprintf(&b, "st.global.u32 [%%d3+%d], %%r2%d;\n", 4*r, r)
				count = max(count, r+1)
			}
		}
		b.WriteString("exit;\n")
	}
	return program(2, b.String()), count
}

// run launches a litmus test until every allowed outcome has been seen, at least
// least times and at most most times, and returns how often each was seen.
func (l *litmus) run(t *testing.T, least, most int, opts ...Option) map[string]int {
	t.Helper()
	start := seed.Of(t)
	r := newRig(t, append([]Option{Seed(start), Weak(true), RaceCheck(false), Steps(1 << 20)}, opts...)...)
	text, count := l.text()
	k := r.load(text)("k")
	memory, out := r.alloc(make([]byte, 256)), r.alloc(make([]byte, 64))
	near := max(l.near, 1)
	g := device.Grid{Blocks: len(l.threads) / near, Threads: near}
	seen := map[string]int{}
	missing := len(l.allowed)
	for i := 0; i < least || i < most && missing > 0; i++ {
		r.must(r.s.Fill(memory, 0, 256))
		if err := r.launch(k, g, memory, out); err != nil {
			t.Fatalf("launch %d: %v", i, err)
		}
		got := l.outcome(r, memory, out, count)
		if seen[got]++; seen[got] > 1 {
			continue
		}
		if !slices.Contains(l.allowed, got) {
			t.Fatalf("launch %d: outcome %s is forbidden; allowed are %v", i, got, l.allowed)
		}
		missing--
	}
	return seen
}

func (l *litmus) outcome(r *rig, memory, out device.Ptr, count int) string {
	r.Helper()
	var s strings.Builder
	regs, words := r.read(out, 64), r.read(memory, 256)
	for i := range count {
		fmt.Fprint(&s, binary.LittleEndian.Uint32(regs[4*i:]))
	}
	for _, name := range l.final {
		fmt.Fprintf(&s, " %c=%d", name, binary.LittleEndian.Uint32(words[64*strings.IndexRune("xyzw", name):]))
	}
	return strings.TrimSpace(s.String())
}

// check runs a litmus test and demands that all that is allowed is seen.
func (l *litmus) check(t *testing.T, opts ...Option) {
	t.Helper()
	seen := l.run(t, seed.Count(600), 40000, opts...)
	for _, want := range l.allowed {
		if seen[want] == 0 {
			t.Errorf("outcome %s is allowed and was never drawn: %v", want, seen)
		}
	}
	total := 0
	for _, n := range seen {
		total += n
	}
	t.Logf("%d launches, rarest outcome %d times: %v", total, slices.Min(slices.Collect(maps.Values(seen))), seen)
}

// all returns every string of n digits below base, except some.
func all(n, base int, except ...string) []string {
	list := []string{""}
	for range n {
		var next []string
		for _, s := range list {
			for d := range base {
				next = append(next, fmt.Sprint(s, d))
			}
		}
		list = next
	}
	return slices.DeleteFunc(list, func(s string) bool { return slices.Contains(except, s) })
}
