package live

import (
	"bytes"
	"slices"

	"github.com/pando-index/pando/internal/blob"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/stall"
)

// stored holds values without pointers, and strings and slices of bytes, off the Go heap. The
// word of a value is its blob.Ref. What a late reader copies are any bytes.
type stored struct {
	val   *index.ValueType
	store *blob.Store
	freed func() // is called when values were freed
}

func (s *stored) put(v index.Value, epoch uint64) (word uint64, err error) {
	r, err := s.store.Put(s.val.View(v), epoch)
	return uint64(r), err
}

func (s *stored) putAll(words []uint64, vals index.Column, rows []int, epoch uint64) error {
	return s.store.PutBatch(blob.Refs(words), func(i int) []byte {
		return s.val.View(index.Value{At: s.val.Place(vals, row(rows, i))})
	}, epoch)
}

func (s *stored) get(word uint64) index.Value {
	r := blob.Ref(word)
	if !s.store.Plausible(r) {
		return index.Value{}
	}
	if s.val.Bare() {
		return s.val.BareOf(r.Append(nil))
	}
	v := s.val.Zeros(1)
	r.Copy(s.val.Bytes(v))
	return index.Value{At: v.At()}
}

// pieceBytes is the memory of values that are handed out together: whoever keeps one of them
// keeps all.
const pieceBytes = 8 << 10

// fetchAhead is the number of values that are asked for before the first is read.
const fetchAhead = 64

// getAll copies values of any number of bytes one behind the other, which takes fewer
// allocations.
func (s *stored) getAll(vals index.Column, words []uint64, found []bool) {
	var piece []byte
	stall.At("live: words read")
	for lo := 0; lo < len(words); lo += fetchAhead {
		hi := min(lo+fetchAhead, len(words))
		blob.Fetch(words[lo:hi]) // those of keys that are not there are harmless
		for i := lo; i < hi; i++ {
			at := s.val.Place(vals, i)
			r := blob.Ref(words[i])
			switch {
			case found != nil && !found[i] || !s.store.Plausible(r):
				s.val.Store(at, index.Value{})
			case !s.val.Bare():
				r.Copy(s.val.Bytes(s.val.Part(vals, i, i+1)))
			default:
				n := r.Len()
				if n > cap(piece)-len(piece) {
					piece = make([]byte, 0, s.room(words[i:], found, i))
				}
				from := len(piece)
				piece = r.Append(piece)
				s.val.Store(at, s.val.BareOf(piece[from:]))
			}
		}
	}
}

// room returns the bytes of memory for the first of some values and those that go with it.
// found is of all values, and from says with which these begin.
func (s *stored) room(words []uint64, found []bool, from int) (n int) {
	for i, w := range words {
		if found != nil && !found[from+i] {
			continue
		}
		more := blob.Ref(w).Len()
		if n > 0 && n+more > pieceBytes {
			break
		}
		n += more
	}
	return n
}

// same compares bytes: a Ref may have been used again, and another may have the same.
func (s *stored) same(a, b index.Value) bool { return bytes.Equal(s.val.View(a), s.val.View(b)) }

func (s *stored) lent(v index.Value) index.Value { return s.val.Lent(v) }

// spanBytes is the most bytes of values that a cursor reads at once: it may have to read them
// again.
const spanBytes = 16 << 10

func (s *stored) few(words []uint64, down bool) int {
	if !s.val.Bare() {
		return len(words)
	}
	sum := 0
	for n := range words {
		i := n
		if down {
			i = len(words) - 1 - n
		}
		if sum += blob.Ref(words[i]).Len(); sum > spanBytes && n > 0 {
			return n
		}
	}
	return len(words)
}

func (s *stored) out(words []uint64) []uint64 {
	words = slices.DeleteFunc(words, func(w uint64) bool { return blob.Ref(w).Short() })
	if len(words) > 0 {
		s.store.Retire(blob.Refs(words))
	}
	return words
}

func (s *stored) born(word uint64) uint64 { return s.store.Born(blob.Ref(word)) }

func (s *stored) free(words []uint64) {
	s.store.Free(blob.Refs(words))
	s.freed()
}

func (s *stored) unput(words []uint64) { s.store.Drop(blob.Refs(words)...) }
func (s *stored) over()                { s.store.Close() }

func (s *stored) report(to *index.Stats) {
	st := s.store.Stats()
	to.ValueBytes += st.Held
	to.KeptBytes += st.Kept
	to.TotalBytes += st.Held
}

func (s *stored) count() int64 { return s.store.Count() }

// bytes returns the bytes of values that count against a limit.
func (s *stored) bytes() int64 { return s.store.Charged() }
