package table

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/pando-index/pando/internal/table/cols"
)

// appendDate adds days since 1970 as 2020-01-31.
func appendDate(buf []byte, days int64) []byte {
	return time.Unix(days*24*60*60, 0).UTC().AppendFormat(buf, time.DateOnly)
}

// appendMoment adds a time since 1970 as 2020-01-31T12:00:00.5, with a Z behind it
// if it is one of UTC and not of some wall.
func appendMoment(buf []byte, v int64, unit time.Duration, utc bool) []byte {
	perSecond := int64(time.Second / unit)
	seconds, rest := v/perSecond, v%perSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+perSecond
	}
	buf = time.Unix(seconds, rest*int64(unit)).UTC().AppendFormat(buf, "2006-01-02T15:04:05.999999999")
	if utc {
		buf = append(buf, 'Z')
	}
	return buf
}

// appendClock adds a time of day as 12:00:00.5.
func appendClock(buf []byte, v int64, unit time.Duration) []byte {
	return time.Unix(0, v*int64(unit)).UTC().AppendFormat(buf, "15:04:05.999999999")
}

// appendKind adds a number of a kind as text.
func appendKind(buf []byte, k cols.Kind, v int64) []byte {
	switch k.Of {
	case cols.Date:
		return appendDate(buf, v)
	case cols.Timestamp:
		return appendMoment(buf, v, k.Unit, k.UTC)
	case cols.Time:
		return appendClock(buf, v, k.Unit)
	case cols.Decimal:
		return appendDecimal(buf, big.NewInt(v), k.Scale)
	}
	return strconv.AppendInt(buf, v, 10)
}

var errKind = errors.New("not of the kind")

// timeLayouts are the ways to write a timestamp, with a zone and without.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly, "2006-1-2"}

// ParseNumber returns the number that a text of a kind stands for: that of its day,
// moment or digits. It returns an error for a number that the kind cannot hold
// exactly.
func ParseNumber(k cols.Kind, text string) (int64, error) {
	switch k.Of {
	case cols.Date:
		return parseDay(text)
	case cols.Decimal:
		v, p := signed(scaled([]byte(text), k.Scale))
		if p != fine {
			return 0, errKind
		}
		return v, nil
	case cols.Time:
		return parseClock(text, k.Unit)
	case cols.Timestamp:
		t, err := parseMoment(text)
		if err != nil {
			return 0, err
		}
		return sinceEpoch(t, k.Unit)
	}
	return 0, errKind
}

// parseMoment returns the time that a text stands for.
func parseMoment(text string) (time.Time, error) {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errKind
}

// parseDay returns the days since 1970 of a date, which need not have its zeros, as in
// 2020-1-31. A timestamp is a date if it is midnight, as a date is a timestamp.
func parseDay(text string) (int64, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err = parseMoment(text)
	}
	const day = 24 * 60 * 60
	if err != nil || t.Unix()%day != 0 || t.Nanosecond() != 0 {
		return 0, errKind
	}
	return t.Unix() / day, nil
}

// parseClock returns a time of day in units since midnight.
func parseClock(text string, unit time.Duration) (int64, error) {
	t, err := time.Parse("15:04:05.999999999", text)
	if err != nil {
		t, err = time.Parse("15:04", text)
	}
	if err != nil {
		return 0, err
	}
	d := t.Sub(t.Truncate(24 * time.Hour))
	if d%unit != 0 {
		return 0, errKind
	}
	return int64(d / unit), nil
}

// sinceEpoch returns a time in units since 1970.
func sinceEpoch(t time.Time, unit time.Duration) (int64, error) {
	perSecond := int64(time.Second / unit)
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	n := seconds*perSecond + nanos/int64(unit)
	if nanos%int64(unit) != 0 || perSecond > 1 && n/perSecond != seconds && n/perSecond != seconds+1 {
		return 0, errKind
	}
	return n, nil
}

// kindNumber returns value row of a column of a kind as a number.
func kindNumber(c *Column, row int) int64 {
	if c.Type == Int32 {
		return int64(c.Int32[row])
	}
	return c.Int64[row]
}

// DecimalText returns a decimal that is given without its point as text.
func DecimalText(n *big.Int, scale int) string { return string(appendDecimal(nil, n, scale)) }

// AppendTexts adds the values of a column as texts, nulls as empty ones. A value that is passed on is read only here: where
// that shows its data to be damaged, it returns an error, and where the texts that it makes take more than most bytes. Those of
// a dictionary are made once.
func AppendTexts(texts []string, c *Column, most int64) (out []string, err error) {
	defer guard(&err, "the input")
	foreign, _ := c.Foreign.(arrowForeign)
	codes, _ := foreign.a.(*array.Dictionary)
	words := map[int]string{} // by their codes
	made := int64(0)
	for i := range c.Len() {
		text, known := "", c.IsNull(i)
		if codes != nil && !known {
			text, known = words[codes.GetValueIndex(i)]
		}
		if !known {
			text = CellText(c, i)
			if codes != nil {
				words[codes.GetValueIndex(i)] = text
			}
			if c.Foreign != nil { // else there is no more of it than of what was read
				made += int64(len(text))
			}
			if made > most {
				return nil, &Error{Column: c.Name, What: fmt.Sprintf("its texts take more than %d bytes at once", most), Advice: "send fewer rows in a batch, or shorter values"}
			}
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// CellText returns a value that is not null as text.
func CellText(c *Column, row int) string {
	if c.Type == String {
		return textOf(c, row)
	}
	return string(appendNumberText(c, nil, row))
}
