package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/internal/device/cuda"
)

// Runs every experiment, small, on one thread and on two: its own checks
// compare each answer, so passing means that all systems agree.
func TestExperimentsRun(t *testing.T) {
	for _, e := range allExperiments {
		t.Run(e.Name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "out.json")
			var out, progress bytes.Buffer
			args := []string{"run", "--n", "2000", e.Name, "--rounds", "1", "--queries", "500",
				"--threads=1,2", "--seconds", "0.01", "--json", file}
			if code := realMain(args, &out, &progress); code != exitOK {
				t.Fatalf("exit code %d\n%s\n%s", code, out.String(), progress.String())
			}
			checkReport(t, file, e)
			if !strings.Contains(out.String(), e.Name+": ") {
				t.Errorf("no heading in the output:\n%s", out.String())
			}
			if table := strings.Contains(out.String(), "system"); table == leftOut(e) {
				t.Errorf("a table in the output: %v\n%s", table, out.String())
			}
		})
	}
}

// leftOut reports whether an experiment cannot run on this machine.
func leftOut(e *contest.Experiment) bool {
	if !strings.HasPrefix(e.Name, "gpu-") && !strings.HasPrefix(e.Name, "hybrid-") {
		return false
	}
	_, err := cuda.Devices()
	return err != nil
}

// ownSizes reports whether an experiment has rows of further sizes that follow
// from the requested one.
func ownSizes(e *contest.Experiment) bool {
	return slices.Contains([]string{"key-size", "fast-build", "stops", "values", "values-memory"}, e.Name)
}

// counts reports whether an experiment counts instead of measuring time.
func counts(e *contest.Experiment) bool {
	return slices.Contains([]string{"memory", "tree-memory", "key-entropy", "stops", "waits", "values-memory", "values-waves", "cluster-failover"}, e.Name)
}

func checkReport(t *testing.T, file string, e *contest.Experiment) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rep contest.Report
	if err := json.Unmarshal(text, &rep); err != nil {
		t.Fatal(err)
	}
	if rep.Machine.CPU == "" || !strings.Contains(rep.Command, e.Name) || len(rep.Experiments) != 1 {
		t.Fatalf("the file does not say what ran: %s", text)
	}
	if leftOut(e) {
		if res := rep.Experiments[0]; len(res.Rows) > 0 || len(res.Skipped) != 1 || !strings.Contains(res.Skipped[0], "needs a GPU") {
			t.Errorf("without a GPU the file holds %d rows and says %q", len(res.Rows), res.Skipped)
		}
		return
	}
	references := 0
	for _, r := range rep.Experiments[0].Rows {
		if r.Reference {
			references++
		}
		if r.N != 2000 && !ownSizes(e) || r.System == "" {
			t.Errorf("row without a system or size: %+v", r)
		}
		if !counts(e) && (len(r.Rounds) != 1 || r.Best <= 0 || r.Median < r.Best) {
			t.Errorf("row without times: %+v", r)
		}
	}
	if references == 0 {
		t.Error("no row is Pando's reference")
	}
}

// Small sizes around a node and a leaf, where a layout has edge cases.
func TestExperimentsRunAtSmallSizes(t *testing.T) {
	for _, n := range []string{"1", "2", "9", "73"} {
		var out, progress bytes.Buffer
		args := []string{"run", "point-u64", "point-u32", "rank-u32", "range", "skew", "fanout", "node-search",
			"--n", n, "--rounds", "1", "--queries", "64", "--seconds", "0.001"}
		if code := realMain(args, &out, &progress); code != exitOK {
			t.Errorf("n %s: exit code %d\n%s", n, code, progress.String())
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // part of the error
	}{
		{"", "say what to do"},
		{"walk", `no command "walk"`},
		{"list point-u64", "list takes no arguments"},
		{"run", "at least one experiment"},
		{"run point-u65", `no experiment "point-u65": choose from point-u64`},
		{"run point-u64 --n 16X", `"16X" is not a size`},
		{"run point-u64 --n 0", `"0" is not a size`},
		{"run point-u64 --n 16M,", `"" is not a size`},
		{"run point-u64 --n -5", `"-5" is not a size`},
		{"run point-u64 --n 99999999999G", "is not a size"},
		{"run point-u64 --threads 0", "not a whole number above 0"},
		{"run point-u64 --threads 1000000", "too many"},
		{"run point-u64 --rounds none", "not a whole number above 0"},
		{"run gpu-rank-u32 --gpu -1", "counted from 0"},
		{"run point-u64 --seconds -1", "not a number of seconds"},
		{"run point-u64 --seconds NaN", "not a number of seconds"},
		{"run point-u64 --colour red", "colour"},
		{"run point-u64 --n", "flag needs an argument"},
	} {
		var out, errs bytes.Buffer
		if code := realMain(strings.Fields(c.args), &out, &errs); code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", c.args, code, exitUsage)
		}
		if !strings.Contains(errs.String(), c.want) || !strings.Contains(errs.String(), "--help") {
			t.Errorf("%q: error %q does not say %q and what to do next", c.args, errs.String(), c.want)
		}
		if out.Len() > 0 {
			t.Errorf("%q: printed %q", c.args, out.String())
		}
	}
}

func TestFlagsStandAnywhere(t *testing.T) {
	for _, line := range []string{
		"run --n 1k,2M --rounds 7 skew build --threads 2",
		"run skew --n 1k,2M build --rounds=7 -threads 2",
		"run skew build -n=1k,2M --threads=2 --rounds 7",
	} {
		cmd, err := parseCommand(strings.Fields(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if len(cmd.experiments) != 2 || cmd.experiments[0].Name != "skew" || cmd.experiments[1].Name != "build" {
			t.Errorf("%s: wrong experiments", line)
		}
		c := cmd.cfg
		if len(c.Sizes) != 2 || c.Sizes[0] != 1<<10 || c.Sizes[1] != 2<<20 || c.Rounds != 7 || len(c.Threads) != 1 || c.Threads[0] != 2 {
			t.Errorf("%s: wrong flags: %+v", line, c)
		}
	}
}

func TestHelpAndList(t *testing.T) {
	for _, line := range []string{"--help", "-h", "help", "run --help", "run point-u64 -h"} {
		var out, errs bytes.Buffer
		if code := realMain(strings.Fields(line), &out, &errs); code != exitOK || !strings.Contains(out.String(), "Examples") {
			t.Errorf("%s: exit code %d, %q", line, code, out.String())
		}
	}
	var out, errs bytes.Buffer
	if code := realMain([]string{"list"}, &out, &errs); code != exitOK {
		t.Fatalf("list: exit code %d", code)
	}
	for _, e := range allExperiments {
		if !strings.Contains(out.String(), e.Name) || !strings.Contains(out.String(), e.About) || e.About == "" {
			t.Errorf("list does not show %s", e.Name)
		}
	}
}

func TestSizesReadBack(t *testing.T) {
	for _, n := range []int{1, 2, 1000, 1023, 1 << 10, 1<<20 + 1<<10, 64 << 20, 3 << 30} {
		if got, err := parseSize(contest.SizeText(n)); err != nil || got != n {
			t.Errorf("%d is written %q and read %d, %v", n, contest.SizeText(n), got, err)
		}
	}
}
