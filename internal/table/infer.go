package table

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/table/cols"
)

// guess is the possible types of the values of a column seen so far. The zero
// value has seen nothing.
type guess struct {
	seen      bool // some value is not empty
	notInt    bool // some value is not an int64
	notUint   bool // some value is not a uint64
	notWhole  bool // some value is not a sequence of digits
	notFloat  bool
	hasDigits bool   // some value is a number other than a word such as inf or nan
	zeros     string // a number with leading zeros
	large     string // a number that float64 does not hold all digits of
	notDate   bool   // some value is not a date as ISO 8601 has it: 2020-01-31
	notJSON   bool   // some value is not written as JSON writes numbers: 007, +1, .5
}

// see takes one more value into account.
func (g *guess) see(b []byte) {
	b = trim(b)
	if len(b) == 0 || g.notFloat && g.notDate {
		return
	}
	g.seen = true
	if g.notDate = g.notDate || !isDay(b); g.notFloat {
		return
	}
	g.notJSON = g.notJSON || !isNumber(b)
	n, i := parseInt(b)
	m, u := parseUint(b)
	g.notInt = g.notInt || i != fine
	g.notUint = g.notUint || u != fine
	g.notWhole = g.notWhole || i == syntax
	if i == fine || u == fine {
		if len(b) > 1 && b[0] == '0' && g.zeros == "" {
			g.zeros = string(b)
		}
		if i == fine {
			m = uint64(max(n, -n))
		}
		if g.large == "" && !exactFloat(m) {
			g.large = string(b)
		}
		g.hasDigits = true
		return
	}
	if i == size && g.large == "" {
		g.large = string(b)
	}
	v, f := parseFloat(b, 64)
	g.notFloat = g.notFloat || f != fine
	if f == fine && g.large == "" && !holdsDigits(v, b) {
		g.large = string(b)
	}
	g.hasDigits = g.hasDigits || strings.ContainsAny(string(b), "0123456789")
}

// exactFloat reports whether float64 holds a whole number as it is.
func exactFloat(v uint64) bool { return bits.Len64(v)-bits.TrailingZeros64(v) <= 53 }

// loss describes the loss of a column by a guessed type, "" if there is none.
func (g *guess) loss(f Field) string {
	switch {
	case f.Type == String:
		return ""
	case g.zeros != "":
		return fmt.Sprintf("column %q is %v, which loses zeros as in %s; --type %s=string keeps them", f.Name, f.Type, quoted(g.zeros), f.Name)
	case f.Type == Float64 && g.large != "":
		return fmt.Sprintf("column %q is %v, which does not hold all digits of %s, so that different numbers may become one; --type %s=string keeps them",
			f.Name, f.Type, g.large, f.Name)
	}
	return ""
}

// losses returns the losses by guessed types. from has the number of each column in
// the input.
func losses(schema []Field, from []int, guesses []guess, o Options) (notes []string) {
	for i, f := range schema {
		f.Name = strings.TrimSpace(f.Name)
		if _, typed := typeOf(o, f.Name); typed || from[i] >= len(guesses) {
			continue
		}
		if o.Probe.Name != "" && i == len(schema)-1 {
			continue // its type is the index's
		}
		if text := guesses[from[i]].loss(f); text != "" {
			notes = append(notes, text)
		}
	}
	return notes
}

// isNumber reports whether a text is a number in JSON.
func isNumber(b []byte) bool {
	return len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') && json.Valid(b)
}

// text marks the column as one of strings.
func (g *guess) text() {
	g.seen, g.notFloat, g.notInt, g.notUint, g.notDate = true, true, true, true, true
}

// isDay reports whether a text is a date as it is written again: 2020-01-31.
func isDay(b []byte) bool {
	if len(b) != len(time.DateOnly) || b[4] != '-' || b[7] != '-' {
		return false
	}
	_, err := time.Parse(time.DateOnly, string(b))
	return err == nil
}

