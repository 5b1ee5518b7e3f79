package table

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"github.com/pando-index/pando/internal/table/cols"
)

// inBase64 is the name under which an object has bytes that are no string of JSON.
const inBase64 = "base64"

// Pack returns the rows of columns as JSON objects. Bytes that are not UTF-8 are there
// in base64, as {"base64":"/w=="}, so that Unpack returns the same columns.
func Pack(columns []Column, rows int) []string {
	packed := make([]Column, len(columns))
	var schema []Field
	for i := range columns {
		packed[i] = jsonBytes(&columns[i])
		schema = append(schema, packed[i].Field)
	}
	line := jsonLines(schema)
	objects := make([]string, rows)
	var buf []byte
	for row := range objects {
		buf = line(buf[:0], packed, row)
		objects[row] = string(buf[:len(buf)-1]) // without the line end
	}
	return objects
}

// jsonBytes returns a column in which strings are JSON, if it has any that JSON cannot
// have as they are.
func jsonBytes(c *Column) Column {
	if !hasBytes(c) || c.Foreign != nil {
		return *c
	}
	out := Column{Field: Field{Name: c.Name, Type: String, Form: Token}, Null: c.Null}
	for i, s := range c.String {
		switch {
		case c.IsNull(i):
			out.String = append(out.String, "null")
		case utf8.ValidString(s):
			out.String = append(out.String, string(appendJSON(nil, s)))
		default:
			out.String = append(out.String, `{"`+inBase64+`":"`+base64.StdEncoding.EncodeToString([]byte(s))+`"}`)
		}
	}
	return out
}

// Unpack returns the columns of a schema that Pack has made objects of. Where there is
// no object, all of them are null.
func Unpack(objects *Column, schema []Field) ([]Column, error) {
	b := new(Batch)
	b.Reset(schema)
	place := map[string]int{}
	for i, f := range schema {
		place[f.Name] = i
	}
	var text slab
	for row, object := range objects.String {
		if !objects.IsNull(row) {
			err := walk([]byte(object), func(key, value []byte) error {
				i, ok := place[string(key)]
				if !ok || b.Columns[i].Len() > row {
					return wrong("a value is %s, which has other fields than its file says", quoted(object))
				}
				return unpackValue(&b.Columns[i], value, &text)
			})
			if err != nil {
				return nil, err
			}
		}
		for i := range b.Columns {
			if c := &b.Columns[i]; c.Len() == row {
				c.AppendNull()
			}
		}
	}
	for i := range b.Columns {
		b.Columns[i].Seal()
	}
	return b.Columns, nil
}

// unpackValue adds a value given as JSON, or as bytes in base64.
func unpackValue(c *Column, value []byte, text *slab) error {
	if c.Type != String || c.Kind.Of == cols.UUID || value[0] != '{' {
		return appendJSONValue(c, value, text)
	}
	var bytes map[string][]byte
	if err := json.Unmarshal(value, &bytes); err != nil || len(bytes) != 1 || bytes[inBase64] == nil {
		return wrong("a value is %s, which is neither a string nor bytes in base64", quoted(string(value)))
	}
	c.String = append(c.String, string(bytes[inBase64]))
	return nil
}
