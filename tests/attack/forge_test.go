package attack

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"

	"github.com/pando-index/pando/internal/files"
)

// Where a header has what is forged: docs/format.md.
const (
	atSize     = 24
	atEntries  = 32
	atSections = 56
	atTable    = 64
	tableRow   = 32
	atKeyType  = 320
	atValType  = 384
)

var le = binary.LittleEndian

// forger changes the bytes of a file.
type forger struct {
	rng   *rand.Rand
	data  []byte
	other []byte // another good file of the same types
	note  func(format string, args ...any)
}

// change is a way to damage a file.
type change struct {
	name string
	do   func(f *forger)
}

var changes = []change{
	{"bits", (*forger).bits},
	{"numbers", (*forger).numbers},
	{"header", (*forger).header},
	{"table", (*forger).table},
	{"fill", (*forger).fill},
	{"move", (*forger).move},
	{"swap", (*forger).swap},
	{"swap sections", (*forger).swapSections},
	{"splice", (*forger).splice},
	{"cut", (*forger).cut},
	{"grow", (*forger).grow},
	{"resize", (*forger).resize},
	{"types", (*forger).types},
}

// mend is how much of what tells damage is made right again.
type mend uint8

const (
	mendNothing mend = iota
	mendHeader       // the header's checksum
	mendAll          // all checksums
)

func (m mend) String() string {
	return [...]string{"checksums left", "header's checksum mended", "all checksums mended"}[m]
}

// forge changes a file some times, and mends it.
func (f *forger) forge() mend {
	for range 1 + f.rng.IntN(3) {
		if len(f.data) < files.Page {
			break
		}
		c := pick(f.rng, changes...)
		f.note("change: %s", c.name)
		c.do(f)
	}
	m := pick(f.rng, mendNothing, mendHeader, mendAll, mendAll, mendAll)
	f.note("%v", m)
	if len(f.data) < files.Page {
		return mendNothing
	}
	if m == mendAll {
		f.sum()
	}
	if m != mendNothing {
		files.Seal(f.data[:files.Page])
	}
	return m
}

// sum makes the checksums of all sections right.
func (f *forger) sum() {
	for i, s := range f.sections() {
		le.PutUint32(f.data[atTable+i*tableRow+4:], crc32.Checksum(s, crc32.MakeTable(crc32.Castagnoli)))
	}
}

// sections returns those of the table, as far as they lie in the file.
func (f *forger) sections() [][]byte { return sectionsOf(f.data) }

func sectionsOf(data []byte) (all [][]byte) {
	for i := range min(le.Uint32(data[atSections:]), 8) {
		row := data[atTable+i*tableRow:]
		from := min(le.Uint64(row[8:]), uint64(len(data)))
		to := min(from+min(le.Uint64(row[16:]), 1<<40), uint64(len(data)))
		all = append(all, data[from:to])
	}
	return all
}

// somewhere returns a part of the file: a section that is not empty, or all of
// it.
func (f *forger) somewhere() []byte {
	if s := f.section(); len(s) > 0 {
		return s
	}
	return f.data
}

// section returns a section, or nil.
func (f *forger) section() []byte {
	all := slices.DeleteFunc(f.sections(), func(s []byte) bool { return len(s) == 0 })
	if len(all) == 0 {
		return nil
	}
	return pick(f.rng, all...)
}

// bits flips a few bits.
func (f *forger) bits() {
	in := pick(f.rng, f.data, f.data[:files.Page], f.somewhere(), f.somewhere())
	for range 1 + upTo(f.rng, 40) {
		in[f.rng.IntN(len(in))] ^= 1 << f.rng.IntN(8)
	}
}

// awkward returns a number that may break arithmetic, or one that is close to
// another.
func (f *forger) awkward(old uint64) uint64 {
	return pick(f.rng, 0, 1, 2, 7, 64, old-1, old+1, old*2, old/2, -old, old^1<<f.rng.IntN(64), f.rng.Uint64(), f.rng.Uint64()>>f.rng.IntN(64),
		1<<31-1, 1<<31, 1<<32-1, 1<<32, 1<<56, 1<<62, 1<<63-1, 1<<63, 1<<64-1, 1<<64-4096, uint64(len(f.data)), uint64(len(f.data))/8)
}

// numbers puts awkward numbers into sections, of 1, 2, 4 or 8 bytes, where such
// a number may be.
func (f *forger) numbers() {
	in := f.somewhere()
	for range 1 + upTo(f.rng, 30) {
		size := pick(f.rng, 1, 2, 4, 8, 8)
		if len(in) < size {
			continue
		}
		at := f.rng.IntN(len(in)/size) * size
		if oneIn(f.rng, 3) { // at the beginning, or at the end
			at = pick(f.rng, 0, min(f.rng.IntN(16)*size, len(in)-size), len(in)-size)
		}
		var old [8]byte
		copy(old[:], in[at:at+size])
		le.PutUint64(old[:], f.awkward(le.Uint64(old[:])))
		copy(in[at:at+size], old[:])
	}
}

// header changes a number of the header.
func (f *forger) header() {
	at := pick(f.rng, 12, 20, atSize, atEntries, atEntries, 40, 44, 48, 52, atSections, 60)
	if at == atSize || at == atEntries {
		le.PutUint64(f.data[at:], f.awkward(le.Uint64(f.data[at:])))
		return
	}
	le.PutUint32(f.data[at:], uint32(f.awkward(uint64(le.Uint32(f.data[at:])))))
}

