package index

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// ValueType describes the values of an index. The Go type of a value ends at the face:
// many values cross it as a Column, one as a Value, and everything below is compiled
// once, whatever their type.
type ValueType struct {
	typ  reflect.Type
	size int  // bytes of a value
	kept int  // the same where layouts and trees keep values, which are of 4 or 8 bytes and without pointers; else 0
	free bool // values hold no pointers
	bare bare // values are bytes of any number

	// These functions must know the type, because of pointers that the garbage collector
	// follows.
	make func(n int) unsafe.Pointer           // returns n zero values in Go memory
	move func(dst, src unsafe.Pointer, n int) // copies n values
	wipe func(at unsafe.Pointer, n int)       // makes n values zero
}

// bare says whether values are bytes of any number, strings or slices: an index has them one
// behind the other, without the word that leads to them.
type bare uint8

const (
	notBare bare = iota
	bareString
	bareSlice
)

func bareOf(t reflect.Type) bare {
	switch {
	case t.Kind() == reflect.String:
		return bareString
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return bareSlice
	}
	return notBare
}

// ValueTypeOf returns the ValueType of V.
func ValueTypeOf[V any]() *ValueType {
	return newValueType(reflect.TypeFor[V](),
		func(n int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]V, n))) },
		func(dst, src unsafe.Pointer, n int) { copy(unsafe.Slice((*V)(dst), n), unsafe.Slice((*V)(src), n)) },
		func(at unsafe.Pointer, n int) { clear(unsafe.Slice((*V)(at), n)) })
}

func newValueType(typ reflect.Type, make func(n int) unsafe.Pointer, move func(dst, src unsafe.Pointer, n int), wipe func(at unsafe.Pointer, n int)) *ValueType {
	t := &ValueType{typ: typ, size: int(typ.Size()), free: PointerFree(typ), bare: bareOf(typ), make: make, move: move, wipe: wipe}
	if t.free && (t.size == 4 || t.size == 8) {
		t.kept = t.size
	}
	return t
}

// Form says how one value crosses the face. The face asks once.
type Form uint8

const (
	asBox    Form = iota // in Go memory of its own
	asBits               // by its bits: trees keep them
	asString             // by where the bytes of a string lie
	asSlice              // by where those of a slice lie
)

// Form returns how values cross the face.
func (t *ValueType) Form() Form {
	switch {
	case t.kept > 0:
		return asBits
	case t.bare == bareString:
		return asString
	case t.bare == bareSlice:
		return asSlice
	}
	return asBox
}

// Stored reports whether values are bytes, of one number or of any, that trees do not keep
// themselves: they can be copied while others change them, since they have no pointers.
func (t *ValueType) Stored() bool { return t.bare != notBare || t.free && t.size > 0 && t.kept == 0 }

// Bare reports whether values are bytes of any number, strings or slices.
func (t *ValueType) Bare() bool { return t.bare != notBare }

// Shared reports whether nobody can change the bytes of a value that is handed out.
func (t *ValueType) Shared() bool { return t.bare != bareSlice }

// Name returns the type's name in files. It is put together when it is asked for, since
// types may lead to each other.
func (t *ValueType) Name() string { return valueName(t.typ) }

// Size returns the bytes of a value.
func (t *ValueType) Size() int { return t.size }

// KeptSize returns the bytes of a value that layouts and trees keep, and 0 where they
// do not.
func (t *ValueType) KeptSize() int { return t.kept }

// AtOnce returns the number of values that are copied together: many, but no more than
// 16 KiB of them.
func (t *ValueType) AtOnce(many int) int { return max(1, min(many, 16<<10/max(t.size, 1))) }

// Empty reports whether a value takes no memory.
func (t *ValueType) Empty() bool { return t.size == 0 }

// Type returns the Go type.
func (t *ValueType) Type() reflect.Type { return t.typ }

// Number returns how values lie and are computed with, which must be numbers.
func (t *ValueType) Number() vector.Type { return NumberType(t.typ) }

// fileSize returns the size of a value that a file holds as it is.
func (t *ValueType) fileSize() uint32 {
	if !t.free {
		return 0
	}
	return uint32(t.size)
}

// Value is one value: its bits where trees keep values, else where it lies, which is
// nowhere if it is zero. The value of an index that is bare is its bytes: At is where they
// lie, which is somewhere even if there are none, and Bits is their number, shifted by
// bareShift, and the kind of the value.
type Value struct {
	Bits uint64
	At   unsafe.Pointer
}

const (
	bareShift = 2
	bareKind  = 1<<bareShift - 1
)

// none is where values without bytes lie.
var none byte

// bareValue returns a value of bytes that are its own, or do not change as long as it is used.
func bareValue(kind bare, bytes string) Value {
	at := unsafe.Pointer(unsafe.StringData(bytes))
	if len(bytes) == 0 {
		at = unsafe.Pointer(&none)
	}
	return Value{uint64(len(bytes))<<bareShift | uint64(kind), at}
}

