// Command pando builds Pando indexes from files, queries them, and shows their
// speed on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	_ "github.com/pando-index/pando/cuda" // --device gpu:0

	"github.com/pando-index/pando/internal/outlet"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes a command line and returns the exit code.
func run(args []string, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	result := &outlet.Outlet{W: out}
	root.SetOut(result)
	root.SetErr(errs)
	root.SetIn(stdinOf(ctx, os.Stdin))
	root.SetArgs(guardNegatives(root, args))
	cmd, err := execute(ctx, root)
	if err == nil {
		err = result.Err
	}
	if err == nil {
		return exitOK
	}
	if stopped := (interruption{}); ctx.Err() != nil && !errors.As(err, &stopped) { // whatever the result
		err = errInterrupted
	}
	fmt.Fprintf(errs, "%s: %s\n", cmd.CommandPath(), plain(err.Error()))
	code := exitCode(err)
	if code == exitUsage {
		fmt.Fprintf(errs, "Try `%s --help`.\n", cmd.CommandPath())
	}
	return code
}

// execute runs a command. A fault in an index file that changes meanwhile is
// returned as an error.
func execute(ctx context.Context, root *cobra.Command) (cmd *cobra.Command, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	watched.reset()
	cmd = root
	defer func() {
		if v := recover(); v != nil {
			err = watched.fault(v)
		} else if changed := watched.check(); changed != nil {
			err = changed
		}
	}()
	return root.ExecuteContextC(ctx)
}

const rootLong = `Pando keeps millions to billions of keys in one file that opens in a
millisecond and answers lookups, ranges and ranks by the million a second.

Make an index from a table with ` + "`pando build`" + `, ask it with get, range, prefix,
count, rank, head and tail, add its values to other tables with join, and sum them up with
sum, stats and histogram. ` + "`pando store`" + ` keeps entries that change.`

const rootExample = `  pando gen -n 1M --dist dense -o people.csv
                                           a table to try things with
  pando build people.csv -o people.pando --key key --value value
  pando get people.pando 42 43             two keys
  pando range people.pando 100 200         all keys from 100 to 200
  pando demo                               how fast is this machine?`

// Groups of commands in the help.
const (
	groupFiles = "files"
	groupAsk   = "ask"
	groupStore = "store"
	groupTry   = "try"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:                        "pando",
		Short:                      "An ordered index for SIMD cores and GPUs, in a file",
		Long:                       rootLong,
		Example:                    rootExample,
		Version:                    version(),
		Args:                       cobra.ArbitraryArgs,
		RunE:                       runRoot,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: groupFiles, Title: "Make and check index files:"},
		&cobra.Group{ID: groupAsk, Title: "Ask an index:"},
		&cobra.Group{ID: groupStore, Title: "Keep entries that change:"},
		&cobra.Group{ID: groupTry, Title: "Try and measure:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			addTo(root, c)
		}
	}
	add(groupFiles, newBuild(), newInfo(), newVerify(), newView())
	add(groupAsk, newGet(), newRange(), newPrefix(), newCount(), newRank(), newHead(), newTail(), newJoin(),
		newSum(), newStats(), newHistogram())
	add(groupStore, newStore(), newServe(), newCluster())
	add(groupTry, newGen(), newBench(), newDemo(), newDevices())
	root.AddCommand(newVersion())
	root.AddCommand(topics()...)
	return root
}

// addTo adds a command to the one above it.
func addTo(above *cobra.Command, c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	c.RunE = withPlainArgs(c.RunE)
	addCompletion(c)
	above.AddCommand(c)
}

// runRoot handles a command line without a command, or with an unknown one, of pando itself
// and of those of its commands that have some below.
func runRoot(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		_ = cmd.Help()
		return usagef("which command?")
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return usagef("no command %q", args[0])
}

// guard marks arguments such as -5, which is a key and not a flag.
const guard = "\x00"

// guardNegatives marks negative numbers, so that flag parsing leaves them
// alone: `pando get FILE -5` should work without a --. An argument after a flag
// that takes a value belongs to the flag, and arguments after -- need no guard.
func guardNegatives(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil {
		return args
	}
	guarded := slices.Clone(args)
	valueOfFlag := false
	for i, a := range args {
		if a == "--" {
			break
		}
		negative := isNegative(a)
		if negative && !valueOfFlag {
			guarded[i] = guard + a
		}
		valueOfFlag = !negative && takesValue(cmd.Flags(), a)
	}
	return guarded
}

// takesValue reports whether an argument is a flag whose value is the next
// argument.
func takesValue(flags *pflag.FlagSet, arg string) bool {
	if len(arg) < 2 || arg[0] != '-' || strings.Contains(arg, "=") {
		return false
	}
	var f *pflag.Flag
	if name, long := strings.CutPrefix(arg, "--"); long {
		f = flags.Lookup(name)
	} else if len(arg) == 2 {
		f = flags.ShorthandLookup(arg[1:])
	}
	return f != nil && f.NoOptDefVal == ""
}

// isNegative reports whether an argument looks like a number below zero.
func isNegative(a string) bool {
	if len(a) < 2 || a[0] != '-' {
		return false
	}
	rest := strings.ToLower(strings.TrimPrefix(a[1:], "."))
	return rest != "" && rest[0] >= '0' && rest[0] <= '9' || rest == "inf" || rest == "infinity"
}

func plain(s string) string { return strings.ReplaceAll(s, guard, "") }

// withPlainArgs removes the guards before a command sees its arguments.
func withPlainArgs(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		for i, a := range args {
			args[i] = strings.TrimPrefix(a, guard)
		}
		return run(cmd, args)
	}
}
