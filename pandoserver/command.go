package pandoserver

import (
	"bytes"
	"strings"

	"github.com/pando-index/pando/pandoserver/internal/resp"
)

// command is a row of the table of commands. It has one of three forms:
//
//   - gather and answer: operations on keys that do not depend on each other's results. Those of
//     many commands are one batch;
//   - modify: one key, whose new value depends on its old one;
//   - run: anything else.
//
// A command that has both of the first two is gathered where gather takes it.
type command struct {
	name    string
	arity   int // arguments with the name; below zero: at least so many
	flags   flags
	keys    [3]int                     // the first key, the last (below zero: from the end), the step; as redis' COMMAND has them
	within  func(args [][]byte) Bounds // or the range of keys that it is about; without either that is all keys
	cats    []string                   // categories, beside those that follow from flags
	summary string
	id      int // its place among all commands, families and their members

	gather func(g *gathering, args [][]byte) (problem string)
	answer func(w *resp.Writer, g *gathering, i item)
	modify func(c *call, old []byte, had bool) (val []byte, what action)
	run    func(c *call)
	subs   *table // of a command that is a family of others
}

// flags say what a command does and needs.
type flags uint16

const (
	reads    flags = 1 << iota // keys or values
	writes                     // changes something
	fast                       // in time that does not depend on the size of the index
	admin                      // for whoever runs the server
	risky                      // takes long, or tells of others
	alone                      // several keys at once: nobody else may change anything meanwhile
	atOnce                     // also between MULTI and EXEC
	noMulti                    // not between MULTI and EXEC
	early                      // before a client has said who it is
	ordered                    // its first key names an index
	connects                   // is about the connection
	presence                   // asks whether keys are there, and not for values
	partly                     // replies with less than a value, which it needs
	secret                     // its arguments may be passwords
)

// action is what becomes of a key.
type action uint8

const (
	leave action = iota
	set
	remove
)

// full returns the name of a command with that of its family.
func (c *command) full(family *command) string {
	if family == nil {
		return c.name
	}
	return family.name + "|" + c.name
}

// takes reports whether a command takes so many arguments, its name included.
func (c *command) takes(n int) bool {
	if c.arity < 0 {
		return n >= -c.arity
	}
	return n == c.arity
}

// categories returns the ACL categories of a command.
func (c *command) categories() []string {
	var all []string
	for _, f := range []struct {
		flag flags
		name string
	}{{reads, "read"}, {writes, "write"}, {admin, "admin"}, {connects, "connection"}} {
		if c.flags&f.flag != 0 {
			all = append(all, f.name)
		}
	}
	all = append(all, c.cats...)
	if c.flags&fast != 0 {
		all = append(all, "fast")
	} else {
		all = append(all, "slow")
	}
	if c.flags&(admin|risky) != 0 {
		all = append(all, "dangerous")
	}
	return all
}

// words returns the flags of a command by redis' names.
func (c *command) words() []string {
	var all []string
	for _, f := range []struct {
		flag flags
		name string
	}{{reads, "readonly"}, {writes, "write"}, {admin, "admin"}, {noMulti, "no_multi"}, {early, "no_auth"}, {fast, "fast"}} {
		if c.flags&f.flag != 0 {
			all = append(all, f.name)
		}
	}
	return all
}

// positions calls yield for each argument that is a key.
func (c *command) positions(args [][]byte, yield func(key []byte)) {
	if c.keys[0] == 0 {
		return
	}
	last := c.keys[1]
	if last < 0 {
		last += len(args)
	}
	for i := c.keys[0]; i <= last && i < len(args); i += c.keys[2] {
		yield(args[i])
	}
}

// table finds commands by their names, in any case of letters.
type table struct {
	byName map[string]*command
	all    []*command
}

func newTable(groups ...[]*command) *table {
	t := &table{byName: map[string]*command{}}
	for _, group := range groups {
		for _, c := range group {
			t.byName[c.name] = c
			t.all = append(t.all, c)
		}
	}
	return t
}

// longestName is at least that of the longest name of a command.
const longestName = 32

// find returns a command, or nil.
func (t *table) find(name []byte) *command {
	if len(name) > longestName {
		return nil
	}
	var lower [longestName]byte
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return t.byName[string(lower[:len(name)])]
}

// is reports whether an argument is a word, in any case of letters.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// Errors as redis words them.
const (
	errSyntax     = "ERR syntax error"
	errNotInt     = "ERR value is not an integer or out of range"
	errNotPos     = "ERR value is out of range, must be positive"
	errOverflow   = "ERR increment or decrement would overflow"
	errTooLarge   = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	errRange      = "ERR min or max not valid string range item"
	errNoDB       = "ERR DB index is out of range"
	errReadOnly   = "READONLY You can't write against a read only index"
	errInMulti    = "ERR Command not allowed inside a transaction"
	errAborted    = "EXECABORT Transaction discarded because of previous errors."
	errOOM        = "OOM command not allowed when used memory > 'maxmemory'."
	errTooMuch    = "ERR the reply is too long: ask for less of it with LIMIT"
	errMaxClients = "ERR max number of clients reached"
)

func wrongArgs(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// longestWord is how much of an argument an error repeats.
const longestWord = 128

// unknown returns the error for a command that is not there, with the begin of its arguments.
func unknown(args [][]byte) string {
	const most = longestWord
	var b strings.Builder
	b.WriteString("ERR unknown command '" + begin(args[0], most) + "', with args beginning with: ")
	list := 0
	for _, a := range args[1:] {
		if list >= most {
			break
		}
		text := begin(a, most-list)
		b.WriteString("'" + text + "' ")
		list += len(text) + 3
	}
	return b.String()
}

// begin returns at most n bytes of an argument for an error, and none from a zero on, as C does.
func begin(arg []byte, n int) string {
	arg = arg[:min(len(arg), n)]
	if zero := bytes.IndexByte(arg, 0); zero >= 0 {
		arg = arg[:zero]
	}
	return string(arg)
}