func (t *ValueType) bareValue(bytes string) Value { return bareValue(t.bare, bytes) }

// BareOf returns the value of bytes that are its own, or never change, where values are bare.
func (t *ValueType) BareOf(b []byte) Value {
	return t.bareValue(unsafe.String(unsafe.SliceData(b), len(b)))
}

// View returns the bytes of a value that is Stored, where they lie.
func (t *ValueType) View(v Value) []byte {
	switch {
	case v.Bits != 0:
		return unsafe.Slice((*byte)(v.At), v.Bits>>bareShift)
	case t.bare != notBare:
		if v.At == nil {
			return nil
		}
		b := t.viewBytes(v.At)
		return unsafe.Slice(unsafe.StringData(b), len(b))
	case v.At == nil:
		return t.memory(t.make(1), 1)
	}
	return t.memory(v.At, 1)
}

// Lent returns a value that is Stored for somebody who may change its memory.
func (t *ValueType) Lent(v Value) Value {
	if t.Shared() {
		return v
	}
	return t.BareOf(slices.Clone(t.View(v)))
}

// setBare sets the string or slice at a place to one that is bare.
func setBare(at unsafe.Pointer, x Value) {
	n := int(x.Bits >> bareShift)
	if bare(x.Bits&bareKind) == bareString {
		*(*string)(at) = unsafe.String((*byte)(x.At), n)
		return
	}
	*(*[]byte)(at) = unsafe.Slice((*byte)(x.At), n)
}

// ValueOf returns a value without its type. form is that of its ValueType. The bytes of a
// string or a slice stay where they are.
func ValueOf[V any](form Form, v V) Value {
	switch {
	case form == asBits && unsafe.Sizeof(v) == 4:
		return Value{Bits: uint64(*(*uint32)(unsafe.Pointer(&v)))}
	case form == asBits && unsafe.Sizeof(v) == 8:
		return Value{Bits: *(*uint64)(unsafe.Pointer(&v))}
	case unsafe.Sizeof(v) >= unsafe.Sizeof("") && (form == asString || form == asSlice):
		return bareIn(form, unsafe.Pointer(&v))
	}
	return Value{At: unsafe.Pointer(moved(v))}
}

// bareIn returns the value of the string or slice at a place, whose bytes stay where they are.
func bareIn(form Form, at unsafe.Pointer) Value {
	if form == asString {
		return bareValue(bareString, *(*string)(at))
	}
	b := *(*[]byte)(at)
	return bareValue(bareSlice, unsafe.String(unsafe.SliceData(b), len(b)))
}

// moved returns a value in Go memory.
func moved[V any](v V) *V {
	if unsafe.Sizeof(v) == 0 {
		return nil
	}
	p := new(V)
	*p = v
	return p
}

// ValueAs returns a value with its type.
func ValueAs[V any](x Value) (v V) {
	if x.At != nil {
		if x.Bits == 0 {
			return *(*V)(x.At)
		}
		if unsafe.Sizeof(v) >= unsafe.Sizeof("") { // always
			setBare(unsafe.Pointer(&v), x)
		}
		return v
	}
	switch unsafe.Sizeof(v) { // of a value that is not kept the bits are zero
	case 4:
		*(*uint32)(unsafe.Pointer(&v)) = uint32(x.Bits)
	case 8:
		*(*uint64)(unsafe.Pointer(&v)) = x.Bits
	}
	return v
}

// load returns the value at a place.
func (t *ValueType) load(at unsafe.Pointer) Value {
	switch t.kept {
	case 4:
		return Value{Bits: uint64(*(*uint32)(at))}
	case 8:
		return Value{Bits: *(*uint64)(at)}
	}
	if t.size == 0 {
		return Value{}
	}
	return Value{At: at}
}

// Store sets the value at a place.
func (t *ValueType) Store(at unsafe.Pointer, v Value) {
	switch {
	case t.kept == 4:
		*(*uint32)(at) = uint32(v.Bits)
	case t.kept == 8:
		*(*uint64)(at) = v.Bits
	case t.size == 0:
	case v.At == nil:
		t.wipe(at, 1)
	case v.Bits != 0:
		setBare(at, v)
	default:
		t.copy(at, v.At)
	}
}

// copy copies a value.
func (t *ValueType) copy(dst, src unsafe.Pointer) {
	if t.free {
		copy(t.memory(dst, 1), t.memory(src, 1))
		return
	}
	t.move(dst, src, 1)
}

