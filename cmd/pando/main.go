// Command pando shows what the Pando index does on this machine.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `pando: an ordered in-memory index for SIMD cores

usage:
  pando demo [-n 10000000] [-seed 1]   build an index of n generated pairs and time
                                       every kind of query beside binary search
  pando help                           this text

examples:
  pando demo                  ten million pairs: half a minute and 1 GB of memory
  pando demo -n 100000000     ten times as many: binary search falls further behind
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes a command line and gives the exit code: 0 for success, 1 for a
// failure, 2 for a command line that makes no sense.
func run(args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 2
	}
	switch args[0] {
	case "demo":
		return runDemo(args[1:], out, errs)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(out, usage)
		return 0
	}
	fmt.Fprintf(errs, "pando: no command %q; try `pando help`\n", args[0])
	return 2
}

func runDemo(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("pando demo", flag.ContinueOnError)
	flags.SetOutput(errs)
	n := flags.Int("n", 10_000_000, "number of pairs to generate, from 1000 up")
	seed := flags.Uint64("seed", 1, "seed of the generated pairs: the same seed, the same pairs")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "pando demo: takes no argument %q; try `pando demo -h`\n", flags.Arg(0))
		return 2
	case *n < 1000:
		fmt.Fprintf(errs, "pando demo: -n %d is too few to time; take 1000 or more\n", *n)
		return 2
	}
	if err := demo(*n, *seed, out, errs); err != nil {
		fmt.Fprintln(errs, "pando demo:", err)
		return 1
	}
	return 0
}
