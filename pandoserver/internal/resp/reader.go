package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"
)

// Limits bounds the commands of a connection.
type Limits struct {
	Args   int // arguments of a command
	Bulk   int // bytes of an argument
	Buffer int // bytes of a command that is not whole yet
	early  bool
}

// Limits as redis has them: those of clients that the server knows, and those of clients
// that have not said yet who they are. Of these a command may have fewer bytes than redis takes, so that their connections
// hold 64 KiB at most, with what TLS takes: a buffer that grows is there twice.
var (
	Known   = Limits{Args: 1 << 20, Bulk: 512 << 20, Buffer: 1 << 30}
	Unknown = Limits{Args: 10, Bulk: 16 << 10, Buffer: 20 << 10, early: true}
)

const (
	longestLine = 64 << 10 // an inline command, or the line of a length

	firstBuffer = 4 << 10  // of a connection that has sent nothing yet
	usualBuffer = 64 << 10 // the most that a connection keeps between commands
	keptArgs    = 4 << 10  // the most arguments that it keeps room for
)

// ErrTooLong says that a command has more bytes than Limits.Buffer allows.
var ErrTooLong = errors.New("command exceeds the buffer of its connection")

// ProtocolError is an error in what a client has sent, in redis' words. Nothing behind it
// can be understood.
type ProtocolError string

func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// span is an argument of a command that is not whole yet: the buffer may be moved until
// it is.
type span struct{ from, to int }

// Reader takes commands out of a stream. It goes on where it stopped: no byte is looked at
// twice, whatever the sizes of reads. Each byte is moved once at most, but for a buffer
// that is too small, which doubles; so a command takes time linear in its bytes.
//
//	┌──────────────┬───────────────────────────┬─────────────┬────────┐
//	│ returned     │ command under way: parsed │ not yet     │ free   │
//	└──────────────┴───────────────────────────┴─────────────┴────────┘
//	0              begin                       at            len(buf)  cap(buf)
//
// The zero Reader has no limits set: give it some.
type Reader struct {
	Limits Limits

	buf   []byte
	begin int // of the command under way
	at    int // parsed up to here
	line  int // there is no end of a line from at up to here
	full  bool

	inside bool   // a command of several arguments
	left   int    // arguments that it lacks
	bulk   int    // length of the argument under way, or -1: that is not known yet
	spans  []span // arguments that it has, from begin on

	args [][]byte // of the commands returned since Fill
}

