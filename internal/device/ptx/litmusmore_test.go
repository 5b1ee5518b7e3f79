package ptx

import "testing"

// manyThreads are the tests of three and four threads.
var manyThreads = map[string]litmus{
	"IRIW": {threads: with("", relaxedX, relaxedY, "ld.relaxed.gpu $0, [x]; ld.relaxed.gpu $1, [y]", "ld.relaxed.gpu $2, [y]; ld.relaxed.gpu $3, [x]"),
		allowed: all(4, 2)},
	"IRIW acquire": {threads: with("", "st.release.gpu [x], 1", "st.release.gpu [y], 1", "ld.acquire.gpu $0, [x]; ld.acquire.gpu $1, [y]", "ld.acquire.gpu $2, [y]; ld.acquire.gpu $3, [x]"),
		allowed: all(4, 2)},
	"IRIW fence.sc": {threads: with("fence.sc.gpu", relaxedX, relaxedY, "ld.relaxed.gpu $0, [x]; #; ld.relaxed.gpu $1, [y]", "ld.relaxed.gpu $2, [y]; #; ld.relaxed.gpu $3, [x]"),
		allowed: all(4, 2, "1010")},
	"ISA2": {threads: []string{"st.relaxed.gpu [x], 1; st.relaxed.gpu [y], 1", "ld.relaxed.gpu $0, [y]; st.relaxed.gpu [z], 1", "ld.relaxed.gpu $1, [z]; ld.relaxed.gpu $2, [x]"},
		allowed: all(3, 2)},
	"ISA2 release and acquire": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "ld.acquire.gpu $0, [y]; st.release.gpu [z], 1", "ld.acquire.gpu $1, [z]; ld.weak $2, [x]"},
		allowed: all(3, 2, "110")},
	"WRC": {threads: []string{relaxedX, "ld.relaxed.gpu $0, [x]; st.relaxed.gpu [y], 1", "ld.relaxed.gpu $1, [y]; ld.relaxed.gpu $2, [x]"},
		allowed: all(3, 2)},
	"WRC release and acquire": {threads: []string{relaxedX, "ld.relaxed.gpu $0, [x]; st.release.gpu [y], 1", "ld.acquire.gpu $1, [y]; ld.relaxed.gpu $2, [x]"},
		allowed: all(3, 2, "110")},
	"WRC plain write": {threads: []string{"st.weak [x], 1", "ld.relaxed.gpu $0, [x]; st.release.gpu [y], 1", "ld.acquire.gpu $1, [y]; ld.relaxed.gpu $2, [x]"},
		allowed: all(3, 2)},
	// Threads 0 and 1 are in one block, 2 and 3 in another: the chain of scopes
	// is .cta, then .gpu.
	"ISA2 by scopes": {near: 2, threads: []string{"st.weak [x], 1; st.release.cta [y], 1", "ld.acquire.cta $0, [y]; st.release.gpu [z], 1", "ld.acquire.gpu $1, [z]; ld.weak $2, [x]", "mov.u32 %r9, 0"},
		allowed: all(3, 2, "110")},
	"ISA2 by scopes that miss": {near: 2, threads: []string{"st.weak [x], 1; st.release.cta [y], 1", "ld.acquire.cta $0, [y]; st.release.cta [z], 1", "ld.acquire.gpu $1, [z]; ld.weak $2, [x]", "mov.u32 %r9, 0"},
		allowed: all(3, 2)},
}

