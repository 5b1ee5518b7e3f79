package cols

// Form tells how the strings of a column are to be taken.
type Form uint8

const (
	Plain  Form = iota // they are the values
	Token              // each is a value as JSON has it
	Object             // each is a whole row, a JSON object
	Number             // text that JSON has as numbers, where they are written as it does
)

// Foreign is the values of a column that has none of the types here, as its file
// has them: dates, decimals, lists. They can be passed on, to a file of the same
// format as they are, and to others as text.
type Foreign interface {
	// Len returns the number of values, nulls among them.
	Len() int
	// Pick returns the values of some rows.
	Pick(rows []int) Foreign
	// AppendText adds a value that is not null as people write it: 2020-01-31,
	// 1.50. Lists and other nested values are JSON.
	AppendText(buf []byte, i int) []byte
	// AppendJSON adds a value that is not null as JSON.
	AppendJSON(buf []byte, i int) []byte
	// Kind returns the kind that other formats have as well.
	Kind() Kind
	// Int returns a value of a kind that numbers are of as a number: 1 for true, days
	// or units of time since 1970.
	Int(i int) int64
	// AppendBytes adds the bytes of a value of the kind UUID or Binary, and those of a
	// Wide one: 16, the highest first.
	AppendBytes(buf []byte, i int) []byte
}
