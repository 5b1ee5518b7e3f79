package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pando-index/pando"
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
			if n < 1000 {
				return usagef("-n %d is too few to time; take 1000 or more", n)
			}
			if tree {
				d, err := demoTree(int(n), seed, cmd.ErrOrStderr())
				return show(cmd.OutOrStdout(), d, asJSON, err)
			}
			d, err := demo(int(n), seed, cmd.ErrOrStderr())
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
func show(out io.Writer, result interface{ print(io.Writer) }, asJSON bool, err error) error {
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(out, result)
	}
	result.print(out)
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

// runningPlace describes where an index runs, for programs and people.
type runningPlace struct {
	Device       string `json:"device"`
	Reason       string `json:"reason"`
	Instructions string `json:"instructions"`
	Cores        int    `json:"cores"`
}

func placeOf(s pando.Stats) runningPlace {
	return runningPlace{s.Device.String(), s.Reason, s.Path, s.Workers}
}

func (p runningPlace) String() string {
	return fmt.Sprintf("%s, %s instructions, %d cores (%s)", p.Device, p.Instructions, p.Cores, p.Reason)
}

// writeJSON writes a value as JSON on one line, as rows are written.
func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// count is a flag for a number of things, with K, M and G for thousands,
// millions and thousands of millions.
type count int64

func (c *count) String() string { return strconv.FormatInt(int64(*c), 10) }
func (c *count) Type() string   { return "count" }

func (c *count) Set(s string) error {
	n, err := parseScaled(s, 1000)
	*c = count(n)
	return err
}

// size is a flag for a number of bytes, with K, M and G for KiB, MiB and GiB.
type size int64

func (c *size) String() string { return strconv.FormatInt(int64(*c), 10) }
func (c *size) Type() string   { return "bytes" }

func (c *size) Set(s string) error {
	n, err := parseScaled(s, 1024)
	*c = size(n)
	return err
}

// parseScaled reads numbers such as 5, 1.5M and 2G, in powers of unit.
func parseScaled(s string, unit float64) (int64, error) {
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	scale := 1.0
	for i, suffix := range []string{"K", "M", "G", "T"} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number = rest
			for range i + 1 {
				scale *= unit
			}
		}
	}
	if n, err := strconv.ParseInt(strings.ReplaceAll(number, "_", ""), 10, 64); err == nil && scale == 1 && n >= 0 {
		return n, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f >= 0 && f*scale < 1<<62) {
		return 0, fmt.Errorf("%q is no number of things; write 5000, 16M or 1.5G", s)
	}
	return int64(f * scale), nil
}
