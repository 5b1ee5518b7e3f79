package cols

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is the meaning of values in all formats, beyond the Type that they are kept
// as.
type Kind struct {
	Of    KindOf
	Unit  time.Duration // of a timestamp or a time of day
	UTC   bool          // a timestamp is a moment, not the local time of some clock
	Scale int           // digits of a decimal behind the point
	Bits  int           // of an integer or a decimal that is passed on; below 0 where it has no sign
}

// KindOf is a kind without its parameters.
type KindOf uint8

const (
	Other     KindOf = iota // nothing but its type; for other formats text
	Boolean                 // "true" or "false" in a column of strings
	Date                    // days since 1970, Int32
	Timestamp               // units of time since 1970, Int64
	Decimal                 // Int64 without the point
	Time                    // units of time since midnight, Int64, or Int32 if they are long
	UUID                    // 16 bytes in a column of strings, in the order of their text
	Binary                  // bytes in a column of strings that need not be text
	Integer                 // of values that are passed on: the width they have in their file
	Wide                    // of values that are passed on: decimals of 19 to 38 digits
)

// units are those of timestamps by their names.
var units = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "ns": time.Nanosecond}

// String returns the kind's name, as ParseKind takes it: date, timestamp[us],
// timestamp[us,utc], time[us], decimal[2], bool, uuid, binary. An integer has none:
// its type says all.
func (k Kind) String() string {
	switch k.Of {
	case Boolean:
		return "bool"
	case Date:
		return "date"
	case UUID:
		return "uuid"
	case Binary:
		return "binary"
	case Decimal:
		return fmt.Sprintf("decimal[%d]", k.Scale)
	case Time:
		return "time[" + k.unitName() + "]"
	case Timestamp:
		if k.UTC {
			return "timestamp[" + k.unitName() + ",utc]"
		}
		return "timestamp[" + k.unitName() + "]"
	}
	return ""
}

// unitName returns the name of the kind's unit.
func (k Kind) unitName() string {
	for name, unit := range units {
		if unit == k.Unit {
			return name
		}
	}
	return "us"
}

// ParseKind returns the kind of a name, and the type that its values are kept as.
func ParseKind(s string) (Kind, Type, error) {
	name, rest, _ := strings.Cut(strings.ToLower(s), "[")
	rest = strings.TrimSuffix(rest, "]")
	switch name {
	case "bool", "boolean":
		return Kind{Of: Boolean}, String, nil
	case "uuid":
		return Kind{Of: UUID}, String, nil
	case "binary":
		return Kind{Of: Binary}, String, nil
	case "date":
		return Kind{Of: Date}, Int32, nil
	case "decimal":
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 && n <= 18 {
			return Kind{Of: Decimal, Scale: n}, Int64, nil
		}
	case "timestamp", "time":
		unit, utc := strings.CutSuffix(rest, ",utc")
		if unit == "" {
			unit = "us"
		}
		if d, ok := units[unit]; ok && name == "time" && !utc && d >= time.Millisecond {
			return Kind{Of: Time, Unit: d}, Int32, nil // as Parquet and Arrow have them
		} else if ok && name == "time" && !utc {
			return Kind{Of: Time, Unit: d}, Int64, nil
		} else if ok && name == "timestamp" {
			return Kind{Of: Timestamp, Unit: d, UTC: utc}, Int64, nil
		}
	}
	return Kind{}, 0, fmt.Errorf("%q is no type; take one of %s, date, timestamp[us], timestamp[us,utc], time[us], decimal[2], bool, uuid or binary", s, strings.Join(typeNames[:], ", "))
}
