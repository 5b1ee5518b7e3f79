package ptx

import (
	"strings"
	"testing"
)

// with returns threads in which # stands for an instruction.
func with(instruction string, threads ...string) []string {
	for i, s := range threads {
		threads[i] = strings.ReplaceAll(s, "#", instruction)
	}
	return threads
}

const (
	messageOut  = "st.relaxed.gpu [x], 1; #; st.relaxed.gpu [y], 1"
	messageIn   = "ld.relaxed.gpu $0, [y]; #; ld.relaxed.gpu $1, [x]"
	storeFirst  = "st.relaxed.gpu [x], 1; #; ld.relaxed.gpu $0, [y]"
	storeSecond = "st.relaxed.gpu [y], 1; #; ld.relaxed.gpu $1, [x]"
	loadFirst   = "ld.relaxed.gpu $0, [x]; #; st.relaxed.gpu [y], 1"
	loadSecond  = "ld.relaxed.gpu $1, [y]; #; st.relaxed.gpu [x], 1"
	relaxedX    = "st.relaxed.gpu [x], 1"
	relaxedY    = "st.relaxed.gpu [y], 1"
)

// plainly removes the order and scope of the accesses.
func plainly(threads []string) []string {
	for i, s := range threads {
		threads[i] = strings.NewReplacer(".relaxed.gpu", ".weak").Replace(s)
	}
	return threads
}

