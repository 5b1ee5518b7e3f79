package attack

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

const (
	turn     = 500 * time.Millisecond // how long an attack goes on before the next one's turn
	interval = 5 * time.Second        // between two lines of progress
	patience = 4 * time.Minute        // that a case may take before it counts as one that hangs
)

// tally is what an attack has done.
type tally struct{ cases, compared int64 }

// fewCases is how many cases of an attack are tried where no time is given.
const fewCases = 40

// child attacks until its time is over. It tells the process that started it
// each case before it begins, so that the seed is known whatever happens, and
// what was done. Of several attacks each has its turn.
func child(t *testing.T, chosen []attack) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(*flagSeed, uint64(*flagChild)))
	if *flagTime == 0 {
		for _, a := range chosen {
			done := tally{}
			for range fewCases {
				done.attack(t, a, rng.Uint64()|1, dir)
			}
			tell("did %s %d %d", a.name, done.cases, done.compared)
		}
		return
	}
	end := time.Now().Add(*flagTime)
	for i := 0; ; i++ {
		a := chosen[(i+*flagChild)%len(chosen)]
		done := tally{}
		for until := time.Now().Add(min(turn, *flagTime/time.Duration(len(chosen)))); time.Now().Before(until); {
			if !time.Now().Before(end) {
				tell("did %s %d %d", a.name, done.cases, done.compared)
				return
			}
			done.attack(t, a, rng.Uint64()|1, dir) // 0 would be no seed
		}
		tell("did %s %d %d", a.name, done.cases, done.compared)
	}
}

// attack runs the case with a seed.
func (done *tally) attack(t *testing.T, a attack, seed uint64, dir string) {
	c := newCase(seed, dir)
	tell("case %s %d", a.name, c.seed)
	if err := c.attacked(a); err != nil {
		t.Fatalf("%s: %v\n%s", a.name, err, c.log())
	}
	if err := emptied(dir); err != nil {
		t.Fatal(err)
	}
	done.cases += int64(c.tried)
	done.compared += c.compared.Load()
}

// mark begins the lines that are meant for the process that has started this
// one.
const mark = "@attack "

func tell(format string, args ...any) { fmt.Printf(mark+format+"\n", args...) }

// watch is what a parent knows of its children.
type watch struct {
	mu    sync.Mutex
	seed  uint64
	began time.Time
	done  map[string]tally
	slow  string // the case that took longest
	took  time.Duration
}

// parent starts processes that attack, prints their progress, and how to
// repeat what fails.
func parent(t *testing.T, chosen []attack) {
	if deadline, ok := t.Deadline(); ok && time.Until(deadline) < *flagTime+patience/8 {
		t.Fatalf("the test is stopped in %v, before -attack.time=%v is over; add -timeout=0", time.Until(deadline).Round(time.Second), *flagTime)
	}
	w := &watch{seed: *flagSeed, began: time.Now(), done: map[string]tally{}}
	if w.seed == 0 {
		w.seed = seed.Of(t) | 1
	}
	procs := *flagProcs
	if procs <= 0 {
		procs = max(1, runtime.NumCPU()/2)
	}
	if *flagTime == 0 {
		procs = 1
		fmt.Printf("%d cases of each attack, -attack.seed=%d\n", fewCases, w.seed)
	} else {
		fmt.Printf("attacking for %v, -attack.seed=%d\n", *flagTime, w.seed)
	}
	var wg sync.WaitGroup
	for i := range procs {
		wg.Go(func() {
			if text := w.run(i); text != "" {
				t.Error(text)
			}
		})
	}
	stop := make(chan struct{})
	go w.progress(chosen, stop)
	wg.Wait()
	close(stop)
	fmt.Println(w.line(chosen))
	fmt.Printf("the case that took longest: %s, %v\n", w.slow, w.took.Round(time.Millisecond))
}

// progress prints a line from time to time.
func (w *watch) progress(chosen []attack, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(interval):
			fmt.Println(w.line(chosen))
		}
	}
}

// line says what was done so far.
func (w *watch) line(chosen []attack) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, compared := fmt.Sprintf("%6s", time.Since(w.began).Round(time.Second)), int64(0)
	for _, a := range chosen {
		text += fmt.Sprintf("  %s: %d %s", a.name, w.done[a.name].cases, a.unit)
		compared += w.done[a.name].compared
	}
	return fmt.Sprintf("%s  %d comparisons", text, compared)
}

// run runs one process to its end, and returns what to say if it fails.
func (w *watch) run(number int) string {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAttack$", "-test.timeout=0", "-test.v=false",
		fmt.Sprint("-attack.child=", number), fmt.Sprint("-attack.seed=", w.seed),
		fmt.Sprint("-attack.time=", *flagTime), fmt.Sprint("-attack.only=", *flagOnly))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	last, rest := w.listen(cmd, out)
	err = cmd.Wait()
	if err == nil {
		return ""
	}
	if last == "" {
		return fmt.Sprintf("%v\n%s", err, rest)
	}
	name, seed, _ := strings.Cut(last, " ")
	return fmt.Sprintf("%v\n%s\nto repeat: go test%s ./tests/attack -attack.only=%s -attack.case=%s", err, rest, tags, name, seed)
}

// listen reads what a process says until it ends: the case that it is at, and
// the rest, of which it keeps the first lines. A process that hangs is asked
// for its stacks and ends.
func (w *watch) listen(cmd *exec.Cmd, out io.Reader) (last, rest string) {
	hung := time.AfterFunc(patience, func() {
		if cmd.Process.Signal(syscall.SIGQUIT) != nil {
			cmd.Process.Kill()
		}
	})
	defer hung.Stop()
	const most = 40 << 10
	began := time.Now()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text, mine := strings.CutPrefix(lines.Text(), mark)
		if !mine {
			if len(rest) < most {
				rest += text + "\n"
			}
			continue
		}
		hung.Reset(patience)
		w.finished(last, time.Since(began))
		began = time.Now()
		what, text, _ := strings.Cut(text, " ")
		if what == "case" {
			last = text
			continue
		}
		w.add(text)
	}
	return last, rest
}

// finished notes how long a case took.
func (w *watch) finished(what string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took > w.took {
		w.slow, w.took = what, took
	}
}

// add notes what a process has done.
func (w *watch) add(text string) {
	var name string
	var more tally
	if _, err := fmt.Sscan(text, &name, &more.cases, &more.compared); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.done[name]
	w.done[name] = tally{sum.cases + more.cases, sum.compared + more.compared}
}
