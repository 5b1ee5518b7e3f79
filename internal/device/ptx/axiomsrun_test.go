package ptx

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// TestAxioms draws programs, and tests that the model draws no outcome that the
// axioms forbid, and, of programs without races, most that they allow.
func TestAxioms(t *testing.T) {
	start := seed.Of(t)
	allowed, seen, programs := 0, 0, 0
	for s := range uint64(seed.Count(100)) {
		p := drawProgram(rand.New(rand.NewPCG(start+s, 2)))
		want := outcomes(p.events, p.regs)
		got := p.draws(t, start+s, 300)
		for out := range got {
			if !want[out] {
				t.Fatalf("PANDO_SEED=%d: %q, %d in a block: outcome %s is forbidden; allowed are %v", start+s, p.threads, p.near, out, want)
			}
		}
		if p.racy {
			continue
		}
		allowed, seen, programs = allowed+len(want), seen+len(got), programs+1
		for out := range want {
			if got[out] == 0 {
				t.Logf("seed %d: %q, %d in a block: %s never drawn", start+s, p.threads, p.near, out)
			}
		}
	}
	t.Logf("%d programs: %d of %d allowed outcomes drawn", programs, seen, allowed)
	if programs > 20 && seen*10 < allowed*6 { // it is 85 to 95 % in 300 draws, 99 % in 3000
		t.Errorf("%d of %d allowed outcomes drawn", seen, allowed)
	}
}

// draws runs a program a number of times and returns how often it had each
// outcome.
func (p *drawn) draws(t *testing.T, s uint64, times int) map[string]int {
	r := newRig(t, Seed(s), Weak(true), RaceCheck(false), Steps(1<<20))
	text, _ := p.text()
	k := r.load(text)("k")
	memory, out := r.alloc(make([]byte, 256)), r.alloc(make([]byte, 64))
	seen := map[string]int{}
	for range times {
		r.must(r.s.Fill(memory, 0, 256))
		r.must(r.launch(k, device.Grid{Blocks: len(p.threads) / p.near, Threads: p.near}, memory, out))
		regs, got := make([]int, p.regs), r.read(out, 64)
		for i := range regs {
			regs[i] = int(binary.LittleEndian.Uint32(got[4*i:]))
		}
		seen[fmt.Sprint(regs)]++
	}
	return seen
}