// patterns are the tests of release and acquire patterns, and of sequences of
// atomics between them.
var patterns = map[string]litmus{
	"release, then relaxed": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1; st.relaxed.gpu [y], 2", "ld.acquire.gpu $0, [y]; ld.weak $1, [x]"},
		allowed: []string{"00", "01", "11", "21"}},
	"relaxed, then acquire": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "st.relaxed.gpu [y], 2", "ld.relaxed.gpu $0, [y]; ld.acquire.gpu $1, [y]; ld.weak $2, [x]"},
		allowed: []string{"000", "001", "011", "020", "021", "111", "121", "211", "220", "221"}},
	"after the release": {threads: []string{"st.release.gpu [y], 1; st.relaxed.gpu [x], 1; st.relaxed.gpu [z], 1", "ld.acquire.gpu $0, [y]; ld.relaxed.gpu $1, [z]; mul.wide.u32 %d2, $1, 0; add.u64 %d4, %d1, %d2; ld.relaxed.gpu $2, [%d4]"},
		allowed: all(3, 2)},
	"after the releasing red": {threads: []string{"red.release.gpu.global.add.u32 [y], 1; st.relaxed.gpu [x], 1; st.relaxed.gpu [z], 1", "ld.acquire.gpu $0, [y]; ld.relaxed.gpu $1, [z]; mul.wide.u32 %d2, $1, 0; add.u64 %d4, %d1, %d2; ld.relaxed.gpu $2, [%d4]"},
		allowed: all(3, 2)},
	"before the acquire": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "ld.weak $1, [x]; ld.acquire.gpu $0, [y]"},
		allowed: all(2, 2)},
	"relaxed, then acquire elsewhere": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "ld.relaxed.gpu $0, [y]; ld.acquire.gpu $1, [z]; ld.weak $2, [x]"},
		allowed: []string{"000", "001", "100", "101"}},
	"fence, two flags": {threads: []string{"st.weak [x], 1; fence.acq_rel.gpu; st.relaxed.gpu [y], 1; st.relaxed.gpu [z], 1", "ld.relaxed.gpu $0, [z]; fence.acq_rel.gpu; ld.weak $1, [x]; ld.relaxed.gpu $2, [y]"},
		allowed: []string{"000", "001", "010", "011", "110", "111"}},
	"release sequence": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "atom.relaxed.gpu.global.add.u32 $0, [y], 4", "ld.acquire.gpu $1, [y]; ld.weak $2, [x]"},
		allowed: []string{"000", "001", "011", "040", "041", "100", "101", "111", "151"}},
	"release sequence, two atomics": {threads: []string{"st.weak [x], 1; red.release.gpu.global.add.u32 [y], 1", "atom.relaxed.gpu.global.add.u32 $0, [y], 1", "atom.relaxed.gpu.global.add.u32 $1, [y], 1", "ld.acquire.gpu $2, [y]; setp.eq.u32 %p1, $2, 3; mov.u32 $3, 1; @%p1 ld.weak $3, [x]"},
		allowed: chains()},
	"a store breaks the sequence": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "ld.relaxed.gpu $0, [y]; setp.eq.u32 %p1, $0, 1; @%p1 st.relaxed.gpu [y], 2", "ld.acquire.gpu $1, [y]; ld.weak $2, [x]"},
		allowed: []string{"000", "001", "011", "100", "101", "111", "120", "121"}},
	"red acquires nothing": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "red.relaxed.gpu.global.add.u32 [y], 1; fence.acq_rel.gpu; ld.weak $0, [x]"},
		final: "y", allowed: []string{"0 y=1", "0 y=2", "1 y=1", "1 y=2"}},
	"atom acquires": {threads: []string{"st.weak [x], 1; st.release.gpu [y], 1", "atom.relaxed.gpu.global.add.u32 $0, [y], 1; fence.acq_rel.gpu; ld.weak $1, [x]"},
		final: "y", allowed: []string{"00 y=1", "01 y=1", "11 y=2"}},
	"exch and cas": {threads: []string{"st.weak [x], 1; atom.release.gpu.global.exch.b32 %r9, [y], 1", "atom.acquire.gpu.global.cas.b32 $0, [y], 1, 2; ld.weak $1, [x]"},
		allowed: []string{"00", "01", "11"}},
	"cas without order": {threads: []string{"st.weak [x], 1; atom.release.gpu.global.exch.b32 %r9, [y], 1", "atom.global.cas.b32 $0, [y], 1, 2; ld.weak $1, [x]"},
		allowed: all(2, 2)},
	"volatile has no order": {threads: []string{"st.weak [x], 1; st.volatile.global.u32 [y], 1", "ld.volatile.global.u32 $0, [y]; ld.weak $1, [x]"},
		allowed: all(2, 2)},
}

// chains returns what the atomics of two threads and a reader may see of a
// counter that a third one raises, too: 0 1 2 or any other order, and whoever
// reads 3 sees what was released.
func chains() []string {
	var list []string
	for _, two := range []string{"01", "02", "10", "12", "20", "21"} {
		for _, read := range []string{"01", "11", "21", "31"} {
			list = append(list, two+read)
		}
	}
	return list
}

// barriers are the tests of threads that meet.
var barriers = map[string]litmus{
	"bar.sync": {near: 2, threads: []string{"st.weak [x], 1; barrier.sync 0; ld.weak $0, [y]", "st.weak [y], 1; barrier.sync 0; ld.weak $1, [x]"},
		allowed: []string{"11"}},
	"bar.sync, before": {near: 2, threads: []string{"ld.weak $0, [y]; barrier.sync 0; st.weak [x], 1", "ld.weak $1, [x]; barrier.sync 0; st.weak [y], 1"},
		allowed: []string{"00"}},
	"bar.warp.sync": {near: 2, threads: []string{"st.weak [x], 1; bar.warp.sync 3; ld.weak $0, [y]", "st.weak [y], 1; bar.warp.sync 3; ld.weak $1, [x]"},
		allowed: []string{"11"}},
	"a vote orders nothing": {near: 2, threads: []string{"st.weak [x], 1; vote.sync.any.pred %p1, %p2, 3; ld.weak $0, [y]", "st.weak [y], 1; vote.sync.any.pred %p1, %p2, 3; ld.weak $1, [x]"},
		allowed: all(2, 2)},
	"a barrier passes on what was acquired": {near: 2, threads: []string{
		"ld.acquire.gpu $0, [y]; barrier.sync 0", "barrier.sync 0; ld.weak $1, [x]",
		"st.weak [x], 1; st.release.gpu [y], 1", "mov.u32 %r9, 0"},
		allowed: all(2, 2, "10")},
	"a barrier passes on what was read": {near: 2, threads: []string{
		"ld.relaxed.gpu $0, [x]; barrier.sync 0", "barrier.sync 0; ld.relaxed.gpu $1, [x]",
		"st.relaxed.gpu [x], 1", "mov.u32 %r9, 0"},
		allowed: all(2, 2, "10")},
	"a barrier is no acquire": {near: 2, threads: []string{
		"ld.relaxed.gpu $0, [y]; barrier.sync 0", "barrier.sync 0; ld.weak $1, [x]",
		"st.weak [x], 1; st.release.gpu [y], 1", "mov.u32 %r9, 0"},
		allowed: all(2, 2)},
}

