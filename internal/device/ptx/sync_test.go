package ptx

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// perThread is the start of kernels whose threads each own a row of 4 words
// of p0: %d0 points at it, %r0 is the thread, %r1 to %r4 the row.
const perThread = `ld.param.u64 %d0, [p0];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d1, %r0, 16;
add.u64 %d0, %d0, %d1;
ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0];
`

// rows runs a kernel on rows of 4 words, one per thread, and returns the rows.
func (r *rig) rows(ptx string, rows [][4]uint32) [][4]uint32 {
	r.Helper()
	var flat []uint32
	for _, row := range rows {
		flat = append(flat, row[:]...)
	}
	p := r.alloc32(flat)
	r.must(r.launch(r.load(ptx)("k"), one(len(rows)), p))
	out := make([][4]uint32, len(rows))
	for i, v := range r.read32(p, 4*len(rows)) {
		out[i/4][i%4] = v
	}
	return out
}

func randomRows(rng *rand.Rand, n int, below uint32) [][4]uint32 {
	rows := make([][4]uint32, n)
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = rng.Uint32N(below)
		}
	}
	return rows
}

// TestShuffles compares each mode with its meaning for segments of a width, as
// defined by the CUDA functions.
func TestShuffles(t *testing.T) {
	for seed := range uint64(20) {
		rng := numbers(t, 11, seed)
		for mode, source := range map[string]func(lane, by, width int) int{
			"up":   func(lane, by, _ int) int { return lane - by },
			"down": func(lane, by, _ int) int { return lane + by },
			"bfly": func(lane, by, _ int) int { return lane ^ by },
			"idx":  func(lane, by, width int) int { return lane/width*width + by%width },
		} {
			width := 1 << rng.IntN(6)
			rows := randomRows(rng, 64, 1<<31)
			for i := range rows {
				rows[i][1] = rng.Uint32N(32)
				rows[i][2] = uint32(32-width)<<8 | map[bool]uint32{true: 0, false: 31}[mode == "up"]
			}
			got := newRig(t, Seed(seed)).rows(program(1, perThread+
				"shfl.sync."+mode+".b32 %r5|%p1, %r1, %r2, %r3, -1;\nselp.u32 %r6, 1, 0, %p1;\nst.global.v2.u32 [%d0], {%r5, %r6};"), rows)
			for i, row := range rows {
				lane := i % 32
				from := source(lane, int(row[1]), width)
				inside := from >= lane/width*width && from < lane/width*width+width
				if mode == "bfly" { // only the upper end is guarded
					inside = from < lane/width*width+width
				}
				if !inside {
					from = lane
				}
				if want := rows[i-lane+from][0]; got[i][0] != want || got[i][1] != uint32(bit(inside)) {
					t.Fatalf("seed %d: shfl.%s by %d, width %d, lane %d: %d %d, want %d %v", seed, mode, row[1], width, lane, got[i][0], got[i][1], want, inside)
				}
			}
		}
	}
}

// TestShuffleFromAbsent tests that reading a lane that is not in the mask
// returns something, and that nothing fails.
func TestShuffleFromAbsent(t *testing.T) {
	seen := map[uint32]bool{}
	for seed := range uint64(5) {
		got := newRig(t, Seed(seed)).rows(program(1, perThread+
			"setp.ge.u32 %p1, %r0, 16;\n@%p1 exit;\nshfl.sync.idx.b32 %r5, %r0, 20, 31, 0xffff;\nst.global.u32 [%d0], %r5;"), make([][4]uint32, 32))
		seen[got[0][0]] = true
	}
	if len(seen) < 5 {
		t.Errorf("undefined values: %v", seen)
	}
}

