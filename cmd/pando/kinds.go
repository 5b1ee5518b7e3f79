package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandostore"
)

// note is the command's remark in a file about the keys and values of an index,
// whose types there are those of Go: which numbers are dates.
type note struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
	// Name is that of the column of values, if there is only one.
	Name string `json:"valueName,omitempty"`
	// Values are the columns that values are JSON objects of, if there are several.
	Values []part `json:"values,omitempty"`
}

// readNote returns the command's remark in a note, the zero value if it is of another program. What is
// behind it is not read: a store adds a line to the notes of its checkpoints.
func readNote(text string) (n note) {
	if json.NewDecoder(strings.NewReader(text)).Decode(&n) != nil {
		return note{}
	}
	return n
}

// longestName bounds the bytes of a name in a note, which has room for a thousand.
const longestName = 256

// noteText returns the note for kinds and for the columns of values, "" if there is
// nothing to say. It fits the checkpoints of a store, hence any file. A column is called value without it, and so is one of a table without
// a header, whose name is a number, and one whose name JSON cannot have or makes too
// long for a note.
func noteText(key, value table.Kind, name string, several []table.Field) string {
	if _, err := strconv.Atoi(name); err == nil || name == "value" || len(name) > longestName || !utf8.ValidString(name) {
		name = ""
	}
	if key == (table.Kind{}) && value == (table.Kind{}) && name == "" && several == nil {
		return ""
	}
	text, err := json.Marshal(note{key.String(), value.String(), name, partNotes(several)})
	if err != nil {
		return "" // impossible: these are strings
	}
	if len(text) > pandostore.MaxNote && name != "" {
		return noteText(key, value, "", several)
	}
	return string(text)
}

// kinded is an index whose file says what its keys and values are.
type kinded struct {
	typed.Index
	key, value table.Kind
	name       string        // of the column of values, "" if there is none
	parts      []table.Field // of values that are objects of several columns
}

// withKinds returns an index with the kinds that its file says, where it does. A note
// of another program is none of ours.
func withKinds(ix typed.Index, text string) typed.Index {
	n := readNote(text)
	value, _ := ix.Value()
	k := kinded{Index: ix, key: kindFor(n.Key, ix.Key()), value: kindFor(n.Value, value), name: n.Name}
	if value == table.String {
		k.parts = partFields(n.Values)
	}
	if k.key == (table.Kind{}) && k.value == (table.Kind{}) && k.name == "" && k.parts == nil {
		return ix
	}
	return k
}

// kindFor returns the kind of a name, if values of a type can be of it.
func kindFor(name string, t table.Type) table.Kind {
	kind, kept, err := table.ParseKind(name)
	if err != nil || kept != t && !(kept == table.Int64 && t == table.Int32) {
		return table.Kind{}
	}
	return kind
}

// keyField returns the column of an index's keys.
func keyField(ix typed.Index) table.Field {
	f := table.Field{Name: "key", Type: ix.Key()}
	if k, ok := ix.(kinded); ok {
		f.Kind = k.key
	}
	return f
}

// valueField returns the column of an index's values.
func valueField(ix typed.Index, name string) table.Field {
	t, _ := ix.Value()
	f := table.Field{Name: name, Type: t}
	if k, ok := ix.(kinded); ok {
		f.Kind = k.value
		if k.parts != nil {
			f.Native = newParts(k.parts)
		}
	}
	return f
}

// valueName returns the name of an index's column of values: that which it had in the
// table, if the file says so.
func valueName(ix typed.Index) string {
	if k, ok := ix.(kinded); ok && k.name != "" {
		return k.name
	}
	return "value"
}
