package table

import (
	"bytes"
	"math"
	"strconv"
)

// scaled returns a decimal number without its point, moved by scale digits, so that
// 1.5 of scale 2 is 150: its sign and its digits. 1003, 1003.0 and 1.003e3 are the same
// number. The problem of a number with more digits behind the point than scale is
// syntax, and of one that needs more than 64 bits size.
func scaled(b []byte, scale int) (negative bool, v uint64, p problem) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative, b = b[0] == '-', b[1:]
	}
	b, exponent, ok := cutExponent(b)
	if !ok {
		return false, 0, syntax
	}
	shift := scale + exponent // places that digits before the point go to the left
	seen, behind := 0, false
	zeros := 0 // that are only written if another digit follows
	for _, c := range b {
		if c == '.' && !behind {
			behind = true
			continue
		}
		if c-'0' > 9 {
			return false, 0, syntax
		}
		seen++
		if behind {
			shift--
		}
		if c == '0' {
			zeros++
			continue
		}
		if v, p = timesTen(v, zeros+1, uint64(c-'0'), p); p == size {
			zeros = 0
			continue // the bytes that follow may still be no digits
		}
		zeros = 0
	}
	switch shift += zeros; {
	case seen == 0:
		return false, 0, syntax
	case v == 0 && p == fine:
		return false, 0, fine
	case shift < 0:
		return false, 0, syntax
	}
	v, p = timesTen(v, shift, 0, p)
	return negative, v, p
}

// cutExponent cuts an exponent, as of 1.5e3, off a number. One that is far beyond those
// of any number here is as good as the greatest.
func cutExponent(b []byte) (rest []byte, exponent int, ok bool) {
	const most = 1 << 20
	for i, c := range b {
		if c != 'e' && c != 'E' {
			continue
		}
		e, p := parseInt(b[i+1:])
		if p == syntax {
			return nil, 0, false
		}
		if p == size {
			e = most
			if b[i+1] == '-' {
				e = -most
			}
		}
		return b[:i], int(max(-most, min(most, e))), true
	}
	return b, 0, true
}

// timesTen returns v with n digits more, the last of which is given and all others 0.
// It is size once it was.
func timesTen(v uint64, n int, last uint64, p problem) (uint64, problem) {
	if p != fine {
		return 0, p
	}
	for ; n > 0 && v > 0; n-- {
		if v > math.MaxUint64/10 {
			return 0, size
		}
		v *= 10
	}
	if v > math.MaxUint64-last {
		return 0, size
	}
	return v + last, fine
}

// signed returns a number of a sign as an int64.
func signed(negative bool, v uint64, p problem) (int64, problem) {
	switch {
	case p != fine:
		return 0, p
	case negative && v <= 1<<63:
		return -int64(v), fine
	case !negative && v < 1<<63:
		return int64(v), fine
	}
	return 0, size
}

// wholeInt reads a whole number, however it is written.
func wholeInt(b []byte) (int64, problem) {
	if v, p := parseInt(b); p != syntax {
		return v, p
	}
	return signed(scaled(b, 0))
}

// wholeUint is wholeInt without a sign.
func wholeUint(b []byte) (uint64, problem) {
	if v, p := parseUint(b); p != syntax {
		return v, p
	}
	negative, v, p := scaled(b, 0)
	if p == fine && negative && v > 0 {
		return 0, size
	}
	return v, p
}

// holdsDigits reports whether a float64 has all digits of the text that it was read
// from: either the shortest text that stands for it has the same, or that of as many
// digits, so that a number that a program wrote with 17 digits or more is held as
// well.
func holdsDigits(v float64, text []byte) bool {
	const sure = 15         // digits that every float64 holds
	const least = 0x1p-1022 // those below have fewer digits
	normal := math.Abs(v) >= least
	if normal && len(text) <= sure {
		return true
	}
	var room, other [64]byte
	want := significant(room[:0], text)
	if len(want) == 0 || normal && len(want) <= sure {
		return true
	}
	for _, most := range []int{-1, len(want) - 1} {
		text := strconv.AppendFloat(make([]byte, 0, len(want)+16), v, 'e', most, 64)
		if bytes.Equal(significant(other[:0], text), want) {
			return true
		}
	}
	return false
}

// significant adds the digits of a number without zeros at either end.
func significant(buf, text []byte) []byte {
	for _, c := range text {
		if c == 'e' || c == 'E' {
			break
		}
		if c-'0' <= 9 && (c != '0' || len(buf) > 0) {
			buf = append(buf, c)
		}
	}
	return bytes.TrimRight(buf, "0")
}

// keptInFront reports whether a number has neither zeros nor a plus in front, which no
// type of numbers keeps.
func keptInFront(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	return len(b) == 0 || b[0] != '+' && (b[0] != '0' || len(b) == 1 || b[1]-'0' > 9)
}