// TestVotesByParts tests that odd and even lanes, divided by a branch, vote,
// match and reduce among themselves, in every schedule.
func TestVotesByParts(t *testing.T) {
	body := perThread + `and.b32 %r10, %r0, 1;
setp.eq.u32 %p9, %r10, 0;
selp.b32 %r11, 0x55555555, 0xaaaaaaaa, %p9;
setp.ne.u32 %p1, %r1, 0;
@%p9 bra EVEN;
add.u32 %r12, %r12, 1;
OPS
bra DONE;
EVEN:
OPS
DONE:
st.global.v4.u32 [%d0], {%r20, %r21, %r22, %r23};
`
	ops := `vote.sync.ballot.b32 %r20, %p1, %r11;
vote.sync.all.pred %p2, %p1, %r11;
vote.sync.any.pred %p3, %p1, %r11;
vote.sync.uni.pred %p4, !%p1, %r11;
selp.u32 %r21, 1, 0, %p2;
@%p3 add.u32 %r21, %r21, 2;
@%p4 add.u32 %r21, %r21, 4;
match.any.sync.b32 %r22, %r2, %r11;
match.all.sync.b32 %r23|%p5, %r3, %r11;
@%p5 add.u32 %r21, %r21, 8;
mov.b64 %d5, {%r2, %r3};
match.any.sync.b64 %r24, %d5, %r11;
xor.b32 %r22, %r22, %r24;
match.all.sync.b64 %r25, %d5, %r11;
xor.b32 %r23, %r23, %r25;
`
	for seed := range uint64(60) {
		rng := numbers(t, 12, seed)
		rows := randomRows(rng, 64, 2)
		if seed%3 == 0 {
			rows = make([][4]uint32, 64) // all equal
		}
		got := newRig(t, Seed(seed)).rows(program(1, strings.ReplaceAll(body, "OPS", ops)), rows)
		for i := range rows {
			if want := refVotes(rows, i); got[i] != want {
				t.Fatalf("seed %d, thread %d: %x, want %x", seed, i, got[i], want)
			}
		}
	}
}

func refVotes(rows [][4]uint32, i int) [4]uint32 {
	var ballot, same2, same23 uint32
	all3, all23 := true, true
	var mask uint32
	for j := i/32*32 + i%2; j < i/32*32+32; j += 2 {
		l := uint32(1) << (j % 32)
		mask |= l
		if rows[j][0] != 0 {
			ballot |= l
		}
		if rows[j][1] == rows[i][1] {
			same2 |= l
		}
		if rows[j][1] == rows[i][1] && rows[j][2] == rows[i][2] {
			same23 |= l
		}
		all3 = all3 && rows[j][2] == rows[i][2]
		all23 = all23 && same23&l != 0
	}
	v := bit(ballot == mask) + 2*bit(ballot != 0) + 4*bit(ballot == mask || ballot == 0) + 8*bit(all3)
	var m3, m23 uint32
	if all3 {
		m3 = mask
	}
	if all23 {
		m23 = mask
	}
	return [4]uint32{ballot, uint32(v), same2 ^ same23, m3 ^ m23}
}

// TestRedux folds 32 lanes in every way, and elects a leader.
func TestRedux(t *testing.T) {
	for _, op := range []string{"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"} {
		name, tyName, _ := strings.Cut(op, ".")
		rng := numbers(t, 13, 1)
		rows := randomRows(rng, 32, 1<<32-1)
		got := newRig(t).rows(program(1, perThread+"redux.sync."+op+" %r5, %r1, -1;\nelect.sync %r6|%p1, -1;\nselp.u32 %r7, 1, 0, %p1;\nbar.warp.sync -1;\nst.global.v4.u32 [%d0], {%r5, %r6, %r7, %r0};"), rows)
		want := uint64(rows[0][0])
		for _, row := range rows[1:] {
			want = refAtomic(name, types[tyName], want, uint64(row[0]), 0)
		}
		leaders := 0
		for i, row := range got {
			leaders += int(row[2])
			if row[0] != uint32(want) || row[1] != got[0][1] || (row[2] == 1) != (row[1] == uint32(i)) {
				t.Fatalf("redux.%s: %x, want %x; leader %d, thread %d says %d", op, row[0], want, row[1], i, row[2])
			}
		}
		if leaders != 1 {
			t.Errorf("%d leaders", leaders)
		}
	}
}

