// Package ptx interprets the PTX that clang makes of CUDA C++, as a device
// like any other: every kernel can be tested wherever Go runs, and every rule
// that hardware only punishes now and then is checked on every access.
//
//	d := ptx.New(ptx.Seed(7))
//	m, err := d.Load(text) // unknown instruction, type or modifier: an error here, with its line
//
// # Memory
//
// Each space is kept apart and checked for bounds and natural alignment, v2
// and v4 as a whole. Generic addresses reach them through windows:
//
//	0x0100_0000 shared   0x0200_0000 local   0x0300_0000 const   0x0400_0000 param
//	0x100_0000_0000 and up: global, the same in both forms
//
// No space has anything at address 0. Global addresses are never given out
// twice and allocations have gaps between them, so a freed or stray pointer
// always shows. Shared and local memory are checked as a whole, not variable
// by variable. What is undefined at the start (allocations, shared and local
// memory, registers) is noise that the seed decides. Constant and parameter
// memory cannot be written.
//
// # Schedule
//
// Every thread has its own program counter. The seed decides which warp runs,
// which of its lanes, alone or those at the same place together, and for how
// many instructions; each launch draws how fine that is, and how many blocks
// (1 to 8) are under way. Blocks start in any order. A *.sync waits for exactly
// the lanes in its mask, by instruction and mask, not by place; a lane that
// has exited, or never was, makes it a deadlock, though hardware may forgive.
// bar.sync counts threads that live; a count given with it counts arrivals. An
// aligned barrier that finds its warp divided is an error. Reading a lane that
// is not in the mask gives noise. activemask is any set of lanes that really
// stand there. Steps stops a launch that only spins.
//
// Streams queue their work. It runs when someone waits, now and then before,
// in an order between streams that only events restrain: a missing Wait, a host
// buffer used too early, a Free too soon, all show under some seed. A failed
// launch drops what follows in its stream until Synchronize has told of it.
//
// # Races
//
// Two threads touch the same byte of global or shared memory in one launch, at
// least one by a plain write, and nothing orders them: that is a race, reported
// with both lines and threads, whether or not this schedule was harmed by it.
// Order comes from
//
//   - a barrier of the block, or of some of its threads, for those who wait;
//   - a *.sync, for the lanes of its mask (PTX promises this of bar.warp.sync
//     alone; here shuffles and votes count too);
//   - membar or fence, then an atomic write of a word, then an atomic read of
//     that word, then membar, fence or a meeting; .release and .acquire bring
//     their fence with them. Knowledge goes on from thread to thread so.
//
// Atomics, volatile, relaxed, acquire and release accesses are atomic here;
// with each other, and with plain reads, they never race. Where this is
// lenient: scopes (.cta, .gpu) are not told apart; any atomic write hands on;
// what threads did that exited is before the next bar.sync; of a word, the last
// plain write and the last two other accesses are remembered, so a race with
// an older one needs another seed.
//
// # Arithmetic
//
// Bit for bit what PTX says, with division by zero all ones and NaN as the
// hardware's own. The .approx forms give the rounded result, which hardware may
// miss by a little. Clocks count instructions, so runs repeat. Calls of device
// functions are put in line; recursion and calls by pointer are rejected, as
// are textures, f16, clusters and the bulk copies of sm_90.
package ptx
