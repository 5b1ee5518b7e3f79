// Package ptx interprets the PTX that clang makes of CUDA C++, as a device
// like any other: every kernel can be tested wherever Go runs, and every rule
// whose violation hardware punishes only now and then is checked on every
// access.
//
//	d := ptx.New(ptx.Seed(7))
//	m, err := d.Load(text) // unknown instruction, type or modifier: an error here, with its line
//
// # Memory
//
// Each space is separate and checked for bounds and natural alignment, v2 and
// v4 accesses as a whole. Generic addresses reach them through windows:
//
//	0x0100_0000 shared   0x0200_0000 local   0x0300_0000 const   0x0400_0000 param
//	0x100_0000_0000 and up: global, the same in both forms
//
// No space has anything at address 0. Global addresses are never reused and
// allocations have gaps between them, so a freed or stray pointer is always
// detected. Of a range that grows, only the bytes that are there yet can be
// accessed. Shared and local memory are checked as a whole, not variable by
// variable. Memory that is undefined at the start (allocations, shared and
// local memory, registers) is noise that depends on the seed. Constant and
// parameter memory cannot be written.
//
// # Schedule
//
// Every thread has its own program counter. The seed decides which warp runs,
// which of its lanes, alone or together with those at the same instruction,
// and for how many instructions. Each launch draws at random how fine the
// interleaving is, and how many blocks (1 to 8) run at a time. Blocks start in
// any order. A *.sync waits for exactly the lanes in its mask, which must
// agree on the instruction and the mask, not on its position; a lane that has
// exited, or never existed, makes it a deadlock, though hardware may forgive
// that. bar.sync counts live threads; if it has a count, it counts arrivals.
// An aligned barrier that finds its warp divided is an error. Reading a lane
// that is not in the mask returns noise. activemask is any set of lanes that
// are really at that instruction. Steps stops a launch that only spins.
//
// Streams queue their work. It runs when the host waits, and now and then before, in an order
// between streams that only events constrain: a missing Wait, a host buffer used too early, a
// Free too soon, all show under some seed. A graph's operations are queued one by one when it
// is started, so work of other streams comes in between. After a failed launch its stream drops
// all work until Synchronize has reported it.
//
// # Races
//
// A race is two accesses by different threads to the same byte of global or
// shared memory in one launch, at least one of them a plain write, with
// nothing that orders them. It is reported with both lines and threads,
// whether or not this schedule was harmed by it. Order comes from
//
//   - a barrier of the block, or of some of its threads, for the threads that wait;
//   - a *.sync, for the lanes of its mask (PTX promises this of bar.warp.sync
//     alone; here shuffles and votes count too);
//   - membar or fence, then an atomic write of a word, then an atomic read of
//     that word, then membar, fence or a meeting; .release and .acquire bring
//     their fence with them. Order is transitive from thread to thread.
//
// Atomics, volatile, relaxed, acquire and release accesses are atomic here;
// they never race with each other or with plain reads. The check is lenient in some ways, unless
// a mode below is on: scopes (.cta, .gpu) are not distinguished; any atomic write passes order
// on; the accesses of exited threads come before the next bar.sync; and for each word only the
// last plain write and the last two other accesses are remembered, so a race with an older one
// needs another seed.
//
// # Memory as PTX has it
//
// The above is for kernels whose blocks do not talk to each other: atomics have
// one order for all, so a missing fence never shows. For others there are
// modes, off by default, of which each runs launches on a model of PTX's
// memory instead (model.go):
//
//   - Weak: reads return any write that PTX allows, by histories of each word
//     and what each thread knows of them; loads are late, wide accesses tear;
//   - Strict: races by the letter, a plain read beside a strong write and scopes
//     that are too narrow included;
//   - Concurrent: kernels of several streams at once;
//   - PCT and FreezeHolders: schedules that find what random ones rarely do.
//
// Under each of them scopes count, ld.global.nc of a word that is written in the
// same launch is a fault, shuffles and votes order nothing, and threads that
// spin forever are reported as a deadlock, with what they spin on, who wrote it
// last and who holds it. docs/memory.md has the details.
//
// # Arithmetic
//
// Arithmetic is bit for bit what PTX specifies; division by zero results in
// all ones, and NaN is the hardware's own. The .approx forms return the
// correctly rounded result, from which hardware may differ a little. Clocks
// count instructions, so runs are repeatable. Calls of device functions are
// inlined; recursion and calls by pointer are rejected, as are textures, f16,
// clusters and the bulk copies of sm_90.
package ptx
