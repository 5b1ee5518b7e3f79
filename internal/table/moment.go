package table

import "time"

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