// wide are the tests of accesses of more than one word.
var wide = map[string]litmus{
	"64 bits are whole": {threads: []string{"mov.b64 %d5, 0x100000001; st.relaxed.gpu.global.u64 [x], %d5", "ld.relaxed.gpu.global.u64 %d6, [x]; mov.b64 {$0, $1}, %d6"},
		allowed: []string{"00", "11"}},
	"64 bits, plain write": {threads: []string{"mov.b64 %d5, 0x100000001; st.weak.global.u64 [x], %d5", "ld.relaxed.gpu.global.u64 %d6, [x]; mov.b64 {$0, $1}, %d6"},
		allowed: all(2, 2)},
	"64 bits, plain read": {threads: []string{"mov.b64 %d5, 0x100000001; st.relaxed.gpu.global.u64 [x], %d5", "ld.weak.global.u64 %d6, [x]; mov.b64 {$0, $1}, %d6"},
		allowed: all(2, 2)},
	"64 bits, the scope misses": {threads: []string{"mov.b64 %d5, 0x100000001; st.relaxed.cta.global.u64 [x], %d5", "ld.relaxed.gpu.global.u64 %d6, [x]; mov.b64 {$0, $1}, %d6"},
		allowed: all(2, 2)},
	"64 bits, atomics": {threads: []string{"mov.b64 %d5, 0x100000001; atom.relaxed.gpu.global.add.u64 %d7, [x], %d5; mov.b64 {$0, $1}, %d7", "mov.b64 %d5, 0x200000002; atom.relaxed.gpu.global.exch.b64 %d7, [x], %d5; mov.b64 {$2, $3}, %d7"},
		final: "x", allowed: []string{"0011 x=2", "2200 x=3"}},
	"v2 tears": {threads: []string{"mov.u32 %r8, 1; st.relaxed.gpu.global.v2.u32 [x], {%r8, %r8}", "ld.relaxed.gpu.global.v2.u32 {$0, $1}, [x]"},
		allowed: all(2, 2)},
	"v4 tears": {threads: []string{"mov.u32 %r8, 1; st.weak.global.v4.u32 [x], {%r8, %r8, %r8, %r8}", "ld.weak.global.v4.u32 {$0, $1, $2, $3}, [x]"},
		allowed: all(4, 2)},
	"v2 after a barrier": {near: 2, threads: []string{"mov.u32 %r8, 1; st.weak.global.v2.u32 [x], {%r8, %r8}; barrier.sync 0", "barrier.sync 0; ld.weak.global.v2.u32 {$0, $1}, [x]"},
		allowed: []string{"11"}},
	"halves of a word": {threads: []string{"mov.u16 %h1, 1; st.relaxed.gpu.global.u16 [x], %h1", "ld.relaxed.gpu.global.u16 %h2, [x]; cvt.u32.u16 $0, %h2; ld.relaxed.gpu.global.u16 %h2, [x]; cvt.u32.u16 $1, %h2"},
		allowed: all(2, 2, "10")},
}

// TestScopes tests release and acquire at each scope: threads of different
// blocks synchronize only if both sides say .gpu or .sys.
func TestScopes(t *testing.T) {
	for _, out := range []string{"cta", "cluster", "gpu", "sys"} {
		for _, in := range []string{"cta", "cluster", "gpu", "sys"} {
			for _, near := range []int{1, 2} {
				l := litmus{threads: []string{"st.weak [x], 1; st.release." + out + " [y], 1", "ld.acquire." + in + " $0, [y]; ld.weak $1, [x]"}, near: near}
				l.allowed = all(2, 2)
				if far := out[0] != 'c' && in[0] != 'c'; far || near == 2 {
					l.allowed = all(2, 2, "10")
				}
				t.Run(out+" to "+in+map[int]string{1: " of another block", 2: ""}[near], func(t *testing.T) { l.check(t) })
			}
		}
	}
}
