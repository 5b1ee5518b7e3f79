package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	_ "github.com/pando-index/pando/cuda" // the library's way to the same GPU
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
)

// paper16 is the paper that most experiments reproduce.
const paper16 = "HB+-tree paper (SIGMOD 2016)"

// experiment is one table. It is registered in allExperiments.
type experiment struct {
	name   string
	about  string // one line for list
	figure string // which figure of which paper it reproduces; empty: none
	per    string // name of one operation, for the table's heading
	// caseName is the heading of the column that distinguishes the cases of
	// one size; empty if there is only one case.
	caseName string
	sizes    []int         // used if --n is not given
	queries  int           // used if --queries is not given; 0: usualQueries
	threads  []int         // used if --threads is not given; nil: 1
	extra    []extraColumn // further columns, filled by the experiment
	// faster is the heading of the column with the speed of a row relative to
	// the reference; empty if "x Pando" shows how many times slower it is.
	faster string
	run    func(*session) error
}

// allExperiments in the order that list shows.
var allExperiments = []*experiment{
	pointU64, pointU32, rankU32, singleGet, rangeQueries, rangeIter, build, memory,
	nodeSearch, pipelineLength, fanout, pages, skew, threadsExp, layoutExp,
	gpuRankU32, gpuPointU64, gpuEndToEnd,
	gpuUpdate, gpuUpdateShapes, gpuTreeFind, gpuTreeU32, gpuTreeEndToEnd,
	hybridWays, hybridBuckets, hybridSkew, hybridSizes, hybridRanges, hybridBalance, hybridCapped, batcherExp,
	setRandom, setAscending, deleteExp, setBatch, treeGet, scanExp, treeMemory, writersExp, snapshotExp, mixedExp,
	dictSearch, dictInsert, gpuDictSearch, gpuDictInsert, gpuLatchedInsert, gpuLatchedHot, gpuSingleInsert, gpuPageSize, gpuVisit,
	gpuAggregate, aggregateExp, transformExp, histogramExp, selectExp,
	updateWays, updateBatches, rebuildExp, updateMix,
	stringsExp, stringsTree, treeGetStrings, keyEntropy, keySize, fastSteps, fastSizes, fastBuild, responseTime, layouts, packedDistance, gpuLayouts, gpuStrings, gpuRadix, gpuRadixHost, gpuRadixLong, gpuRadixEndToEnd, stopsExp, waitsExp,
	cuartLayout, cuartBatches, cuartThreads, cuartSizes, cuartKeys, cuartReal, cuartLong, cuartUpdates, cuartRoot, radixWide,
}

const (
	kilo = 1 << 10
	mega = 1 << 20
)

// usualSizes are one size that the caches of a large machine hold in part and
// one that they do not.
var usualSizes = []int{1 * mega, 16 * mega}

const usualQueries = 4 * mega

func findExperiment(name string) *experiment {
	i := slices.IndexFunc(allExperiments, func(e *experiment) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return allExperiments[i]
}

func experimentNames() []string {
	names := make([]string, len(allExperiments))
	for i, e := range allExperiments {
		names[i] = e.name
	}
	return names
}

func printList(w io.Writer) {
	for _, e := range allExperiments {
		fmt.Fprintf(w, "%-16s %s\n", e.name, e.about)
		if e.figure != "" {
			fmt.Fprintf(w, "%-16s redoes %s\n", "", e.figure)
		}
	}
	fmt.Fprint(w, "\nRun one with: go run . run NAME (more: go run . --help)\n")
}

// session is one experiment being run.
type session struct {
	config
	exp      *experiment
	asked    bool // --queries was given
	progress io.Writer
	rows     []*row
	skipped  []string
	notes    []string     // reports of a system about itself
	contests int          // measured so far
	measured func() error // called after each contest; nil: nothing is

	// The device of GPU experiments: the machine's GPU, unless a test puts
	// another device here; how long it is kept busy before it is timed; and its
	// description, once opened.
	openGPU func() (device.Device, error)
	warmUp  time.Duration
	gpuInfo *gpuInfo
	// elsewhere allows an index that Pando has not put on the requested GPU to
	// take part: Pando finds its GPUs by itself, and tests run where there is
	// none.
	elsewhere bool
}

func newSession(cfg config, e *experiment, progress io.Writer) *session {
	if cfg.sizes == nil {
		cfg.sizes = e.sizes
	}
	if cfg.threads == nil {
		cfg.threads = e.threads
	}
	if cfg.threads == nil {
		cfg.threads = []int{1}
	}
	asked := cfg.queries != 0
	if !asked {
		cfg.queries = e.queries
	}
	if cfg.queries == 0 {
		cfg.queries = usualQueries
	}
	return &session{
		config: cfg, exp: e, asked: asked, progress: progress,
		openGPU: func() (device.Device, error) { return cuda.Open(cfg.gpu) },
		warmUp:  gpuWarmUp,
	}
}

// say prints a line of progress.
func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.progress, "%s: "+format+"\n", append([]any{s.exp.name}, args...)...)
}

// skip records why a system is missing from the table, and prints it.
func (s *session) skip(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.skipped = append(s.skipped, line)
	s.say("left out: %s", line)
}

// skipOnce is skip for what does not depend on the size.
func (s *session) skipOnce(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(s.skipped, line) {
		s.skip("%s", line)
	}
}

// note records what a reader of the table should know, and prints it.
func (s *session) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.notes = append(s.notes, line)
	s.say("%s", line)
}

// allThreads returns 1, 2, 4, ... up to the number of cores.
func allThreads() []int {
	var out []int
	for t := 1; t < runtime.NumCPU(); t *= 2 {
		out = append(out, t)
	}
	return append(out, runtime.NumCPU())
}
