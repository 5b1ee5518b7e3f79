// Command pando shows what the Pando index does on this machine.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `pando: an ordered in-memory index for SIMD cores and GPUs

usage:
  pando demo [-n 10000000] [-seed 1]   build an index of n generated pairs and time
                                       every kind of query beside binary search
  pando devices [-json]                list what this machine has: CPU, GPUs with
                                       their memory and driver, the interpreter
  pando help                           this text

examples:
  pando demo                  ten million pairs: half a minute and 1 GB of memory
  pando demo -n 100000000     ten times as many: binary search falls further behind
  pando devices --json        the same list for programs
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
	case "devices":
		return runDevices(args[1:], out, errs)
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

func runDevices(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("pando devices", flag.ContinueOnError)
	flags.SetOutput(errs)
	asJSON := flags.Bool("json", false, "print JSON: sizes in bytes, one object for each GPU")
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "pando devices: takes no argument %q; try `pando devices -h`\n", flags.Arg(0))
		return 2
	}
	inv := takeInventory()
	if !*asJSON {
		inv.print(out)
		return 0
	}
	if err := inv.json(out); err != nil {
		fmt.Fprintln(errs, "pando devices:", err)
		return 1
	}
	return 0
}
