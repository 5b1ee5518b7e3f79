package live

import (
	"errors"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

// summarize sums up on the GPU.
func (t *solo[C]) Summarize(typ vector.Type, lo, hi []uint64, out []vector.Summary) bool {
	return t.could(t.Solo.Summarize(typ, codesTo[C](lo), codesTo[C](hi), out))
}

// histogram counts values on the GPU.
func (t *solo[C]) Histogram(typ vector.Type, lo, hi uint64, bounds []uint64, counts []int) bool {
	return t.could(t.Solo.Histogram(typ, C(lo), C(hi), bounds, counts))
}

// could reports whether the GPU had the memory for its work; else the CPU reads
// the values.
func (t *solo[C]) could(err error) bool {
	if errors.Is(err, op.ErrLimit) || errors.Is(err, device.ErrOutOfMemory) {
		return false
	}
	t.must(err)
	return true
}

// soloPiece is the number of entries that are read, or changed, at a time.
const soloPiece = 64 << 10

// scan hands the entries from lo to hi to take, some at a time, those as they are
// at one moment. take may change them.
func (t *solo[C]) scan(lo, hi C, take func(keys, vals []C)) {
	keys, vals := make([]C, soloPiece), make([]C, soloPiece)
	for next := lo; ; {
		some, err := t.From(next, keys, vals)
		t.must(err)
		n := upTo(keys[:some], hi)
		if err != nil || n == 0 {
			return
		}
		last := keys[n-1]
		take(keys[:n], vals[:n])
		if n < len(keys) || last == hi {
			return
		}
		next = last + 1
	}
}

// upTo returns the number of keys, which ascend, that are not above one.
func upTo[C order.Code](keys []C, hi C) int {
	for n := len(keys); n > 0; n-- {
		if keys[n-1] <= hi {
			return n
		}
	}
	return 0
}

func (t *solo[C]) ReadValues(lo, hi uint64, size int, r *vector.Reader) {
	t.scan(C(lo), C(hi), func(_, vals []C) { take(r, vals, size) })
}

func (t *solo[C]) SelectValues(lo, hi uint64, s *selecting) {
	t.scan(C(lo), C(hi), func(keys, vals []C) {
		for len(vals) > 0 { // a mask is of a block
			n := min(vector.Block, len(vals))
			selectFrom(s, keys[:n], vals[:n])
			keys, vals = keys[n:], vals[n:]
		}
	})
}

// transform reads values, changes them here, and sets them, some at a time.
func (t *solo[C]) Transform(s *span, _ int, f bplus.Changer) (changed int, err error) {
	keys, vals := make([]C, soloPiece), make([]C, soloPiece)
	for next, hi := C(s.lo), C(s.hi); next <= hi; {
		last := hi
		n, err := t.Change(next, keys, vals, func(keys, vals []C) int {
			n := upTo(keys, hi)
			for i := range vals[:n] {
				vals[i] = C(f.Value(uint64(vals[i])))
			}
			if n == soloPiece {
				last = keys[n-1]
			}
			return n
		})
		changed += n
		if err != nil {
			return changed, soloError(err)
		}
		if last == hi {
			break
		}
		next = last + 1
	}
	return changed, nil
}
