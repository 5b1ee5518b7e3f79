package machine

import (
	"crypto/sha256"
	"fmt"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// MostEntry is about the most bytes of an entry: raft's leaders lose their lead over larger ones. A batch
// that has more is parts, and an entry that commits them.
const MostEntry = 256 << 10

// MostResult is about the most bytes of a result, which must fit in an answer; a single value may have more. MostBatch is the most bytes
// of a batch.
const (
	MostResult = 22 << 20
	MostBatch  = mostStaged / 2
)

// kind is what an entry asks for.
type kind byte

const (
	opening    kind = iota + 1 // a session
	batching                   // changes
	staging                    // to keep a part of a batch
	committing                 // the changes of a batch whose parts are kept
	clearing                   // to delete all keys between two
	splitting                  // to give the keys from one on to another range
	lastKind   = splitting
)

// Known returns an error if an entry is of a kind that this program does not know.
func Known(entry []byte) error {
	if len(entry) > 0 && (entry[0] == 0 || kind(entry[0]) > lastKind) {
		return fmt.Errorf("an entry has kind %d, which this program does not know: a newer one does", entry[0])
	}
	return nil
}

// Status is how an entry went.
type Status byte

const (
	Done      Status = iota + 1
	Differs          // a key does not have the value that a change relies on; nothing was done
	Outside          // not all keys are in the range; nothing was done
	NoSession        // the session is not there any more; nothing was done now, perhaps it was before
	Busy             // a session has too much under way; nothing was done
	Refused          // it makes no sense; nothing was done
	TooLong          // it would have a result of more than MostResult bytes; nothing was done
)

// Call says whose entry it is, so that one that comes twice is applied once. Session is the result of
// an entry by Open; Seq numbers what is done in it, from 1; all below Acked has been answered and
// will not come again.
type Call struct{ Session, Seq, Acked uint64 }

func (c Call) entry(k kind) []byte {
	return packet.Uint(packet.Uint(packet.Uint([]byte{byte(k)}, c.Session), c.Seq), c.Acked)
}

// Open returns an entry that opens a session.
func Open() []byte { return Call{}.entry(opening) }

// Batch returns the entry of a batch.
func (c Call) Batch(b *Batch) []byte { return append(c.entry(batching), b.data...) }

// Parts returns the entries of a batch that is too large for one: parts, in any order, and what
// is to follow when all of them are there.
func (c Call) Parts(b *Batch) (parts [][]byte, commit []byte) {
	for lo := 0; lo < len(b.data); lo += MostEntry {
		part := packet.Uint(c.entry(staging), uint64(len(parts)))
		parts = append(parts, append(part, b.data[lo:min(lo+MostEntry, len(b.data))]...))
	}
	return parts, packet.Uint(c.entry(committing), uint64(len(parts)))
}

// Clear returns an entry that deletes the keys of a span.
func (c Call) Clear(s Span) []byte { return s.append(c.entry(clearing)) }

// Split returns an entry that gives the keys from one on to a new range with replicas on servers.
func (c Call) Split(key string, to uint64, servers []string) []byte {
	b := packet.Uint(packet.Bytes(c.entry(splitting), key), to)
	return appendTexts(b, servers)
}

// Bounds are the keys of a range: those from Lo on, below Hi. No Hi is no end.
type Bounds struct{ Lo, Hi string }

// Contains reports whether a key is within bounds.
func (b Bounds) Contains(key string) bool { return key >= b.Lo && (b.Hi == "" || key < b.Hi) }

// Includes reports whether all keys of other bounds are within these.
func (b Bounds) Includes(o Bounds) bool {
	return o.Lo >= b.Lo && (b.Hi == "" || o.Hi != "" && o.Hi <= b.Hi)
}

// Overlaps reports whether a key may be in both.
func (b Bounds) Overlaps(o Bounds) bool {
	return (o.Hi == "" || b.Lo < o.Hi) && (b.Hi == "" || o.Lo < b.Hi)
}

func (b Bounds) append(to []byte) []byte { return packet.Bytes(packet.Bytes(to, b.Lo), b.Hi) }

func readBounds(r *packet.Reader) Bounds { return Bounds{r.String(), r.String()} }

// Span is keys between two, each of which may be left out.
type Span struct {
	Lo, Hi       string
	After        bool // Lo is not one of them
	Before, With bool // those below Hi; Hi, too. Without both there is no end
}

// Within returns the keys of a span that are within bounds, too; and whether there may be any.
func (s Span) Within(b Bounds) (Span, bool) {
	if s.Lo < b.Lo {
		s.Lo, s.After = b.Lo, false
	}
	if b.Hi != "" && (!s.Before && !s.With || s.Hi >= b.Hi) {
		s.Hi, s.Before, s.With = b.Hi, true, false
	}
	return s, !(s.Before || s.With) || s.Lo < s.Hi || s.Lo == s.Hi && s.With && !s.After
}

// inside reports whether all keys of a span are within bounds.
func (s Span) inside(b Bounds) bool {
	return s.Lo >= b.Lo && (b.Hi == "" || s.Before && s.Hi <= b.Hi || s.With && s.Hi < b.Hi)
}

func (s Span) append(b []byte) []byte {
	b = packet.Bytes(packet.Bytes(b, s.Lo), s.Hi)
	return packet.Bool(packet.Bool(packet.Bool(b, s.After), s.Before), s.With)
}

// AppendTo appends the span to a message, and ReadSpan reads it.
func (s Span) AppendTo(b []byte) []byte { return s.append(b) }

// ReadSpan reads a span.
func ReadSpan(r *packet.Reader) Span {
	return Span{r.String(), r.String(), r.Bool(), r.Bool(), r.Bool()}
}

// operations of a batch
const (
	opGet byte = iota
	opSet
	opDelete
	opIs    // the key must have a value of this sum
	opIsNot // the key must not be there
	lastOp  = opIsNot
)

// What a batch reports, which is its first byte.
const (
	reportNothing byte = iota
	reportAll
	reportPresence
	lastReport = reportPresence
)

// Batch is changes that are made together. Reporting, its result says which keys were there and what values they had.
type Batch struct {
	data []byte
	n    int
}

// NewBatch returns a batch without changes.
func NewBatch(reporting bool) *Batch { return &Batch{data: packet.Bool(nil, reporting)} }

// PresenceOnly makes a batch that reports leave the values out.
func (b *Batch) PresenceOnly() { b.data[0] = reportPresence }

// Size returns the bytes of the batch.
func (b *Batch) Size() int { return len(b.data) }

// Len returns the number of operations.
func (b *Batch) Len() int { return b.n }

func (b *Batch) add(op byte, key string) {
	b.data = packet.Bytes(append(b.data, op), key)
	b.n++
}

// Get makes the batch report a key.
func (b *Batch) Get(key string) { b.add(opGet, key) }

// Set sets the value of a key.
func (b *Batch) Set(key string, val []byte) {
	b.add(opSet, key)
	b.data = packet.Bytes(b.data, val)
}

// Delete deletes a key.
func (b *Batch) Delete(key string) { b.add(opDelete, key) }

// If lets the batch do something only if a key has a value, or has none. It reports nothing.
func (b *Batch) If(key string, val []byte, had bool) {
	if !had {
		b.add(opIsNot, key)
		return
	}
	b.add(opIs, key)
	sum := sha256.Sum256(val)
	b.data = append(b.data, sum[:]...)
}

// Result is what an entry returned.
type Result struct {
	Status Status
	ID     uint64 // of a session that was opened
	N      int    // keys deleted by Clear
	Found  []bool // of a batch that reports
	Vals   [][]byte
	Bounds Bounds // of the range, if Outside
	Born   []Born // and to whom it has given keys
}

// Born is a range that another has given keys to.
type Born struct {
	ID      uint64
	Bounds  Bounds
	Servers []string
}

func (b *Born) append(to []byte) []byte {
	return appendTexts(b.Bounds.append(packet.Uint(to, b.ID)), b.Servers)
}

func readBorn(r *packet.Reader) Born {
	return Born{r.Uint(), readBounds(r), readTexts(r)}
}

func appendTexts(b []byte, texts []string) []byte {
	b = packet.Uint(b, uint64(len(texts)))
	for _, s := range texts {
		b = packet.Bytes(b, s)
	}
	return b
}

func readTexts(r *packet.Reader) (texts []string) {
	for range r.Count() {
		texts = append(texts, r.String())
	}
	return texts
}

// ReadResult reads what Apply has returned.
func ReadResult(b []byte) (res Result, err error) {
	r := packet.Read(b)
	res.Status = Status(r.Byte())
	switch res.Status {
	case Done:
		res.ID, res.N = r.Uint(), int(r.Uint())
		n := r.Count()
		for range n {
			res.Found = append(res.Found, r.Bool())
			res.Vals = append(res.Vals, nil)
			if last := len(res.Found) - 1; res.Found[last] {
				res.Vals[last] = r.Bytes()
			}
		}
	case Outside:
		res.Bounds = readBounds(r)
		for range r.Count() {
			res.Born = append(res.Born, readBorn(r))
		}
	}
	return res, r.Err()
}

// done returns the bytes of a result of Done.
func done(id uint64, n int) []byte {
	return packet.Uint(packet.Uint(packet.Uint([]byte{byte(Done)}, id), uint64(n)), 0)
}

// session is what a range knows of a client. It is part of the state.
type session struct {
	last  uint64 // index of its last entry: the one that is idle longest is forgotten first
	acked uint64
	done  map[uint64][]byte            // results of what was not acked yet
	parts map[uint64]map[uint64][]byte // of batches that were not committed yet

	kept, staged int // bytes of them
}

func newSession(index uint64) *session {
	return &session{last: index, done: map[uint64][]byte{}, parts: map[uint64]map[uint64][]byte{}}
}

// answered returns the result of what was done before.
func (s *session) answered(seq uint64) ([]byte, bool) {
	if mutant.On && mutant.Is("cluster: a retry is applied once") {
		return nil, false
	}
	if seq < s.acked {
		return []byte{byte(NoSession)}, true
	}
	res, ok := s.done[seq]
	return res, ok
}
