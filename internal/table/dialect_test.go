package table

import (
	"strings"
	"testing"
)

// TestLongFirstRecord tests that types are guessed from records, not from what is
// left of them in the first chunk.
func TestLongFirstRecord(t *testing.T) {
	for name, text := range map[string]string{
		"x.csv":   "id,text\n1," + strings.Repeat("x", 3*chunkSize) + "\n2,y\n",
		"x.jsonl": `{"id":1,"text":"` + strings.Repeat("x", 3*chunkSize) + "\"}\n" + `{"id":2,"text":"y","late":1}` + "\n",
	} {
		b := readAll(t, tempFile(t, name, text), Options{})
		if c := b.Columns[0]; c.Type != Int64 || b.Rows != 2 || c.Int64[1] != 2 || b.Columns[1].String[1] != "y" {
			t.Errorf("%s: %v, %d rows", name, c.Type, b.Rows)
		}
	}
}

// TestDialects tests what is decided about texts that nothing is known of, and
// about those that say they are tables.
func TestDialects(t *testing.T) {
	for _, c := range []struct {
		name, text string
		o          Options
		columns    string
		rows       int
	}{
		{"x", "1\n2\n3\n", Options{}, "1", 3},
		{"x.txt", "a\nb\n", Options{}, "1", 2},
		{"x.txt", "a\nb\n", Options{Header: true}, "a", 1},
		{"x.txt", "a\nb\n", Options{Columns: []string{"a"}}, "a", 1},
		{"x.txt", "\"a\nb\n", Options{}, "1", 2},
		{"x.txt", "5\" disk, old\nb\n\nc", Options{}, "1", 4},
		{"x.txt", "a,b\n1,2\n", Options{}, "a b", 1},
		{"x.txt", "a\tb\n1\t2\n", Options{}, "a b", 1},
		{"x.txt", "\ufeffa|b\r\n1|2\r\n", Options{}, "a b", 1},
		{"x.csv", "a;b\n1;2,5\n", Options{}, "a b", 1},
		{"x.csv", "1\n2\n", Options{}, "1", 2},
		{"x.csv", "1\n2\n", Options{Header: true}, "1", 1},
		{"x.csv", "2019\n2\n", Options{Columns: []string{"2019"}}, "2019", 1},
		{"x.csv", "word\n2\n", Options{}, "word", 1},
		{"x.csv", "1,2\n3,4\n", Options{}, "1 2", 1},
		{"x.csv", "1,2\n3,4\n", Options{NoHeader: true}, "1 2", 2},
		{"x.csv", "a,b\n", Options{Format: "lines"}, "1", 1},
		{"x.csv", "\"a,b\nc,d\n", Options{NoQuotes: true}, "\"a b", 1},
	} {
		b := readAll(t, tempFile(t, c.name, c.text), c.o)
		var names []string
		for _, col := range b.Columns {
			names = append(names, col.Name)
		}
		if got := strings.Join(names, " "); got != c.columns || b.Rows != c.rows {
			t.Errorf("%s %q %+v: columns %q, %d rows, want %q, %d", c.name, c.text, c.o, got, b.Rows, c.columns, c.rows)
		}
	}
}
