package contest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The papers whose figures several groups of experiments reproduce.
const (
	Paper10 = "FAST paper (SIGMOD 2010)"
	Paper16 = "HB+-tree paper (SIGMOD 2016)"
)

// Experiment is one table.
type Experiment struct {
	Name   string
	About  string // one line for list
	Figure string // which figure of which paper it reproduces; empty: none
	Per    string // name of one operation, for the table's heading
	// CaseName is the heading of the column that distinguishes the cases of
	// one size; empty if there is only one case.
	CaseName string
	Sizes    []int         // used if --n is not given
	Queries  int           // used if --queries is not given; 0: 4M
	Threads  []int         // used if --threads is not given; nil: 1
	Extra    []ExtraColumn // further columns, filled by the experiment
	// Faster is the heading of the column with the speed of a row relative to
	// the reference; empty if "x Pando" shows how many times slower it is.
	Faster string
	Run    func(*Session) error
}

// Units of sizes, as the papers count.
const (
	Kilo = 1 << 10
	Mega = 1 << 20
)

// UsualSizes are one size that the caches of a large machine hold in part and
// one that they do not.
var UsualSizes = []int{1 * Mega, 16 * Mega}

// ManySizes are those over which the FAST paper compares layouts.
var ManySizes = []int{64 * Kilo, 256 * Kilo, 1 * Mega, 4 * Mega, 16 * Mega, 64 * Mega, 256 * Mega}

const usualQueries = 4 * Mega

// Config is what the flags of run set. A nil slice leaves the choice to the
// experiment.
type Config struct {
	Sizes      []int
	Threads    []int
	Rounds     int
	Queries    int     // 0: the experiment's own number
	Seconds    float64 // target time of one system in one round
	Systems    []string
	Seed       uint64
	GPU        int // number of the GPU
	Cores      int // of the machine; 0: as many as the process may use
	JSON       string
	CPUProfile string
}

// DefaultConfig is what holds where no flag is given.
func DefaultConfig() Config {
	return Config{Rounds: 5, Seconds: 2, Seed: 1}
}

// Session is one experiment being run.
type Session struct {
	Config
	Exp      *Experiment
	Asked    bool // --queries was given
	progress io.Writer
	Rows     []*Row
	Skipped  []string     // why systems are missing
	notes    []string     // reports of a system about itself
	contests int          // measured so far
	Measured func() error // called after each contest; nil: nothing is

	// How long a GPU is kept busy before it is timed, and its description, once
	// opened.
	WarmUp  time.Duration
	GPUInfo *GPUInfo
	// Elsewhere allows an index that Pando has not put on the requested GPU to
	// take part: Pando finds its GPUs by itself, and tests run where there is
	// none.
	Elsewhere bool
}

// NewSession returns a session that has not measured anything: what the flags leave open is the
// experiment's to say.
func NewSession(cfg Config, e *Experiment, progress io.Writer) *Session {
	if cfg.Sizes == nil {
		cfg.Sizes = e.Sizes
	}
	if cfg.Threads == nil {
		cfg.Threads = e.Threads
	}
	if cfg.Threads == nil {
		cfg.Threads = []int{1}
	}
	asked := cfg.Queries != 0
	if !asked {
		cfg.Queries = e.Queries
	}
	if cfg.Queries == 0 {
		cfg.Queries = usualQueries
	}
	return &Session{Config: cfg, Exp: e, Asked: asked, progress: progress, WarmUp: gpuWarmUp}
}

// Say prints a line of progress.
func (s *Session) Say(format string, args ...any) {
	fmt.Fprintf(s.progress, "%s: "+format+"\n", append([]any{s.Exp.Name}, args...)...)
}

// Skip records why a system is missing from the table, and prints it.
func (s *Session) Skip(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.Skipped = append(s.Skipped, line)
	s.Say("left out: %s", line)
}

// SkipOnce is Skip for what does not depend on the size.
func (s *Session) SkipOnce(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(s.Skipped, line) {
		s.Skip("%s", line)
	}
}

// Note records what a reader of the table should know, and prints it.
func (s *Session) Note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.notes = append(s.notes, line)
	s.Say("%s", line)
}

// UpTo returns the sizes of batches that the session allows, at least one.
func (s *Session) UpTo(sizes []int) (out []int) {
	for _, n := range sizes {
		if n <= s.Queries {
			out = append(out, n)
		}
	}
	if out == nil {
		out = []int{s.Queries}
	}
	return out
}

// Pando is how the names of all rows of Pando begin.
const Pando = "Pando"

// IsPando reports whether a row is Pando's rather than a peer's.
func IsPando(name string) bool { return strings.HasPrefix(name, Pando) }

// Wanted reports whether --systems includes a system. Pando always is.
func (s *Session) Wanted(name string) bool { return IsPando(name) || s.Named(name) }

// Named reports whether --systems includes a system by its name, or is not given.
func (s *Session) Named(name string) bool {
	return len(s.Systems) == 0 || slices.ContainsFunc(s.Systems, func(word string) bool {
		return strings.Contains(strings.ToLower(name), word)
	})
}