// twoThreads are the tests of two locations and two threads.
var twoThreads = map[string]litmus{
	"MP":                          {threads: with("", messageOut, messageIn), allowed: all(2, 2)},
	"MP plain":                    {threads: plainly(with("", messageOut, messageIn)), allowed: all(2, 2)},
	"MP fences":                   {threads: with("fence.acq_rel.gpu", messageOut, messageIn), allowed: all(2, 2, "10")},
	"MP fences, plain data":       {threads: with("fence.acq_rel.gpu", strings.Replace(messageOut, "st.relaxed.gpu [x]", "st.weak [x]", 1), strings.Replace(messageIn, "ld.relaxed.gpu $1", "ld.weak $1", 1)), allowed: all(2, 2, "10")},
	"MP fence.sc":                 {threads: with("fence.sc.gpu", messageOut, messageIn), allowed: all(2, 2, "10")},
	"MP membar":                   {threads: with("membar.gl", messageOut, messageIn), allowed: all(2, 2, "10")},
	"MP fence of the writer only": {threads: []string{with("fence.acq_rel.gpu", messageOut)[0], with("", messageIn)[0]}, allowed: all(2, 2)},
	"MP fence of the reader only": {threads: []string{with("", messageOut)[0], with("fence.acq_rel.gpu", messageIn)[0]}, allowed: all(2, 2)},
	"MP fences of the block":      {threads: with("fence.acq_rel.cta", messageOut, messageIn), allowed: all(2, 2)},
	"MP fences of the block, near": {threads: with("fence.acq_rel.cta", messageOut, messageIn), near: 2,
		allowed: all(2, 2, "10")},
	"SB":                           {threads: with("", storeFirst, storeSecond), allowed: all(2, 2)},
	"SB plain":                     {threads: plainly(with("", storeFirst, storeSecond)), allowed: all(2, 2)},
	"SB fence.acq_rel":             {threads: with("fence.acq_rel.gpu", storeFirst, storeSecond), allowed: all(2, 2)},
	"SB fence.sc":                  {threads: with("fence.sc.gpu", storeFirst, storeSecond), allowed: all(2, 2, "00")},
	"SB fence.sc, plain":           {threads: plainly(with("fence.sc.sys", storeFirst, storeSecond)), allowed: all(2, 2, "00")},
	"SB membar":                    {threads: with("membar.gl", storeFirst, storeSecond), allowed: all(2, 2, "00")},
	"SB fence.sc of the block":     {threads: with("fence.sc.cta", storeFirst, storeSecond), allowed: all(2, 2)},
	"SB fence.sc, the block, near": {threads: with("fence.sc.cta", storeFirst, storeSecond), near: 2, allowed: all(2, 2, "00")},
	"LB":                           {threads: with("", loadFirst, loadSecond), allowed: all(2, 2)},
	"LB plain":                     {threads: plainly(with("", loadFirst, loadSecond)), allowed: all(2, 2)},
	"LB fences":                    {threads: with("fence.acq_rel.gpu", loadFirst, loadSecond), allowed: all(2, 2, "11")},
	"LB release and acquire": {threads: []string{"ld.acquire.gpu $0, [x]; st.release.gpu [y], 1",
		"ld.acquire.gpu $1, [y]; st.release.gpu [x], 1"}, allowed: all(2, 2, "11")},
	"LB data": {threads: []string{"ld.relaxed.gpu $0, [x]; st.relaxed.gpu [y], $0",
		"ld.relaxed.gpu $1, [y]; st.relaxed.gpu [x], $1"}, allowed: []string{"00"}},
	"LB data, plain": {threads: []string{"ld.weak $0, [x]; st.weak [y], $0", "ld.weak $1, [y]; st.weak [x], $1"}, allowed: []string{"00"}},
	"LB data, computed": {threads: []string{"ld.relaxed.gpu $0, [x]; add.u32 %r9, $0, 1; st.relaxed.gpu [y], %r9",
		"ld.relaxed.gpu $1, [y]; st.relaxed.gpu [x], $1"}, allowed: []string{"00", "01"}},
	"LB data in one thread": {threads: []string{"ld.relaxed.gpu $0, [x]; st.relaxed.gpu [y], $0", with("", loadSecond)[0]},
		allowed: []string{"00", "10", "11"}},
	"LB control": {threads: []string{"ld.relaxed.gpu $0, [x]; setp.eq.u32 %p1, $0, 1; @%p1 st.relaxed.gpu [y], 1",
		"ld.relaxed.gpu $1, [y]; setp.eq.u32 %p1, $1, 1; @%p1 st.relaxed.gpu [x], 1"}, allowed: []string{"00"}},
	"LB address": {threads: []string{"ld.relaxed.gpu $0, [x]; mul.wide.u32 %d2, $0, 64; add.u64 %d4, %d4, %d2; st.relaxed.gpu [%d4], 1",
		"ld.relaxed.gpu $1, [y]; st.relaxed.gpu [x], $1"}, allowed: []string{"00", "01"}},
	"LB atomics": {threads: []string{"atom.relaxed.gpu.global.add.u32 $0, [x], 0; st.relaxed.gpu [y], 1",
		"atom.relaxed.gpu.global.add.u32 $1, [y], 0; st.relaxed.gpu [x], 1"}, allowed: all(2, 2)},
	"2+2W": {threads: with("", "st.relaxed.gpu [x], 1; #; st.relaxed.gpu [y], 2", "st.relaxed.gpu [y], 1; #; st.relaxed.gpu [x], 2"),
		final: "xy", allowed: []string{"x=1 y=1", "x=1 y=2", "x=2 y=1", "x=2 y=2"}},
	"2+2W fence.acq_rel": {threads: with("fence.acq_rel.gpu", "st.relaxed.gpu [x], 1; #; st.relaxed.gpu [y], 2", "st.relaxed.gpu [y], 1; #; st.relaxed.gpu [x], 2"),
		final: "xy", allowed: []string{"x=1 y=1", "x=1 y=2", "x=2 y=1", "x=2 y=2"}},
	"2+2W fence.sc": {threads: with("fence.sc.gpu", "st.relaxed.gpu [x], 1; #; st.relaxed.gpu [y], 2", "st.relaxed.gpu [y], 1; #; st.relaxed.gpu [x], 2"),
		final: "xy", allowed: []string{"x=1 y=2", "x=2 y=1", "x=2 y=2"}},
	"S": {threads: []string{"st.relaxed.gpu [x], 2; st.relaxed.gpu [y], 1", "ld.relaxed.gpu $0, [y]; st.relaxed.gpu [x], 1"},
		final: "x", allowed: []string{"0 x=1", "0 x=2", "1 x=1", "1 x=2"}},
	"S release and acquire": {threads: []string{"st.relaxed.gpu [x], 2; st.release.gpu [y], 1", "ld.acquire.gpu $0, [y]; st.relaxed.gpu [x], 1"},
		final: "x", allowed: []string{"0 x=1", "0 x=2", "1 x=1"}},
	"R": {threads: []string{"st.relaxed.gpu [x], 1; st.relaxed.gpu [y], 1", "st.relaxed.gpu [y], 2; ld.relaxed.gpu $0, [x]"},
		final: "y", allowed: []string{"0 y=1", "0 y=2", "1 y=1", "1 y=2"}},
	"R fence.sc": {threads: with("fence.sc.gpu", "st.relaxed.gpu [x], 1; #; st.relaxed.gpu [y], 1", "st.relaxed.gpu [y], 2; #; ld.relaxed.gpu $0, [x]"),
		final: "y", allowed: []string{"0 y=1", "1 y=1", "1 y=2"}},
}

