package kernel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
)

// leftOut is a kernel's text with one part changed.
type leftOut struct {
	what string
	text string
	kind ptx.FaultKind // what the interpreter says of it
}

var (
	meets   = regexp.MustCompile(`bar(\.warp)?\.sync[^;]*;`)
	reports = regexp.MustCompile(`(ld|st)\.relaxed\.gpu`)
	tickets = regexp.MustCompile(`atom\.relaxed\.gpu\.global\.add\.u32 (%r\d+), [^;]*;`)
)

// without returns the texts in which one part of a kernel's protocol is left out:
// each barrier, the strength of each access to a report, and the ticket.
func without(text, name string) (all []leftOut) {
	from, to := kernel.Part(text, name)
	part := text[from:to]
	change := func(what string, at []int, by string, kind ptx.FaultKind) {
		line := 1 + strings.Count(text[:from+at[0]], "\n")
		all = append(all, leftOut{fmt.Sprintf("%s without %s of line %d", name, what, line),
			text[:from+at[0]] + by + text[from+at[1]:], kind})
	}
	for _, at := range meets.FindAllStringIndex(part, -1) {
		change("the barrier", at, "", ptx.Race)
	}
	for i, at := range reports.FindAllStringSubmatchIndex(part, -1) {
		if i > 3 && part[at[2]] == 'l' {
			continue // one load as the other
		}
		change("the order", at, part[at[2]:at[3]], ptx.Race)
	}
	for _, at := range tickets.FindAllStringSubmatchIndex(part, -1) {
		change("the ticket", at, "mov.u32 "+part[at[2]:at[3]]+", %ctaid.x;", ptx.Deadlock)
	}
	return all
}

// Whatever is left out of what blocks and threads tell each other is found by
// some seed.
func TestLeftOut(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("nothing here runs on several goroutines")
	}
	start := seed.Of(t)
	sort := func(p *primitive, rng *rand.Rand) error {
		c := &sortCase[uint32]{job: kernel.SortJob{KeyBits: 32, To: 8}}
		c.fill(2*c.job.UseTiles(false)+5, rng)
		return c.check(p)
	}
	sum := func(p *primitive, rng *rand.Rand) error {
		return checkSums[uint32](p, make([]uint32, 4*kernel.SumTile+5), false)
	}
	for _, k := range []struct {
		src  kernel.Source
		name string
		run  func(p *primitive, rng *rand.Rand) error
	}{{kernel.Sorting, "sortFew32", sort}, {kernel.Summing, "sum32", sum}} {
		for i, part := range without(k.src.Text(), k.name) {
			if !seed.Long() && (uint64(i)+start)%3 != 0 {
				continue
			}
			d := ptx.New(ptx.Weak(true), ptx.Strict(true), ptx.Steps(1<<26))
			p := newPrimitive(t, d, k.src.With(part.text))
			found := false
			for s := start; s < start+200 && !found; s++ {
				ptx.Seed(s)(d)
				err := k.run(p, rand.New(rand.NewPCG(s, 0)))
				var f *ptx.Fault
				if found = errors.As(err, &f) && f.Kind == part.kind; found {
					t.Logf("%s: after %d seeds: %v", part.what, s-start, err)
				} else if err != nil {
					t.Logf("%s: seed %d: %v", part.what, s, err)
				}
				must(t, p.free())
			}
			if !found {
				t.Errorf("%s: no seed shows it", part.what)
			}
			p.close(t)
			must(t, d.Close())
		}
	}
}