// result returns the first of date, int64, uint64, float64 and string that holds
// every value exactly as written: whole numbers too large for 64 bits stay
// strings, since float64 would make different ones equal.
func (g *guess) result() (Type, Kind) {
	switch {
	case g.seen && !g.notDate:
		return Int32, Kind{Of: cols.Date}
	case !g.seen || !g.hasDigits:
		return String, Kind{}
	case !g.notInt:
		return Int64, Kind{}
	case !g.notUint:
		return Uint64, Kind{}
	case !g.notFloat && g.notWhole:
		return Float64, Kind{}
	}
	return String, Kind{}
}

// field returns a column of a guessed type. Where text is passed on, it has a type only
// if that is asked for and loses nothing; else it stays text.
func (g *guess) field(name string, o Options) Field {
	t, kind := g.result()
	number := t != String && kind == (Kind{}) && !g.notJSON
	f := Field{Name: name, Type: t, Kind: kind, Exact: o.Pass && o.Typed && number}
	switch {
	case !o.Pass, o.Typed && kind.Of == cols.Date, o.Typed && number && g.loss(f) == "":
		return f
	case number:
		return Field{Name: name, Type: String, Form: Number}
	}
	return Field{Name: name, Type: String}
}

// choose finds the wanted columns among those of the input, and their types.
// It returns the schema, and for each of its columns the index in the input.
func choose(names []string, guesses []guess, o Options) (schema []Field, from []int, err error) {
	from, err = pick(names, o)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range from {
		f := Field{Name: names[i], Type: String}
		if t, ok := typeOf(o, f.Name); ok {
			f.Type = t
			f.Kind, _ = saidOf(o.Kinds, f.Name)
			f.Exact, _ = saidOf(o.Exact, f.Name)
		} else if i < len(guesses) {
			f = guesses[i].field(f.Name, o)
		}
		schema = append(schema, f)
	}
	if o.Probe.Name == "" {
		return schema, from, nil
	}
	i, err := find(names, o.Probe.Name)
	return append(schema, o.Probe), append(from, i), err
}

// pick finds the wanted columns among those of the input, all if none are
// named.
func pick(names []string, o Options) (from []int, err error) {
	for name := range o.Types {
		if find, trimmed := slices.Index(names, name), trimmedIndex(names, name); find < 0 && trimmed < 0 {
			return nil, noColumn(name, names)
		}
	}
	if o.Columns == nil {
		for i := range names {
			from = append(from, i)
		}
		return from, nil
	}
	for _, name := range o.Columns {
		i, err := find(names, name)
		if err != nil {
			return nil, err
		}
		from = append(from, i)
	}
	return from, nil
}

// find returns the place of a column.
func find(names []string, name string) (int, error) {
	i := slices.Index(names, name)
	if i < 0 {
		i = trimmedIndex(names, name)
	}
	if i < 0 {
		return 0, noColumn(name, names)
	}
	if slices.Contains(names[i+1:], name) {
		return 0, &Error{Column: name, What: "there are two columns with this name; rename one"}
	}
	return i, nil
}

// trimmedIndex finds a name that has spaces around it in the input.
func trimmedIndex(names []string, name string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.TrimSpace(n) == strings.TrimSpace(name) })
}

// typeOf returns the type that was asked for a column.
func typeOf(o Options, name string) (Type, bool) { return saidOf(o.Types, name) }

// saidOf returns what is said of a column, by its name in the input or by that without
// the spaces around it.
func saidOf[V any](of map[string]V, name string) (V, bool) {
	if v, ok := of[name]; ok {
		return v, true
	}
	v, ok := of[strings.TrimSpace(name)]
	return v, ok
}

func noColumn(name string, names []string) *Error {
	const most = 20
	list := names[:min(len(names), most)]
	e := wrong("there is no column %q; there are: %s", name, strings.Join(list, ", "))
	if len(names) > most {
		e.What += ", …"
	}
	return e
}