// oneLocation are the tests of coherence, and of atomics.
var oneLocation = map[string]litmus{
	"CoRR":                  {threads: []string{relaxedX, "ld.relaxed.gpu $0, [x]; ld.relaxed.gpu $1, [x]"}, allowed: all(2, 2, "10")},
	"CoRR plain reads":      {threads: []string{relaxedX, "ld.weak $0, [x]; ld.weak $1, [x]"}, allowed: all(2, 2)},
	"CoRR, then plain":      {threads: []string{relaxedX, "ld.relaxed.gpu $0, [x]; ld.weak $1, [x]"}, allowed: all(2, 2, "10")},
	"CoRR scopes that miss": {threads: []string{"st.relaxed.cta [x], 1", "ld.relaxed.gpu $0, [x]; ld.relaxed.gpu $1, [x]"}, allowed: all(2, 2)},
	"CoWW": {threads: []string{"st.relaxed.gpu [x], 1; st.relaxed.gpu [x], 2", "ld.relaxed.gpu $0, [x]; ld.relaxed.gpu $1, [x]"},
		final: "x", allowed: []string{"00 x=2", "01 x=2", "02 x=2", "11 x=2", "12 x=2", "22 x=2"}},
	"CoRW": {threads: []string{"ld.relaxed.gpu $0, [x]; st.relaxed.gpu [x], 1", "st.relaxed.gpu [x], 2"},
		final: "x", allowed: []string{"0 x=1", "0 x=2", "2 x=1"}},
	"CoWR": {threads: []string{"st.relaxed.gpu [x], 1; ld.relaxed.gpu $0, [x]", "st.relaxed.gpu [x], 2"},
		final: "x", allowed: []string{"1 x=1", "1 x=2", "2 x=2"}},
	"writes in one order for all": {threads: []string{relaxedX, "st.relaxed.gpu [x], 2", "ld.relaxed.gpu $0, [x]; ld.relaxed.gpu $1, [x]", "ld.relaxed.gpu $2, [x]; ld.relaxed.gpu $3, [x]"},
		allowed: coherent()},
	"atomics add up": {threads: []string{"atom.relaxed.gpu.global.add.u32 $0, [x], 1", "atom.relaxed.gpu.global.add.u32 $1, [x], 1"},
		final: "x", allowed: []string{"01 x=2", "10 x=2"}},
	"atomics of the block": {threads: []string{"atom.relaxed.cta.global.add.u32 $0, [x], 1", "atom.relaxed.gpu.global.add.u32 $1, [x], 1"},
		final: "x", allowed: []string{"00 x=1", "01 x=2", "10 x=2"}},
	"atomics of the block, near": {threads: []string{"atom.relaxed.cta.global.add.u32 $0, [x], 1", "atom.relaxed.cta.global.add.u32 $1, [x], 1"},
		near: 2, final: "x", allowed: []string{"01 x=2", "10 x=2"}},
	"one cas wins": {threads: []string{"atom.relaxed.gpu.global.cas.b32 $0, [x], 0, 1", "atom.relaxed.gpu.global.cas.b32 $1, [x], 0, 2", "atom.relaxed.gpu.global.cas.b32 $2, [x], 0, 3"},
		final: "x", allowed: []string{"011 x=1", "202 x=2", "330 x=3"}},
	"a store beside an atomic": {threads: []string{"atom.relaxed.gpu.global.add.u32 $0, [x], 1", "st.relaxed.gpu [x], 4"},
		final: "x", allowed: []string{"0 x=4", "4 x=5"}},
}

// coherent returns what two readers may see of the writes 1 and 2, two reads
// each: some order of the writes explains all four.
func coherent() []string {
	explains := func(order, s string) bool {
		at := func(c byte) int { return strings.IndexByte(order, c) }
		return at(s[0]) <= at(s[1]) && at(s[2]) <= at(s[3])
	}
	var list []string
	for _, s := range all(4, 3) {
		if explains("012", s) || explains("021", s) {
			list = append(list, s)
		}
	}
	return list
}

// TestLitmus draws every outcome that PTX allows, and none that it forbids.
func TestLitmus(t *testing.T) {
	for _, table := range []map[string]litmus{twoThreads, oneLocation, manyThreads, patterns, barriers, wide} {
		for name, l := range table {
			t.Run(name, func(t *testing.T) { l.check(t) })
		}
	}
}
