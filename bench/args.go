package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/pando-index/pando/bench/contest"
)

type verb int

const (
	verbHelp verb = iota
	verbList
	verbRun
	verbReport
)

// command is a parsed command line.
type command struct {
	verb        verb
	experiments []*contest.Experiment
	cfg         contest.Config
	report      reportConfig
}

const helpText = `bench measures Pando beside other ordered structures, on this machine.

    go run . list                        what can be measured
    go run . run NAME... [flags]         measure; each NAME prints one table
    go run . run all                     every experiment, at its own sizes
    go run . report FILE... [flags]      a page of result files; see below

Flags may stand before, between or after the names.

    --n 1M,16M,64M     entries; k, M and G are 2^10, 2^20 and 2^30 (key-size:
                       bytes of all keys together)
    --threads 1,2      goroutines that answer queries
    --rounds 5         rounds; in each, every system runs once
    --queries 4M       most queries that one system answers in a round; for the
                       gpu experiments 128M, and 64M for gpu-endtoend; for the
                       hybrid ones 4M to 64M, as README.md says; for
                       fast-sizes 32M, for response-time 16M, for mixed 1M;
                       for gpu-tree-endtoend the one size of its batches
    --seconds 2        time aimed at for one system in one round: a slow system
                       answers fewer of the round's queries
    --systems a,b      only the systems whose name contains one of these words
                       (Pando, the reference, always runs)
    --seed 1           seed of keys and queries
    --gpu 0            number of the GPU
    --cores 16         cores of the machine, for a run that is tied to some of
                       them (taskset): its results join those of the others
    --json FILE        everything measured, every round, and the machine
    --cpuprofile FILE  a profile for go tool pprof

Examples

    go run . run point-u64                            a first look
    go run . run point-u64 rank-u32 --n 16M,64M       larger than the caches
    go run . run point-u64 --n 64M --systems ART      one heavy peer alone
    go run . run threads --threads 1,2,4 --json t.json
    go run . run build memory --n 16M --rounds 7
    go run . run gpu-rank-u32 gpu-point-u64 gpu-endtoend --n 64M
    go run . run hybrid-ways hybrid-balance batcher --n 64M
    go run . run strings --n 16M                      URLs, UUIDs, phone numbers
    go run . run key-size --n 256M                    256 MiB of keys of each size
    go run . run set-random set-batch writers --n 16M the tree that changes

report takes files of --json, or folders of them, from any number of machines:

    --out FILE         the page: every figure of the papers, with ours beside
    --svg DIR          each plot as a picture
    --picture FILE     lookups beside every peer as one picture
    --readme FILE      names the pictures between the marks in a README
    --json FILE        all results in one file; .gz compresses it

    go run . report cpu.json gpu.json --out report.html
    go run . report cpu.json gpu.json --json results/2026-11.json.gz

A table goes to standard output, progress to standard error. A system that
does not fit into the memory now free is left out, and a line says so.
README.md explains the columns and names the paper's figure for each name.
`

// seeHelp ends an error about the command line with what to do next.
const seeHelp = "\n'go run . --help' shows examples, 'go run . list' the names"

func parseCommand(args []string) (command, error) {
	if len(args) == 0 {
		return command{}, errors.New("say what to do: list, run NAME..., report FILE... or --help" + seeHelp)
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		return command{verb: verbHelp}, nil
	case "list":
		if len(args) > 1 {
			return command{}, fmt.Errorf("list takes no arguments, got %q"+seeHelp, args[1:])
		}
		return command{verb: verbList}, nil
	case "run":
		return parseRun(args[1:])
	case "report":
		return parseReport(args[1:])
	}
	return command{}, fmt.Errorf("there is no command %q: use list, run NAME... or report FILE..."+seeHelp, args[0])
}

