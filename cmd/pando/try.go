package main

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/pando-index/pando/internal/demo"
	"github.com/pando-index/pando/internal/scaled"
	"github.com/spf13/cobra"
)

const demoLong = `Build an index of generated pairs in memory and time every kind of query beside
a binary search of the same data. Both must give the same answers, and the
command fails if they do not. Nothing is written to disk.

With --tree the pairs go into a Tree, which is changed and asked, one key at a
time and in batches, beside a Go map.`

const demoExample = `  pando demo               ten million pairs: ten seconds and 1 GB of memory
  pando demo -n 100M       ten times as many: binary search falls further behind
  pando demo --tree        a tree that changes
  pando demo --json        the figures for programs, in nanoseconds`

func newDemo() *cobra.Command {
	n, seed, asJSON, tree := count(10_000_000), uint64(1), false, false
	cmd := &cobra.Command{
		Use:     "demo [flags]",
		Short:   "Time an index of generated pairs beside binary search",
		Long:    demoLong,
		Example: demoExample,
		Args:    takes(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < demo.Least {
				return usagef("-n %d is too few to time; take %d or more", n, demo.Least)
			}
			if tree {
				d, err := demo.Tree(int(n), seed, cmd.ErrOrStderr())
				return show(cmd.OutOrStdout(), d, asJSON, err)
			}
			d, err := demo.Frozen(int(n), seed, cmd.ErrOrStderr())
			return show(cmd.OutOrStdout(), d, asJSON, err)
		},
	}
	cmd.Flags().VarP(&n, "n", "n", "number of pairs to generate, from 1000 up; 16M and 1G are understood")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "seed of the generated pairs: the same seed, the same pairs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&tree, "tree", false, "fill a Tree, change it and ask it, beside a Go map")
	return cmd
}

// show prints a result for people or for programs, unless there was an error.
func show(out io.Writer, result interface{ Print(io.Writer) }, asJSON bool, err error) error {
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(out, result)
	}
	result.Print(out)
	return nil
}

const devicesLong = `List what this machine has that an index can run on: the CPU with its vector
instructions, GPUs with their memory and driver, and the interpreter that runs
GPU kernels without a GPU, for tests. Where there is no GPU, it says why.`

const devicesExample = `  pando devices
  pando devices --json | jq .gpus`

func newDevices() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "devices [flags]",
		Short:   "List the CPU, GPUs and what they can do",
		Long:    devicesLong,
		Example: devicesExample,
		Args:    takes(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			inv := takeInventory()
			if asJSON {
				return inv.json(cmd.OutOrStdout())
			}
			inv.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: sizes in bytes, one object for each GPU")
	return cmd
}

// writeJSON writes a value as JSON on one line, as rows are written.
func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// count is a flag for a number of things.
type count = scaled.Count

// size is a flag for a number of bytes, with K, M and G for KiB, MiB and GiB.
type size int64

func (c *size) String() string { return strconv.FormatInt(int64(*c), 10) }
func (c *size) Type() string   { return "bytes" }

func (c *size) Set(s string) error {
	n, err := scaled.Parse(s, 1024)
	*c = size(n)
	return err
}
