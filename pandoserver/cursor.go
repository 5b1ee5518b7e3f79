package pandoserver

import "math/bits"

// SCAN's cursors are numbers below 1<<63, the server keeps nothing of a scan, and yet every
// key is returned that is there throughout. So a cursor is a place in key order: all
// keys before it have been returned, and none from it on.
//
//	bit 62      57 56                                                       0
//	┌──────────────┬─────────────────────────────────────────────────────────┐
//	│ skip         │ code of what follows                                    │
//	└──────────────┴─────────────────────────────────────────────────────────┘
//
// The code (see codeOf) is a number in the order of keys: of two keys, the lower one's is not above
// the other's. Long keys that begin alike have the same code, and no place between them can be told. Hence
// the rule: a scan stops between two keys of different codes only. It returns
// more than COUNT says where it must, and the cursor is the code of the first key that
// it has not returned: all keys with that code or a greater one are still to come.
//
// To tell more keys apart, bytes that all of them begin with are not coded. The literal begin of MATCH
// is one: the client sends it with each call. Beyond it, keys may share skip more
// bytes, the stem. When a scan goes on, its stem is not known, only how long it was. Let P be that stem,
// and k a key that is there throughout: k begins with P, since all keys did.
//
//   - If all keys share skip bytes or more now, these are P, since k is among them.
//   - Else some keys have come that begin otherwise. The first of all keys is not above k,
//     so what it begins with, Q, is not above P; and the place behind Q is not behind the
//     true one. Some keys are returned again, and none is left out.
//
// Without such a k there is nothing that must be returned.
//
// In a set of keys that does not change, each call returns at least one key, and the cursor
// grows: a scan ends.
const (
	codeBits = 57
	mostSkip = 1<<(63-codeBits) - 1
)

// place is a cursor in parts.
type place struct {
	skip int
	code uint64
}

func placeOf(cursor uint64) place {
	return place{int(cursor >> codeBits), cursor & (1<<codeBits - 1)}
}

func (p place) cursor() uint64 { return uint64(p.skip)<<codeBits | p.code }

// Weights of bytes, by the class of the byte before: how much of an interval they take. Digits follow
// digits, and letters letters. All sums are 1<<weightBits.
const weightBits = 12

var weights = func() (cum [3][257]uint64) {
	type span struct {
		from, to byte
		weight   uint64
	}
	marks := func(w uint64) []span {
		return []span{{'-', '/', w}, {':', ':', w}, {'_', '_', w}}
	}
	for class, spans := range [3][]span{
		others:  append(marks(60), span{'a', 'z', 70}, span{'0', '9', 120}, span{'A', 'Z', 20}),
		digits:  append(marks(60), span{'0', '9', 300}, span{'a', 'f', 60}, span{'A', 'F', 20}, span{'g', 'z', 3}),
		letters: append(marks(120), span{'a', 'z', 105}, span{'0', '9', 25}, span{'A', 'Z', 10}),
	} {
		sum := uint64(0)
		for b := range 256 {
			cum[class][b] = sum
			sum++
			for _, s := range spans {
				if byte(b) >= s.from && byte(b) <= s.to {
					sum += s.weight
				}
			}
		}
		if sum != 1<<weightBits {
			panic("pandoserver: weights do not add up")
		}
		cum[class][256] = sum
	}
	return cum
}()

// Classes of bytes.
const (
	others = iota
	digits
	letters
)

func classOf(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return digits
	case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z':
		return letters
	}
	return others
}

// share returns the part of a width that a weight is.
func share(width, weight uint64) uint64 {
	hi, lo := bits.Mul64(width, weight)
	return hi<<(64-weightBits) | lo>>weightBits
}

// codeOf returns the code of a key: the lower end of the interval that is left when each byte
// takes its share of the one before, as in arithmetic coding. Some ten letters or fourteen
// digits count. A byte of zero has the lower end of what came before: it does not change the code.
func codeOf(key string) uint64 {
	low, width, class := uint64(0), uint64(1)<<codeBits, others
	for i := 0; i < len(key) && width > 1; i++ {
		b := key[i]
		from, to := share(width, weights[class][b]), share(width, weights[class][int(b)+1])
		low, width, class = low+from, to-from, classOf(b)
	}
	return low
}

// keyOf returns the least key whose code is not below code. It ends in no zero: the key
// without it has the same code.
func keyOf(code uint64) string {
	var key []byte
	low, width, class := uint64(0), uint64(1)<<codeBits, others
	for width > 1 && code > low {
		b := 255 // the last byte whose interval begins at code or before
		for b > 0 && low+share(width, weights[class][b]) > code {
			b--
		}
		for b > 0 && low+share(width, weights[class][b-1]) == code { // intervals before it are empty
			b--
		}
		key = append(key, byte(b))
		from, to := share(width, weights[class][b]), share(width, weights[class][b+1])
		low, width, class = low+from, to-from, classOf(byte(b))
	}
	return string(key)
}
