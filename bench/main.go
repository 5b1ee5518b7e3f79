// Command bench compares Pando with the ordered structures a Go program would
// use otherwise, and with what the machine's memory allows at best.
//
//	go run . list
//	go run . run point-u64 rank-u32 --n 16M,64M --threads 1,2
//
// Each experiment prints one table. See README.md for which figure of which
// paper each one reproduces and for how the numbers are measured.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/peers"
)

// Exit codes: a run that failed (a wrong answer, no memory) differs from a
// command line that could not be understood.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(realMain(os.Args[1:], os.Stdout, os.Stderr))
}

// realMain is main without the process around it, so that tests can call it.
func realMain(args []string, stdout, stderr io.Writer) int {
	cmd, err := parseCommand(args)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitUsage
	}
	switch cmd.verb {
	case verbHelp:
		fmt.Fprint(stdout, helpText)
	case verbList:
		printList(stdout)
	case verbRun:
		if err := runAll(cmd, args, stdout, stderr); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
			return exitFailed
		}
	case verbReport:
		if err := makeReport(cmd.report, stdout, stderr); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
			return exitFailed
		}
	}
	return exitOK
}

// runAll runs the named experiments in the given order. The JSON file is
// rewritten after each set of rows, so that a run that is aborted, or takes too
// long, keeps its results so far.
func runAll(cmd command, args []string, stdout, stderr io.Writer) (err error) {
	if cmd.cfg.CPUProfile != "" {
		stop, err := startProfile(cmd.cfg.CPUProfile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	defer func() { err = errors.Join(err, peers.RemovePrograms()) }()
	rep := contest.NewReport("go run . "+strings.Join(args, " "), cmd.cfg.Cores)
	fmt.Fprintln(stdout, contest.MachineText(rep.Machine))
	if cmd.cfg.Rounds < contest.DefaultConfig().Rounds {
		fmt.Fprintf(stderr, "rounds: %d, fewer than %d: take the figures as a first look\n", cmd.cfg.Rounds, contest.DefaultConfig().Rounds)
	}
	for _, e := range cmd.experiments {
		s := contest.NewSession(cmd.cfg, e, stderr)
		s.Measured = func() error {
			res := s.Result()
			res.Notes = append(slices.Clone(res.Notes), contest.CutShort)
			return rep.With(res).Write(cmd.cfg.JSON)
		}
		if err := e.Run(s); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		res := s.Result()
		res.Print(stdout)
		rep = rep.With(res)
		if err := rep.Write(cmd.cfg.JSON); err != nil {
			return err
		}
	}
	return nil
}

func startProfile(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