// table changes a number of the section table, or swaps two rows.
func (f *forger) table() {
	row := func() []byte {
		i := f.rng.IntN(8)
		return f.data[atTable+i*tableRow : atTable+(i+1)*tableRow]
	}
	if oneIn(f.rng, 3) {
		a, b := row(), row()
		was := slices.Clone(a)
		copy(a, b)
		copy(b, was)
		return
	}
	r, at := row(), pick(f.rng, 0, 8, 16, 24)
	le.PutUint64(r[at:], f.awkward(le.Uint64(r[at:])))
}

// span returns a part of some bytes whose ends are multiples of a power of two.
func (f *forger) span(in []byte) []byte {
	align := pick(f.rng, 1, 4, 8, 64, 576, 4096)
	from := f.rng.IntN(len(in)) / align * align
	to := min(from+align*(1+upTo(f.rng, 20)), len(in))
	return in[from:to]
}

// fill overwrites a part with bytes of few values, or of any.
func (f *forger) fill() {
	in := f.somewhere()
	if !oneIn(f.rng, 3) {
		in = f.span(in)
	}
	with := pick(f.rng, "\x00", "\xff", "\x00\xff", "\x00\x01\x80\xff", "")
	for i := range in {
		if with == "" {
			in[i] = byte(f.rng.Uint32())
		} else {
			in[i] = with[f.rng.IntN(len(with))]
		}
	}
}

// move copies a part of a section to where another is.
func (f *forger) move() {
	to := f.span(f.somewhere())
	copy(to, slices.Clone(f.span(f.somewhere())))
}

// swap swaps two parts of a section.
func (f *forger) swap() {
	in := f.somewhere()
	a, b := f.span(in), f.span(in)
	was := slices.Clone(a)
	copy(a, b)
	copy(b, was)
}

// swapSections swaps what two sections hold, as much as both have room for.
func (f *forger) swapSections() {
	a, b := f.somewhere(), f.somewhere()
	n := min(len(a), len(b))
	was := slices.Clone(a[:n])
	copy(a, b[:n])
	copy(b, was)
}

// splice puts a section of the other file into this one.
func (f *forger) splice() {
	mine, others := f.sections(), sectionsOf(f.other)
	if n := min(len(mine), len(others)); n > 0 {
		i := f.rng.IntN(n)
		if oneIn(f.rng, 2) {
			copy(mine[i], others[i])
			return
		}
		f.lay(func(parts [][]byte) { parts[i] = slices.Clone(others[i]) })
	}
}

// cut makes the file shorter, and now and then its header says so.
func (f *forger) cut() {
	n := pick(f.rng, f.rng.IntN(len(f.data)), f.rng.IntN(len(f.data))/files.Page*files.Page, len(f.data)-1)
	f.data = f.data[:n]
	f.sayLen()
}

// grow puts something behind the end.
func (f *forger) grow() {
	f.data = append(f.data, make([]byte, pick(f.rng, 1, 64, 4095, 4096, 8192))...)
	f.sayLen()
}

// sayLen makes the header say how long the file is, mostly.
func (f *forger) sayLen() {
	if len(f.data) >= files.Page && !oneIn(f.rng, 4) {
		le.PutUint64(f.data[atSize:], uint64(len(f.data)))
	}
}

// resize changes the length of a section, and all offsets with it, so that the
// table is in order.
func (f *forger) resize() {
	f.lay(func(parts [][]byte) {
		i := f.rng.IntN(len(parts))
		n := len(parts[i])
		n = max(0, n+pick(f.rng, -n, -64, -8, -1, 1, 8, 64, 4096, n, -n/2))
		parts[i] = append(slices.Clone(parts[i][:min(n, len(parts[i]))]), make([]byte, max(0, n-len(parts[i])))...)
	})
	if oneIn(f.rng, 2) {
		le.PutUint64(f.data[atEntries:], f.awkward(le.Uint64(f.data[atEntries:])))
	}
}

// lay changes the sections and lays the file out anew.
func (f *forger) lay(change func(parts [][]byte)) {
	parts := f.sections()
	if len(parts) == 0 {
		return
	}
	change(parts)
	data := slices.Clone(f.data[:files.Page])
	for i, p := range parts {
		row := data[atTable+i*tableRow:]
		le.PutUint64(row[8:], uint64(len(data)))
		le.PutUint64(row[16:], uint64(len(p)))
		data = append(data, p...)
		data = append(data, make([]byte, -len(data)&(files.Page-1))...)
	}
	le.PutUint64(data[atSize:], uint64(len(data)))
	f.data = data
}

// types writes other types over those of keys or values.
func (f *forger) types() {
	at := pick(f.rng, atKeyType, atValType)
	name := pick(f.rng, "uint64", "int64", "float64", "uint32", "int32", "float32", "uint8", "int8", "uint16", "int16", "string", "none",
		"encoded string", "bool", "[8]uint8", "", fmt.Sprint("uint", f.rng.IntN(100)))
	clear(f.data[at+2 : at+64])
	le.PutUint16(f.data[at:], uint16(len(name)))
	copy(f.data[at+2:], name)
}