// Fill reads once from src. What Next has returned before is no longer valid.
func (r *Reader) Fill(src io.Reader) error {
	if r.Buffered() >= r.Limits.Buffer {
		return ErrTooLong
	}
	r.makeRoom()
	room := r.buf[len(r.buf):cap(r.buf)]
	if most := r.Limits.Buffer - len(r.buf); len(room) > most {
		room = room[:most]
	}
	n, err := src.Read(room)
	r.full = n == len(room)
	r.buf = r.buf[:len(r.buf)+n]
	if n > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// makeRoom moves the command under way to the begin of the buffer, and sees to it that
// something can be read.
func (r *Reader) makeRoom() {
	if cap(r.args) > keptArgs {
		r.args = nil
	}
	r.Release()
	rest, usual := r.buf[r.begin:], min(usualBuffer, r.Limits.Buffer)
	size := max(cap(r.buf), firstBuffer)
	switch {
	case size > usual && len(rest) < size/4: // what it was made for is done
		size = max(usual, 2*len(rest))
	case len(rest) == size, len(rest) == 0 && r.full && size < usual:
		size = min(2*size, r.Limits.Buffer)
	}
	if size != cap(r.buf) {
		r.buf = append(make([]byte, 0, size), rest...)
	} else if r.begin > 0 {
		r.buf = r.buf[:copy(r.buf[:cap(r.buf)], rest)]
	}
	r.at -= r.begin
	r.line -= r.begin
	r.begin = 0
}

// Returned returns how many arguments Next has returned since Fill or Release was called.
func (r *Reader) Returned() int { return len(r.args) }

// Release forgets them: they are no longer valid.
func (r *Reader) Release() {
	clear(r.args)
	r.args = r.args[:0]
}

// Trim gives back a large buffer, if all commands in it are done: what Next has returned is no longer valid.
func (r *Reader) Trim() {
	if r.Buffered() == 0 && cap(r.buf) > usualBuffer {
		r.buf, r.begin, r.at, r.line, r.args = nil, 0, 0, 0, nil
	}
}

// Buffered returns how many bytes of a command are here that is not whole yet.
func (r *Reader) Buffered() int { return len(r.buf) - r.begin }

// Room returns how many bytes the reader holds.
func (r *Reader) Room() int {
	return cap(r.buf) + cap(r.args)*int(unsafe.Sizeof(r.args[0])) + cap(r.spans)*int(unsafe.Sizeof(r.spans[0]))
}

// Next returns the next command that is here whole, and false if there is none. Its
// arguments are valid until Fill or Release is called, and those of a client that has not said who it is until
// Next is called again. After an error there is no next one.
func (r *Reader) Next() (args [][]byte, ok bool, err error) {
	if r.Limits.early {
		r.args = r.args[:0]
	}
	for {
		if !r.inside {
			if r.at == len(r.buf) {
				return nil, false, nil
			}
			if r.buf[r.at] != '*' {
				args, ok, err = r.inline()
				if ok && len(args) == 0 {
					continue
				}
				return args, ok, err
			}
			if ok, err = r.open(); !ok {
				return nil, false, err
			}
			continue
		}
		if ok, err = r.arguments(); !ok {
			return nil, false, err
		}
		return r.close(), true, nil
	}
}

// open reads the number of arguments.
func (r *Reader) open() (ok bool, err error) {
	line, ok, err := r.header("too big mbulk count string")
	if !ok {
		return false, err
	}
	n, isNumber := ParseInt(line[1:])
	switch {
	case !isNumber || n > int64(r.Limits.Args) && !r.Limits.early || n > math.MaxInt32:
		return false, ProtocolError("invalid multibulk length")
	case n > int64(r.Limits.Args):
		return false, ProtocolError("unauthenticated multibulk length")
	case n <= 0:
		r.begin = r.at // nothing, and no reply to it
		return true, nil
	}
	r.inside, r.left, r.bulk = true, int(n), -1
	return true, nil
}

// arguments reads what is here of the arguments of a command.
func (r *Reader) arguments() (ok bool, err error) {
	for r.left > 0 {
		if r.bulk < 0 {
			line, ok, err := r.header("too big bulk count string")
			if !ok {
				return false, err
			}
			text, isBulk := bytes.CutPrefix(line, []byte{'$'})
			if !isBulk {
				return false, ProtocolError(fmt.Sprintf("expected '$', got '%s'", first(line)))
			}
			n, isNumber := ParseInt(text)
			switch {
			case !isNumber || n < 0 || n > int64(r.Limits.Bulk) && !r.Limits.early || n > math.MaxInt32:
				return false, ProtocolError("invalid bulk length")
			case n > int64(r.Limits.Bulk):
				return false, ProtocolError("unauthenticated bulk length")
			}
			r.bulk = int(n)
		}
		if len(r.buf)-r.at < r.bulk+2 {
			return false, nil
		}
		r.spans = append(r.spans, span{r.at - r.begin, r.at - r.begin + r.bulk})
		r.at += r.bulk + 2 // what ends an argument is not looked at, as redis does not
		r.line = r.at
		r.left, r.bulk = r.left-1, -1
	}
	return true, nil
}

// first returns the first byte of a line as redis puts it into an error: if the line is
// empty, its end stands as a space there.
func first(line []byte) string {
	if len(line) == 0 || line[0] == '\n' {
		return " "
	}
	return string(line[:1])
}

// close returns the command that is whole now.
func (r *Reader) close() [][]byte {
	from := len(r.args)
	for _, s := range r.spans {
		lo, hi := r.begin+s.from, r.begin+s.to
		r.args = append(r.args, r.buf[lo:hi:hi])
	}
	if cap(r.spans) > keptArgs {
		r.spans = nil
	}
	r.spans, r.inside = r.spans[:0], false
	r.begin = r.at
	return r.args[from:len(r.args):len(r.args)]
}

// header returns a line without its end.
func (r *Reader) header(tooLong ProtocolError) (line []byte, ok bool, err error) {
	end := r.lineEnd('\r')
	switch {
	case end-r.at > longestLine, end < 0 && len(r.buf)-r.at > longestLine: // wherever reads were cut
		return nil, false, tooLong
	case end < 0 || end+1 == len(r.buf): // redis wants a byte behind it, and does not look which
		return nil, false, nil
	}
	line = r.buf[r.at:end]
	r.at = end + 2
	r.line = r.at
	return line, true, nil
}

// lineEnd returns where the next such byte is, or -1.
func (r *Reader) lineEnd(c byte) int {
	from := max(r.line, r.at)
	i := bytes.IndexByte(r.buf[from:], c)
	if i < 0 {
		r.line = len(r.buf)
		return -1
	}
	r.line = from + i
	return from + i
}

// inline returns a command that is a line of words, as a person types it.
func (r *Reader) inline() (args [][]byte, ok bool, err error) {
	end := r.lineEnd('\n')
	switch {
	case end-r.at > longestLine, end < 0 && len(r.buf)-r.at > longestLine:
		return nil, false, ProtocolError("too big inline request")
	case end < 0:
		return nil, false, nil
	}
	text := bytes.TrimSuffix(r.buf[r.at:end], []byte{'\r'})
	r.at, r.line = end+1, end+1
	r.begin = r.at
	from := len(r.args)
	if r.args, ok = split(r.args, text, from+r.Limits.Args); !ok {
		return nil, false, ProtocolError("unbalanced quotes in request")
	}
	args = r.args[from:len(r.args):len(r.args)]
	if len(args) > r.Limits.Args {
		return nil, false, ProtocolError("too big inline request")
	}
	return args, true, nil
}

// ParseInt returns the number that a text is, as redis writes it: no sign but that of a
// number below zero, and no zero before other digits.
func ParseInt(text []byte) (n int64, ok bool) {
	digits, negative := text, false
	if len(digits) > 1 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	u := uint64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0') // 19 digits do not overflow
	}
	switch {
	case negative && u <= 1<<63:
		return int64(-u), true
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}