// TestActiveMask tests that, whatever the schedule, the lanes named have the
// same mask and can meet by it.
func TestActiveMask(t *testing.T) {
	sizes := map[int]bool{}
	for seed := range uint64(60) {
		got := newRig(t, Seed(seed)).rows(program(1, perThread+"activemask.b32 %r5;\nbar.warp.sync %r5;\nst.global.u32 [%d0], %r5;"), make([][4]uint32, 32))
		for i, row := range got {
			if row[0]>>i&1 == 0 {
				t.Fatalf("seed %d: lane %d is not in its own mask %x", seed, i, row[0])
			}
			for j := range got {
				if row[0]>>j&1 != 0 && got[j][0] != row[0] {
					t.Fatalf("seed %d: lanes %d and %d: %x and %x", seed, i, j, row[0], got[j][0])
				}
			}
			sizes[bits.OnesCount32(row[0])] = true
		}
	}
	if len(sizes) < 5 {
		t.Errorf("only masks of %v lanes came up", sizes)
	}
}

// TestSyncAcrossPlaces tests that bar.warp.sync in two branches is one
// meeting.
func TestSyncAcrossPlaces(t *testing.T) {
	body := `.shared .align 4 .b32 cell[32];
` + perThread + `mov.u32 %r9, cell;
mul.lo.u32 %r10, %r0, 4;
add.u32 %r11, %r9, %r10;
setp.lt.u32 %p1, %r0, 16;
@%p1 bra LOW;
st.shared.u32 [%r11], %r0;
bar.warp.sync -1;
bra DONE;
LOW:
bar.warp.sync -1;
ld.shared.u32 %r5, [%r11+64];
st.global.u32 [%d0], %r5;
DONE:
`
	for seed := range uint64(50) {
		got := newRig(t, Seed(seed)).rows(program(1, body), make([][4]uint32, 32))
		for i := range 16 {
			if got[i][0] != uint32(i+16) {
				t.Fatalf("seed %d: lane %d read %d", seed, i, got[i][0])
			}
		}
	}
}

// TestBarriers tests bar.red in its forms, barriers by number, a count of
// threads, and threads that have exited.
func TestBarriers(t *testing.T) {
	body := perThread + `setp.gt.u32 %p8, %r0, 69;
@%p8 bra OUT;
setp.ne.u32 %p1, %r1, 0;
bar.red.popc.u32 %r5, 0, %p1;
bar.red.and.pred %p2, 1, %p1;
barrier.cta.red.or.aligned.pred %p3, 2, !%p1;
bar.cta.sync 15;
barrier.sync.aligned 3;
barrier.sync 4;
selp.u32 %r6, 1, 0, %p2;
selp.u32 %r7, 1, 0, %p3;
st.global.v4.u32 [%d0], {%r5, %r6, %r7, %r0};
OUT:
`
	for seed := range uint64(40) {
		rng := numbers(t, 14, seed)
		rows := randomRows(rng, 96, 2)
		if seed%2 == 0 {
			for i := range rows {
				rows[i][0] = 1
			}
		}
		var count uint32
		for _, row := range rows[:70] { // the others exit
			count += row[0]
		}
		want := [3]uint32{count, uint32(bit(count == 70)), uint32(bit(count != 70))}
		for i, row := range newRig(t, Seed(seed)).rows(program(1, body), rows)[:70] {
			if [3]uint32(row[:3]) != want {
				t.Fatalf("seed %d, thread %d: %v, want %v", seed, i, row, want)
			}
		}
	}
}

