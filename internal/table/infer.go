package table

import (
	"slices"
	"strings"
)

// guess is what the values of a column seen so far can be. The zero value has
// seen nothing.
type guess struct {
	seen      bool // some value is not empty
	notInt    bool // some value is not an int64
	notUint   bool // some value is not a uint64
	notWhole  bool // some value is not a sequence of digits
	notFloat  bool
	hasDigits bool // some value is a number other than a word such as inf or nan
}

// see takes one more value into account.
func (g *guess) see(b []byte) {
	b = trim(b)
	if len(b) == 0 || g.notFloat {
		return
	}
	g.seen = true
	_, i := parseInt(b)
	_, u := parseUint(b)
	g.notInt = g.notInt || i != fine
	g.notUint = g.notUint || u != fine
	g.notWhole = g.notWhole || i == syntax
	if i == fine || u == fine {
		g.hasDigits = true
		return
	}
	_, f := parseFloat(b, 64)
	g.notFloat = g.notFloat || f != fine
	g.hasDigits = g.hasDigits || strings.ContainsAny(string(b), "0123456789")
}

// text marks the column as one of strings.
func (g *guess) text() { g.seen, g.notFloat, g.notInt, g.notUint = true, true, true, true }

// result returns the first of int64, uint64, float64 and string that holds
// every value exactly as written: whole numbers too large for 64 bits stay
// strings, since float64 would make different ones equal.
func (g *guess) result() Type {
	switch {
	case !g.seen || !g.hasDigits:
		return String
	case !g.notInt:
		return Int64
	case !g.notUint:
		return Uint64
	case !g.notFloat && g.notWhole:
		return Float64
	}
	return String
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
		if t, ok := o.Types[f.Name]; ok {
			f.Type = t
		} else if i < len(guesses) {
			f.Type = guesses[i].result()
		}
		schema = append(schema, f)
	}
	return schema, from, nil
}

// pick finds the wanted columns among those of the input, all if none are
// named.
func pick(names []string, o Options) (from []int, err error) {
	for name := range o.Types {
		if !slices.Contains(names, name) {
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
		i := slices.Index(names, name)
		if i < 0 {
			return nil, noColumn(name, names)
		}
		if slices.Contains(names[i+1:], name) {
			return nil, &Error{Column: name, What: "there are two columns with this name; rename one"}
		}
		from = append(from, i)
	}
	return from, nil
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
