package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes; `pando help exit-codes` describes them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitInterrupted = 130 // as in shells: 128 plus the signal's number
)

// usageError is an error in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

var (
	errNotFound          = errors.New("not found")
	errInterrupted error = interruption{"nothing was written"}
)

// interruption says what was done when a command was interrupted.
type interruption struct{ done string }

func (i interruption) Error() string { return "interrupted; " + i.done }

func exitCode(err error) int {
	var usage usageError
	var stopped interruption
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errNotFound):
		return exitNotFound
	case errors.As(err, &stopped):
		return exitInterrupted
	}
	return exitFailure
}

// takes checks the number of arguments; its error names the missing ones.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("needs %s", what)
		case most >= 0 && len(args) > most && most == 0:
			return usagef("takes no argument %q", plain(args[0]))
		case most >= 0 && len(args) > most:
			return usagef("takes %s, and no %q", what, plain(args[most]))
		}
		return nil
	}
}