func parseRun(args []string) (command, error) {
	cfg := contest.DefaultConfig()
	names, err := parseFlags(&cfg, args)
	if errors.Is(err, flag.ErrHelp) {
		return command{verb: verbHelp}, nil
	}
	if err != nil {
		return command{}, fmt.Errorf("%w"+seeHelp, err)
	}
	exps, err := selectExperiments(names)
	if err != nil {
		return command{}, err
	}
	return command{verb: verbRun, experiments: exps, cfg: cfg}, nil
}

// parseFlags sets cfg from the flags among args, at any position, and returns
// the other words.
func parseFlags(cfg *contest.Config, args []string) (names []string, err error) {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints the error, once
	fs.Func("n", "", listOf(&cfg.Sizes, parseSize))
	fs.Func("threads", "", listOf(&cfg.Threads, parseThreads))
	fs.Func("rounds", "", one(&cfg.Rounds, parsePositive))
	fs.Func("queries", "", one(&cfg.Queries, parseSize))
	fs.Func("seconds", "", one(&cfg.Seconds, parseSeconds))
	fs.Func("systems", "", listOf(&cfg.Systems, parseWord))
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "")
	fs.Func("gpu", "", one(&cfg.GPU, parseOrdinal))
	fs.Func("cores", "", one(&cfg.Cores, parsePositive))
	fs.StringVar(&cfg.JSON, "json", "", "")
	fs.StringVar(&cfg.CPUProfile, "cpuprofile", "", "")
	return anywhere(fs, args)
}

// anywhere parses flags at any position and returns the other words.
func anywhere(fs *flag.FlagSet, args []string) (words []string, err error) {
	for {
		// Parse stops at the first word that is not a flag.
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			return words, nil
		}
		words = append(words, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

func selectExperiments(names []string) ([]*contest.Experiment, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("run needs at least one experiment: %s"+seeHelp, strings.Join(experimentNames(), ", "))
	}
	var out []*contest.Experiment
	for _, name := range names {
		if name == "all" {
			out = append(out, allExperiments...)
			continue
		}
		e := findExperiment(name)
		if e == nil {
			return nil, fmt.Errorf("there is no experiment %q: choose from %s"+seeHelp,
				name, strings.Join(experimentNames(), ", "))
		}
		out = append(out, e)
	}
	return out, nil
}

func one[T any](dst *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*dst, err = parse(text)
		return err
	}
}

func listOf[T any](dst *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		*dst = nil
		for part := range strings.SplitSeq(text, ",") {
			v, err := parse(strings.TrimSpace(part))
			if err != nil {
				return err
			}
			*dst = append(*dst, v)
		}
		return nil
	}
}

// parseSize reads a count such as 2000, 64k, 16M or 1G; the letters stand for
// powers of two, as in the papers.
func parseSize(text string) (int, error) {
	digits, shift := text, 0
	if text != "" {
		switch text[len(text)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
	}
	if shift != 0 {
		digits = text[:len(text)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size: write a whole number above 0, alone or with k, M or G, as in 2000, 64k, 16M", text)
	}
	return int(n << shift), nil
}

func parsePositive(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a whole number above 0", text)
	}
	return n, nil
}

func parseOrdinal(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not the number of a GPU: they are counted from 0", text)
	}
	return int(n), nil
}

// parseThreads allows more goroutines than cores, within reason: their cost is
// an experiment too.
func parseThreads(text string) (int, error) {
	n, err := parsePositive(text)
	if most := 16 * runtime.NumCPU(); err == nil && n > most {
		return 0, fmt.Errorf("%d threads are too many for %d cores: use at most %d", n, runtime.NumCPU(), most)
	}
	return n, err
}

func parseSeconds(text string) (float64, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s > 0) || math.IsInf(s, 0) {
		return 0, fmt.Errorf("%q is not a number of seconds above 0, such as 0.5 or 2", text)
	}
	return s, nil
}

func parseWord(text string) (string, error) {
	if text == "" {
		return "", errors.New("an empty word: name systems by a part of their name, as in --systems tidwall,ART")
	}
	return strings.ToLower(text), nil
}