// TestProducerConsumer tests that warps pass a buffer with bar.arrive and
// bar.sync, with a barrier for each direction.
func TestProducerConsumer(t *testing.T) {
	body := `.shared .align 4 .b32 cell[32];
` + perThread + `mov.u32 %r9, cell;
and.b32 %r10, %r0, 31;
mul.lo.u32 %r11, %r10, 4;
add.u32 %r11, %r11, %r9;
mov.u32 %r12, 0;
mov.u32 %r13, 0;
setp.ge.u32 %p1, %r0, 32;
@%p1 bra CONSUME;
PRODUCE:
bar.sync 1, 64;
mad.lo.u32 %r14, %r12, 100, %r10;
st.shared.u32 [%r11], %r14;
bar.arrive 2, 64;
add.u32 %r12, %r12, 1;
setp.lt.u32 %p2, %r12, 5;
@%p2 bra PRODUCE;
bra DONE;
CONSUME:
bar.arrive 1, 64;
bar.sync 2, 64;
ld.shared.u32 %r14, [%r11];
add.u32 %r13, %r13, %r14;
add.u32 %r12, %r12, 1;
setp.lt.u32 %p2, %r12, 5;
@%p2 bra CONSUME;
st.global.u32 [%d0], %r13;
DONE:
`
	for seed := range uint64(100) {
		for i, row := range newRig(t, Seed(seed)).rows(program(1, body), make([][4]uint32, 64))[32:] {
			if want := uint32(1000 + 5*i); row[0] != want {
				t.Fatalf("seed %d, thread %d: %d, want %d", seed, i, row[0], want)
			}
		}
	}
}

