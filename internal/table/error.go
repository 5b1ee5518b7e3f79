package table

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error describes what is wrong with an input, and where. Line and Column are
// 0 and "" if they are not known or do not apply; formats without lines count
// rows, from 1.
type Error struct {
	Path   string
	Line   int
	Column string
	What   string // what is wrong
	Advice string // what to do about it, if that is not clear
	Err    error  // the underlying error, if any
}

// Error returns the whole description in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	if e.Column != "" {
		fmt.Fprintf(&b, ": column %q", clip(e.Column))
	}
	b.WriteString(": " + clip(e.What))
	if e.Advice != "" {
		b.WriteString("; " + clip(e.Advice))
	}
	if e.Err != nil {
		b.WriteString(": " + clip(e.Err.Error()))
	}
	return b.String()
}

// clip shortens a part of a message: names and paths in it are the input's, and have any length.
func clip(s string) string {
	const most = 1000
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrong returns an Error of which only What is known yet.
func wrong(format string, args ...any) *Error {
	return &Error{What: fmt.Sprintf(format, args...)}
}

// caused returns an Error that wraps another error.
func caused(err error, format string, args ...any) *Error {
	e := wrong(format, args...)
	e.Err = err
	return e
}

// quoted returns a value in quotes for a message, shortened if it is long.
func quoted(value string) string {
	const most = 60
	if len(value) > most {
		return strconv.Quote(value[:most]) + "…"
	}
	return strconv.Quote(value)
}

// guard turns a panic of a third-party reader into an error: such readers
// trust the numbers in a file.
func guard(err *error, what string) {
	if r := recover(); r != nil {
		if limit, ok := r.(*Error); ok {
			*err = limit
			return
		}
		*err = wrong("%s is damaged: its reader gave up (%v)", what, r)
	}
}

// asError returns err as an *Error.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return caused(err, "cannot be read")
}
