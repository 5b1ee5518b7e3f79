package ptx

import (
	"fmt"
	"strings"

	"github.com/pando-index/pando/internal/device"
)

// FaultKind is the kind of error that a kernel made.
type FaultKind int

// The kinds of Fault.
const (
	OutOfBounds FaultKind = iota // no live allocation holds all the bytes
	Freed                        // the bytes belonged to an allocation that was freed
	Misaligned                   // the address is not a multiple of the access size
	ReadOnly                     // a write to constant or parameter memory
	Race                         // two threads accessed a word with nothing that orders them
	Deadlock                     // threads wait for others that cannot come
	BadSync                      // a barrier or *.sync used against its rules
	Trap                         // the kernel executed trap
	Runaway                      // the launch passed the limit set by Steps
	NonCoherent                  // ld.global.nc of a word that is written in the same launch
)

var kindNames = [...]string{
	"out of bounds", "use after free", "misaligned", "write to read-only memory",
	"data race", "deadlock", "bad synchronisation", "trap", "step limit passed",
	"non-coherent read of a word that is written",
}

func (k FaultKind) String() string { return kindNames[k] }

// Fault is the error of a kernel that broke a rule. It wraps
// device.ErrLaunchFailed.
type Fault struct {
	Kind   FaultKind
	Kernel string
	Line   int    // line of the PTX text
	Text   string // that line, trimmed
	Block  int
	Thread int
	Addr   uint64 // if Size is not 0: the address, generic for all but global memory
	Size   int    // bytes of the access
	Detail string
}

// Error returns everything that is known, in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ptx: %v: kernel %s, line %d", f.Kind, f.Kernel, f.Line)
	if f.Text != "" {
		fmt.Fprintf(&b, " (%s)", f.Text)
	}
	fmt.Fprintf(&b, ", block %d, thread %d", f.Block, f.Thread)
	if f.Size != 0 {
		fmt.Fprintf(&b, ": %d bytes at %#x", f.Size, f.Addr)
	}
	if f.Detail != "" {
		b.WriteString(": " + f.Detail)
	}
	return b.String()
}

// Unwrap returns device.ErrLaunchFailed.
func (f *Fault) Unwrap() error { return device.ErrLaunchFailed }

// loadError is the value that the lexer, parser and decoder panic with; Load
// and Check turn it into an error that wraps device.ErrBadKernel.
type loadError struct {
	line int
	msg  string
}

// reject stops loading: the text is not accepted.
func reject(line int, format string, args ...any) {
	panic(&loadError{line, fmt.Sprintf(format, args...)})
}

// catch turns the panic of a reject into an error that quotes its line. Other
// panics continue.
func catch(err *error, line func(int) string) {
	switch v := recover().(type) {
	case nil:
	case *loadError:
		*err = fmt.Errorf("%w: ptx: line %d (%s): %s", device.ErrBadKernel, v.line, line(v.line), v.msg)
	default:
		panic(v)
	}
}