// viewBytes returns the bytes of a value that is bare, where they lie.
func (t *ValueType) viewBytes(at unsafe.Pointer) string {
	if t.bare == bareString {
		return *(*string)(at)
	}
	b := *(*[]byte)(at)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Unpacked returns values whose bytes lie one behind the other, value i in
// data[offsets[i]:offsets[i+1]], where they lie. Values must be Bare.
func (t *ValueType) Unpacked(data []byte, offsets []int64) Column {
	vals := t.Zeros(len(offsets) - 1)
	for i := range vals.n {
		setBare(t.Place(vals, i), t.BareOf(data[offsets[i]:offsets[i+1]:offsets[i+1]]))
	}
	return vals
}

// Boxed returns a copy of a value, in Go memory of its own.
func (t *ValueType) Boxed(at unsafe.Pointer) Value {
	p := t.make(1)
	t.move(p, at, 1)
	return Value{At: p}
}

// memory returns the bytes of n values, which must hold no pointers.
func (t *ValueType) memory(at unsafe.Pointer, n int) []byte {
	return unsafe.Slice((*byte)(at), n*t.size)
}

// Text returns a value as people read it.
func (t *ValueType) Text(v Value) string {
	p := reflect.New(t.typ)
	t.Store(p.UnsafePointer(), v)
	s := fmt.Sprintf("%+v", p.Elem().Interface())
	if len(s) > mostValue {
		s = s[:mostValue] + "…"
	}
	return s
}

// Column is values one behind the other: a slice without its type.
type Column struct {
	at unsafe.Pointer
	n  int
}

// ColumnOf returns a slice without its type.
func ColumnOf[V any](s []V) Column { return Column{unsafe.Pointer(unsafe.SliceData(s)), len(s)} }

// SliceOf returns values with their type.
func SliceOf[V any](c Column) []V { return unsafe.Slice((*V)(c.at), c.n) }

// ColumnAt returns n values from at on.
func ColumnAt(at unsafe.Pointer, n int) Column { return Column{at, n} }

// At returns where the first value lies.
func (c Column) At() unsafe.Pointer { return c.at }

// First returns the first n values. There must be n at least.
func (c Column) First(n int) Column { return Column{c.at, n} }

// IsNil reports whether the slice was nil.
func (c Column) IsNil() bool { return c.at == nil }

// Len returns the number of values.
func (c Column) Len() int { return c.n }

// Zeros returns n zero values in Go memory.
func (t *ValueType) Zeros(n int) Column { return Column{t.make(n), n} }

// Clear makes values zero.
func (t *ValueType) Clear(c Column) { t.wipe(c.at, c.n) }

// Copy returns a copy of value i.
func (t *ValueType) Copy(c Column, i int) Value { return t.Own(t.load(t.Place(c, i))) }

// Own returns a value that lies in memory of its own.
func (t *ValueType) Own(v Value) Value {
	if v.At == nil || v.Bits != 0 {
		return v
	}
	return t.Boxed(v.At)
}

// columnIn returns the values that lie in memory off the Go heap. They must have a size.
func (t *ValueType) columnIn(b []byte) Column {
	return Column{unsafe.Pointer(unsafe.SliceData(b)), len(b) / t.size}
}

// Place returns where value i lies.
func (t *ValueType) Place(c Column, i int) unsafe.Pointer { return unsafe.Add(c.at, i*t.size) }

// Part returns values [lo, hi).
func (t *ValueType) Part(c Column, lo, hi int) Column {
	if uint(lo) > uint(hi) || hi > c.n {
		panic(fmt.Sprintf("index: values [%d, %d) of %d", lo, hi, c.n))
	}
	if lo == hi { // nothing points behind the last value
		return Column{}
	}
	return Column{t.Place(c, lo), hi - lo}
}

// Bytes returns the memory of values that hold no pointers.
func (t *ValueType) Bytes(c Column) []byte { return t.memory(c.at, c.n) }

// CopyAll copies as many values as src has, step by step on at most workers goroutines.
func (t *ValueType) CopyAll(dst, src Column, workers int) {
	if t.free {
		par.Copy(t.Bytes(dst), t.Bytes(src), workers)
		return
	}
	step := par.CopyStep(t.size)
	if src.n <= step*copySteps || workers <= 1 {
		t.copySteps(dst, src, step)
		return
	}
	par.Run(workers, (src.n+step*copySteps-1)/(step*copySteps), par.Func(func(p int) {
		lo, hi := p*step*copySteps, min((p+1)*step*copySteps, src.n)
		t.copySteps(t.Part(dst, lo, hi), t.Part(src, lo, hi), step)
	}))
}

// copySteps is the number of steps that a worker copies at a time.
const copySteps = 64

// copySteps copies as many values as src has, which may hold pointers. Each step is a
// call, at whose entry the scheduler can stop the goroutine.
func (t *ValueType) copySteps(dst, src Column, step int) {
	for lo := 0; lo < src.n; lo += step {
		n := min(step, src.n-lo)
		t.move(t.Place(dst, lo), t.Place(src, lo), n)
	}
}
