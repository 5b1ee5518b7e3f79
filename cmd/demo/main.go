// Command demo shows Pando on this machine: it builds an index of generated pairs and
// times every kind of query beside a binary search of the same data.
//
// It is `pando demo` as a program of its own that needs the library and nothing else:
// the command pando also reads tables and serves pages, and takes minutes to compile
// where nothing is compiled yet.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pando-index/pando/internal/demo"
	"github.com/pando-index/pando/internal/outlet"
	"github.com/pando-index/pando/internal/scaled"

	_ "github.com/pando-index/pando/cuda" // a GPU is tried from a million pairs on
)

// Exit codes, as those of the command pando.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

const help = `Build an index of generated pairs in memory and time every kind of query beside
a binary search of the same data. Both must give the same answers, and the
command fails if they do not. Nothing is written to disk.

With -tree the pairs go into a Tree, which is changed and asked, one key at a
time and in batches, beside a Go map.

Usage:
  demo [flags]

Examples:
  demo               ten million pairs: ten seconds and 1 GB of memory
  demo -n 100M       ten times as many: binary search falls further behind
  demo -tree         a tree that changes
  demo -json         the figures for programs, in nanoseconds

Flags:
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// usageError is an error in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run executes a command line and returns the exit code.
func run(args []string, out, errs io.Writer) int {
	err := execute(args, out, errs)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errs, "demo: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(errs, "Try `demo -help`.")
		return exitUsage
	}
	return exitFailure
}

// result is the result of a demonstration.
type result interface{ Print(io.Writer) }

func execute(args []string, out, errs io.Writer) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run says what is wrong
	flags.Usage = func() {}
	n := scaled.Count(10_000_000)
	flags.Var(&n, "n", "`count` of pairs to generate, from 1000 up; 16M and 1G are understood")
	seed := flags.Uint64("seed", 1, "seed of the generated pairs: the same seed, the same pairs")
	asJSON := flags.Bool("json", false, "print JSON")
	tree := flags.Bool("tree", false, "fill a Tree, change it and ask it, beside a Go map")
	stdout := &outlet.Outlet{W: out}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, help)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return stdout.Err
	case err != nil:
		return usageError{err}
	case flags.NArg() > 0:
		return usagef("takes no argument %q", flags.Arg(0))
	case n < demo.Least:
		return usagef("-n %d is too few to time; take %d or more", n, demo.Least)
	}
	found, err := show(int(n), *seed, *tree, errs)
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		if err := e.Encode(found); err != nil {
			return err
		}
	} else {
		found.Print(stdout)
	}
	return stdout.Err
}

// show runs the demonstration of a tree, or of an index that does not change.
func show(n int, seed uint64, tree bool, progress io.Writer) (result, error) {
	if tree {
		return demo.Tree(n, seed, progress)
	}
	return demo.Frozen(n, seed, progress)
}
