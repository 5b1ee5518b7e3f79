package ptx

import (
	"math/big"
	"strings"
)

// refBits computes everything bit by bit; it returns nil for other
// instructions.
func refBits(parts []string, ty valueType, v [4]uint64) []uint64 {
	w := ty.bits
	a, b, c := v[0], v[1], v[2]
	each := func(f func(i int) bool) []uint64 {
		var out uint64
		for i := range w {
			if f(i) {
				out |= 1 << i
			}
		}
		return []uint64{out}
	}
	at := func(x uint64, i int) bool { return i >= 0 && i < w && x>>i&1 == 1 }
	sign := ty.class == 's' && at(a, w-1)
	switch parts[0] {
	case "and":
		return each(func(i int) bool { return at(a, i) && at(b, i) })
	case "or":
		return each(func(i int) bool { return at(a, i) || at(b, i) })
	case "xor":
		return each(func(i int) bool { return at(a, i) != at(b, i) })
	case "not":
		return each(func(i int) bool { return !at(a, i) })
	case "cnot":
		return []uint64{bit(a == 0)}
	case "shl":
		return each(func(i int) bool { return b < 64 && at(a, i-int(b)) })
	case "shr":
		return each(func(i int) bool {
			if b >= 64 || i+int(b) >= w {
				return sign
			}
			return at(a, i+int(b))
		})
	case "shf":
		n := int(min(c, 32))
		if parts[2] == "wrap" {
			n = int(c % 32)
		}
		if parts[1] == "r" {
			n = -n
		} else {
			n -= 32
		}
		pair := b<<32 | a // bit i of the result is bit i-n of the pair
		return each(func(i int) bool { return i-n < 64 && pair>>(i-n)&1 == 1 })
	case "lop3":
		return each(func(i int) bool {
			k := 4*bit(at(a, i)) + 2*bit(at(b, i)) + bit(at(c, i))
			return uint64(lutOf(""))>>k&1 == 1
		})
	case "popc":
		return []uint64{uint64(strings.Count(new(big.Int).SetUint64(a).Text(2), "1"))}
	case "clz":
		return []uint64{uint64(w - new(big.Int).SetUint64(a).BitLen())}
	case "brev":
		return each(func(i int) bool { return at(a, w-1-i) })
	case "bfe":
		pos, n := int(b&255), int(c&255)
		top := ty.class == 's' && n > 0 && at(a, min(pos+n-1, w-1))
		return each(func(i int) bool {
			if i < n && pos+i < w {
				return at(a, pos+i)
			}
			return top
		})
	case "bfi":
		pos, n := int(c&255), int(v[3]&255)
		return each(func(i int) bool {
			if i >= pos && i < pos+n {
				return at(a, i-pos)
			}
			return at(b, i)
		})
	case "bfind":
		for i := w - 1; i >= 0; i-- {
			if at(a, i) != sign {
				if parts[1] == "shiftamt" {
					i = w - 1 - i
				}
				return []uint64{uint64(i)}
			}
		}
		return []uint64{maskOf(32)}
	case "fns":
		return []uint64{refNth(a, b, int32(c))}
	case "prmt":
		return []uint64{refPermute(parts[len(parts)-1], a, b, c)}
	case "dp4a":
		sum := int64(c)
		for i := range 4 {
			x := refInt(a>>(8*i), valueType{8, types[parts[1]].class}).Int64()
			y := refInt(b>>(8*i), valueType{8, types[parts[2]].class}).Int64()
			sum += x * y
		}
		return []uint64{uint64(uint32(sum))}
	}
	return nil
}

func refNth(mask, base uint64, n int32) uint64 {
	if base > 31 { // outside: undefined, so nothing is found
		return maskOf(32)
	}
	if n == 0 {
		if mask>>base&1 == 1 {
			return base
		}
		return maskOf(32)
	}
	count := int64(n)
	step := 1
	if n < 0 {
		count, step = -count, -1
	}
	for i := int(base); i >= 0 && i < 32; i += step {
		count -= int64(mask >> i & 1)
		if count == 0 {
			return uint64(i)
		}
	}
	return maskOf(32)
}

// refPermute returns the bytes of prmt's modes from their purpose: a window of
// four bytes, moving up or down; one byte or half in all positions; the low
// bytes held at an edge.
func refPermute(mode string, a, b, c uint64) uint64 {
	var eight [8]byte
	for i := range 4 {
		eight[i], eight[4+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	n := int(c & 3)
	var out uint64
	for i := range 4 {
		var v byte
		switch mode {
		case "f4e":
			v = eight[n+i]
		case "b4e":
			v = eight[(n-i+8)%8]
		case "rc8":
			v = eight[n]
		case "ecl":
			v = eight[max(i, n)]
		case "ecr":
			v = eight[min(i, n)]
		case "rc16":
			v = eight[n%2*2+i%2]
		default:
			sel := c >> (4 * i) & 15
			v = eight[sel&7]
			if sel >= 8 {
				v = byte(-(int(v) >> 7))
			}
		}
		out |= uint64(v) << (8 * i)
	}
	return out
}