// TestAsyncCopies tests that bytes arrive when waited for, group by group, and
// that zeros fill what the source does not provide.
func TestAsyncCopies(t *testing.T) {
	body := `.shared .align 16 .b8 room[64];
ld.param.u64 %d0, [p0];
mov.u32 %r0, room;
mov.u64 %d1, 0x1111111111111111;
st.shared.u64 [room], %d1;
st.shared.v2.u64 [room+16], {%d1, %d1};
st.shared.v2.u64 [room+32], {%d1, %d1};
cp.async.ca.shared.global [%r0], [%d0], 8;
cp.async.commit_group;
cp.async.cg.shared.global.L2::128B [%r0+16], [%d0+16], 16;
cp.async.commit_group;
cp.async.ca.shared::cta.global [%r0+32], [%d0+32], 16, 3;
ld.shared.u64 %d2, [room];
cp.async.wait_group 1;
ld.shared.u64 %d3, [room];
ld.shared.u64 %d4, [room+16];
cp.async.wait_group 0;
ld.shared.u64 %d5, [room+24];
ld.shared.u64 %d6, [room+32];
cp.async.wait_all;
ld.shared.v2.u64 {%d7, %d8}, [room+32];
st.global.v2.u64 [%d0+64], {%d2, %d3};
st.global.v2.u64 [%d0+80], {%d4, %d5};
st.global.v2.u64 [%d0+96], {%d6, %d7};
st.global.u64 [%d0+112], %d8;
`
	r := newRig(t)
	const stale, fresh = 0x1111111111111111, 0x2222222222222222
	p := r.alloc(pack(append([]uint64{fresh, fresh, fresh, fresh, fresh, fresh}, make([]uint64, 10)...)))
	r.must(r.launch(r.load(program(1, body))("k"), one(1), p))
	got := r.read(p, 120)[64:]
	want := pack([]uint64{stale, fresh, stale, fresh, stale, 0x222222, 0})
	if string(got) != string(want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestDeadlocks tests that threads that wait for what cannot come are named.
func TestDeadlocks(t *testing.T) {
	cases := map[string]struct {
		body string
		kind FaultKind
		says []string
	}{
		"exited lane":          {"setp.lt.u32 %p1, %r0, 8;\n@%p1 exit;\nshfl.sync.idx.b32 %r5, %r1, 0, 31, -1;", Deadlock, []string{"shfl.sync", "exited"}},
		"mask without self":    {"bar.warp.sync 1;", BadSync, []string{"bar.warp.sync", "mask 0x1"}},
		"two masks":            {"setp.lt.u32 %p1, %r0, 8;\n@%p1 bra A;\nbar.warp.sync -1;\nbra B;\nA:\nbar.warp.sync 0xffff00ff;\nB:", Deadlock, []string{"threads 0-7 at line", "threads 8-31 at line"}},
		"vote against shuffle": {"setp.lt.u32 %p1, %r0, 8;\n@%p1 bra A;\nvote.sync.any.pred %p2, %p1, -1;\nbra B;\nA:\nshfl.sync.idx.b32 %r5, %r1, 0, 31, -1;\nB:", Deadlock, []string{"all threads of the block wait"}},
		"two barriers":         {"setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbarrier.sync 1;\nbra B;\nA:\nbarrier.sync 2;\nB:", Deadlock, []string{"wait"}},
		"too few":              {"setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nA:", Deadlock, []string{"bar.sync 1, 64"}},
		"divided warp":         {"setp.lt.u32 %p1, %r0, 8;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nB:", BadSync, []string{"divided"}},
		"different counts":     {"setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra B;\nA:\nbar.sync 1;\nB:", BadSync, []string{"barrier for"}},
		"different barriers":   {"setp.lt.u32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1;\nbra B;\nA:\nbar.red.popc.u32 %r5, 1, %p1;\nB:", BadSync, []string{"another instruction"}},
		"no such barrier":      {"bar.sync 16;", BadSync, []string{"barrier 16"}},
		"no such count":        {"bar.sync 0, 33;", BadSync, []string{"33 threads"}},
		"trap":                 {"trap;", Trap, []string{"trap"}},
		"branch table":         {"T: .branchtargets A;\nbrx.idx %r0, T;\nA:", OutOfBounds, []string{"branch targets"}},
	}
	for name, c := range cases {
		for seed := range uint64(20) {
			r := newRig(t, Seed(seed))
			threads := 64
			if name == "two masks" || strings.HasPrefix(name, "vote") {
				threads = 32
			}
			p := r.alloc(make([]byte, 16*threads))
			err := r.launch(r.load(program(1, perThread+c.body))("k"), one(threads), p)
			if !isKind(err, c.kind) {
				t.Fatalf("%s, seed %d: %v", name, seed, err)
			}
			for _, s := range append(c.says, "kernel k", "line ", "block 0") {
				if !strings.Contains(err.Error(), s) {
					t.Fatalf("%s, seed %d: %v does not say %q", name, seed, err, s)
				}
			}
		}
	}
}

// TestPartOfWarp tests that a mask that names lanes beyond the end of the
// block can never be complete, and that one that names existing lanes can.
func TestPartOfWarp(t *testing.T) {
	for mask, ok := range map[string]bool{"0xffff": true, "-1": false} {
		r := newRig(t)
		p := r.alloc(make([]byte, 16*16))
		err := r.launch(r.load(program(1, perThread+"bar.warp.sync "+mask+";\nbar.sync 0;\nbar.sync 1, 32;"))("k"), one(16), p)
		if ok && err != nil || !ok && !isKind(err, Deadlock) {
			t.Errorf("mask %s: %v", mask, err)
		}
	}
}

// TestSpinning tests that a spin lock works, because every thread runs now and
// then, and that one that is never released is stopped by Steps.
func TestSpinning(t *testing.T) {
	body := `ld.param.u64 %d0, [p0];
AGAIN:
atom.acquire.gpu.global.cas.b32 %r1, [%d0], 0, 1;
setp.ne.u32 %p1, %r1, 0;
@%p1 nanosleep.u32 20;
@%p1 bra AGAIN;
ld.global.u32 %r2, [%d0+4];
add.u32 %r2, %r2, 1;
st.global.u32 [%d0+4], %r2;
RELEASE
`
	for seed := range uint64(50) {
		r := newRig(t, Seed(seed), Steps(1<<22))
		free := "atom.release.gpu.global.exch.b32 %r1, [%d0], 0;"
		p := r.alloc32([]uint32{0, 0})
		g := device.Grid{Blocks: 3, Threads: 20}
		if err := r.launch(r.load(program(1, strings.Replace(body, "RELEASE", free, 1)))("k"), g, p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := r.read32(p, 2)[1]; got != 60 {
			t.Fatalf("seed %d: counted %d", seed, got)
		}
	}
	r := newRig(t, Steps(10000))
	err := r.launch(r.load(program(1, strings.Replace(body, "RELEASE", "", 1)))("k"), one(2), r.alloc32([]uint32{0, 0}))
	if !isKind(err, Runaway) {
		t.Errorf("a lock never released: %v", err)
	}
	var f *Fault
	if errors.As(err, &f) && f.Kind.String() != "step limit passed" {
		t.Errorf("kind %v", f.Kind)
	}
}
