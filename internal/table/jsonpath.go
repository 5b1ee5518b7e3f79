package table

import (
	"maps"
	"slices"
	"strings"
)

// jsonPaths are the columns that are asked for and lie inside objects, as o.z does in
// {"o":{"z":1}}, by their first field.
type jsonPaths map[string][]jsonPath

// jsonPath is such a column: its name, and the fields that lead to it behind the first.
type jsonPath struct {
	name []byte
	rest []string
}

// pathsOf returns the columns whose names have points.
func pathsOf(o Options) jsonPaths {
	paths := jsonPaths{}
	asked := slices.Concat(o.Columns, slices.Sorted(maps.Keys(o.Types)), []string{o.Probe.Name})
	slices.Sort(asked)
	for _, name := range slices.Compact(asked) {
		if first, rest, ok := strings.Cut(name, "."); ok {
			paths[first] = append(paths[first], jsonPath{[]byte(name), strings.Split(rest, ".")})
		}
	}
	return paths
}

// has reports whether a column is one of the paths.
func (p jsonPaths) has(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(p[first], func(path jsonPath) bool { return string(path.name) == name })
}

// drop takes a column out: there is a field that is called so itself.
func (p jsonPaths) drop(name string) {
	first, _, _ := strings.Cut(name, ".")
	p[first] = slices.DeleteFunc(p[first], func(path jsonPath) bool { return string(path.name) == name })
}

// walk is walk that calls f also for the values at the paths, with inside set.
func (p jsonPaths) walk(line []byte, f func(key, value []byte, inside bool) error) error {
	return walk(line, func(key, value []byte) error {
		if err := f(key, value, false); err != nil {
			return err
		}
		for _, path := range p[string(key)] {
			if v := path.in(value); v != nil {
				if err := f(path.name, v, true); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// in returns the value that the path leads to, nil if there is none. Of several fields
// with a name, the first counts.
func (p jsonPath) in(value []byte) []byte {
	for _, name := range p.rest {
		if value[0] != '{' {
			return nil
		}
		var next []byte
		_ = eachField(value, func(key, v []byte) error { // f returns no error
			if next == nil && string(key) == name {
				next = v
			}
			return nil
		})
		if value = next; value == nil {
			return nil
		}
	}
	return value
}
