package cols

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what values are to all formats, beyond the Type that they are kept as.
type Kind struct {
	Of    KindOf
	Unit  time.Duration // of a timestamp
	UTC   bool          // a timestamp is a moment, not what a clock on some wall shows
	Scale int           // digits of a decimal behind the point
}

// KindOf is a kind without its parameters.
type KindOf uint8

const (
	Other     KindOf = iota // nothing but its type; for other formats text
	Boolean                 // "true" or "false" in a column of strings
	Date                    // days since 1970, Int32
	Timestamp               // units of time since 1970, Int64
	Decimal                 // Int64 without the point
)

// units are those of timestamps by their names.
var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// String returns the kind's name, as ParseKind takes it: date, timestamp[us],
// timestamp[us,utc], decimal[2], bool.
func (k Kind) String() string {
	switch k.Of {
	case Boolean:
		return "bool"
	case Date:
		return "date"
	case Decimal:
		return fmt.Sprintf("decimal[%d]", k.Scale)
	case Timestamp:
		for name, unit := range units {
			if unit == k.Unit && k.UTC {
				return "timestamp[" + name + ",utc]"
			} else if unit == k.Unit {
				return "timestamp[" + name + "]"
			}
		}
	}
	return ""
}

// ParseKind returns the kind of a name, and the type that its values are kept as.
func ParseKind(s string) (Kind, Type, error) {
	name, rest, _ := strings.Cut(strings.ToLower(s), "[")
	rest = strings.TrimSuffix(rest, "]")
	switch name {
	case "bool", "boolean":
		return Kind{Of: Boolean}, String, nil
	case "date":
		return Kind{Of: Date}, Int32, nil
	case "decimal":
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 && n <= 18 {
			return Kind{Of: Decimal, Scale: n}, Int64, nil
		}
	case "timestamp":
		unit, utc := strings.CutSuffix(rest, ",utc")
		if unit == "" {
			unit = "us"
		}
		if d, ok := units[unit]; ok {
			return Kind{Of: Timestamp, Unit: d, UTC: utc}, Int64, nil
		}
	}
	return Kind{}, 0, fmt.Errorf("%q is no type; take one of %s, date, timestamp[us], timestamp[us,utc], decimal[2] or bool", s, strings.Join(typeNames[:], ", "))
}
