package ptx

// valueType is one of PTX's fundamental types.
type valueType struct {
	bits  int
	class byte // p predicate, b bits, u unsigned, s signed, f float
}

var types = map[string]valueType{
	"pred": {1, 'p'},
	"b8":   {8, 'b'}, "b16": {16, 'b'}, "b32": {32, 'b'}, "b64": {64, 'b'},
	"u8": {8, 'u'}, "u16": {16, 'u'}, "u32": {32, 'u'}, "u64": {64, 'u'},
	"s8": {8, 's'}, "s16": {16, 's'}, "s32": {32, 's'}, "s64": {64, 's'},
	"f32": {32, 'f'}, "f64": {64, 'f'},
}

type opcode uint8

// The opcodes of the flat form. Everything that only reads and writes
// registers is one opcode with a function.
const (
	opALU       opcode = iota
	opBra              // pc = imm
	opBraIf            // the same if a
	opBraUnless        // the same if not a
	opGuardIf          // as opBraIf, but part of the instruction it jumps over
	opGuardUnless
	opBrx      // pc = tables[imm][a]
	opLoad     // d or vec = [a+imm]
	opStore    // [a+imm] = b or vec
	opAtom     // d = [a+imm], [a+imm] = f(d, b, c)
	opWarp     // *.sync: a meeting of the lanes named in f
	opActive   // d = activemask
	opBarrier  // bar.sync, bar.red, bar.arrive
	opFence    // membar, fence
	opCopy     // cp.async
	opCommit   // cp.async.commit_group
	opCopyWait // cp.async.wait_group, wait_all
	opClock    // d = a counter
	opYield    // nanosleep
	opNothing  // prefetch and the like
	opTrap     // trap
	opExit     // exit, and ret of an entry
)

// inst is one decoded instruction: 64 bytes, a cache line. Operands are slots
// of the thread's registers; constants and special registers have slots too.
// In finished code a slot is 32 times its number.
type inst struct {
	fn         func(r []uint64, in *inst) // for opALU
	imm        uint64                     // address offset, branch target, mask, number of a table
	vec        *vector                    // elements of {a, b, c, d}
	d, e       int32                      // destinations
	a, b, c, f int32                      // sources
	line       int32
	site       int32 // number of a memory instruction within its kernel
	op         opcode
	neg        uint8 // bit i: source i is a predicate taken as !p

	// For memory instructions.
	space space
	width uint8 // bytes per element
	bytes uint8 // total bytes, a power of two
	order order
	// The variant of opAtom, opWarp and opBarrier; for opLoad, what is 1 for
	// ld.global.nc, and mode is the number of bits to sign-extend to, 0 for
	// zero-extension.
	what uint8
	mode uint8
}

// vector holds the slots of {a, b, c, d}.
type vector struct {
	n    int
	slot [4]int32
}

// order tells how an access takes part in the memory model.
type order uint8

const (
	plain      order = 0
	strong     order = 1 << iota // volatile, relaxed, atomic
	acquire                      // and what follows stays after it
	release                      // and what precedes stays before it
	narrow                       // the scope is the block, otherwise the device or more
	reducing                     // red: its read does not count
	sequential                   // fence.sc
)

// Slots that every kernel has.
const (
	slotCarry   = 0 // CC.CF of add.cc and the like
	slotSink    = 1 // for results that are not used
	slotZero    = 2
	firstRegist = 3
)

// special is a slot that differs between threads but never changes within one.
type special struct {
	slot int32
	name string
}

// kernel is a decoded entry point.
type kernel struct {
	mod      *module
	name     string
	code     []inst
	template []uint64  // the initial registers of a thread, by slot
	specials []special // the slots in it that must still be set
	noise    []noise   // slots whose content is undefined at start
	tables   [][]int32 // targets of opBrx
	sites    int       // number of memory instructions

	paramBytes  int
	localBytes  int
	staticBytes int // shared memory declared with a size
	dynBase     int // where dynamic shared memory starts
	maxThreads  int
	reqThreads  int
}

// noise is a run of registers of one width.
type noise struct {
	from, to int32
	mask     uint64
}

// Name returns the kernel's name as in the PTX.
func (k *kernel) Name() string { return k.name }

func maskOf(bits int) uint64 { return ^uint64(0) >> (64 - uint(bits)) }

func roundUp(n, to int) int { return (n + to - 1) / to * to }
