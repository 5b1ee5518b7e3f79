package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/peers"
	figures "github.com/pando-index/pando/bench/report"
)

// TestMain keeps compiled peers from one run to the next.
func TestMain(m *testing.M) {
	done := peers.KeepPrograms("-O0")
	code := m.Run()
	done()
	os.Exit(code)
}

// Every experiment that a figure names is in the registry, its command can be
// run, and every experiment that redoes a figure is named by one.
func TestFiguresNameExperiments(t *testing.T) {
	papers, err := figures.Papers()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, p := range papers {
		for _, it := range p.Items {
			where := p.Short + ", " + it.Name()
			names := it.By
			for _, v := range it.Values {
				if v.Ours != nil && v.Ours.Exp != "" {
					names = append(names, v.Ours.Exp)
				}
			}
			for _, name := range names {
				named[name] = true
				if findExperiment(name) == nil {
					t.Errorf("%s: there is no experiment %q", where, name)
				}
			}
			if it.Run == "" {
				continue
			}
			cmd, err := parseCommand(append([]string{"run"}, strings.Fields(it.Run)...))
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			if !strings.Contains(it.Run, it.By[0]) && len(cmd.experiments) == 1 && !slices.Contains(it.By, cmd.experiments[0].Name) {
				t.Errorf("%s: %q runs none of %v", where, it.Run, it.By)
			}
		}
	}
	for _, e := range allExperiments {
		if e.Figure != "" && !named[e.Name] {
			t.Errorf("%s redoes %s, and no figure names it", e.Name, e.Figure)
		}
	}
}

// The kit's script measures every experiment that a figure names, by flags that
// can be understood.
func TestKitMeasuresEveryFigure(t *testing.T) {
	text, err := os.ReadFile("../scripts/gpu-kit-figures.sh")
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, step := range regexp.MustCompile(`(?m)^\t\t(?:cpu|gpu|alone) +\d+ +(\S+ .*)$`).FindAllStringSubmatch(string(text), -1) {
		args := strings.Fields(strings.ReplaceAll(step[1], "$all", "2"))
		measured[args[0]] = true
		if _, err := parseCommand(append([]string{"run"}, args...)); err != nil {
			t.Errorf("%s: %v", step[1], err)
		}
	}
	papers, err := figures.Papers()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range papers {
		for _, it := range p.Items {
			for _, name := range it.By {
				if !measured[name] {
					t.Errorf("%s, %s: the script does not measure %s", p.Short, it.Name(), name)
				}
			}
		}
	}
}

// A run that is ended before its time leaves what it has measured until then.
func TestResultsSoFar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	var soFar []string
	probe := &contest.Experiment{Name: "fanout", Sizes: []int{1000}, Run: func(s *contest.Session) error {
		for _, n := range []int{1, 2} {
			c := &contest.Contest{N: n, Ops: 1, Subjects: []*contest.Subject{{System: "Pando", Do: func(int) error { return nil }, Check: func(int) error { return nil }}}}
			if err := s.Compete(c); err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			soFar = append(soFar, string(text))
		}
		return nil
	}}
	cfg := contest.DefaultConfig()
	cfg.JSON, cfg.Cores = path, 5
	var out, errs bytes.Buffer
	if err := runAll(command{experiments: []*contest.Experiment{probe}, cfg: cfg}, nil, &out, &errs); err != nil {
		t.Fatal(err)
	}
	for i, text := range soFar {
		if got := strings.Count(text, `"system"`); got != i+1 || !strings.Contains(text, contest.CutShort) || !strings.Contains(text, `"cores": 5`) {
			t.Errorf("after set %d: %d rows, in %s", i+1, got, text)
		}
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), contest.CutShort) {
		t.Errorf("%v: an experiment that came to its end counts as cut short: %s", err, text)
	}
}

// What run writes, report reads: every row, with its columns.
func TestReportOfARun(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
	runs := [][]string{
		{"run", "fanout", "rank-u32", "--n", "500,1k,2k", "--rounds", "1", "--queries", "100", "--seconds", "0.001", "--json", one},
		{"run", "rank-u32", "--n", "4k", "--rounds", "1", "--queries", "100", "--seconds", "0.001", "--json", two},
	}
	var out, errs bytes.Buffer
	for _, args := range runs {
		if code := realMain(args, &out, &errs); code != exitOK {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
	}
	page, merged := filepath.Join(dir, "report.html"), filepath.Join(dir, "all.json.gz")
	args := []string{"report", one, two, "--out", page, "--svg", filepath.Join(dir, "svg"), "--json", merged}
	out.Reset()
	if code := realMain(args, &out, &errs); code != exitOK || !strings.Contains(out.String(), "wrote "+page) {
		t.Fatalf("exit code %d: %s %s", code, out.String(), errs.String())
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Pando, fanout 9", "<th>levels</th>", "<th>keys</th>", ">4k</td>", "rank-u32"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if pictures, err := filepath.Glob(filepath.Join(dir, "svg", "hbtree-figure-19-*.svg")); err != nil || len(pictures) == 0 {
		t.Errorf("no pictures of figure 19: %v", err)
	}
	again, err := figures.Load([]string{merged})
	if err != nil || len(again) != 2 || len(again[0].Experiments[0].Rows) != 12 {
		t.Errorf("%d runs merged: %v", len(again), err)
	}
}

// Files that are no results, and runs that lack what was asked for, get one
// line each.
func TestReportErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "damaged.json")
	if err := os.WriteFile(file, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"report"}, exitUsage, "report needs result files"},
		{[]string{"report", "x.json", "--colour", "red"}, exitUsage, "colour"},
		{[]string{"report", file}, exitFailed, file + ": it is damaged"},
		{[]string{"report", filepath.Join(dir, "none.json")}, exitFailed, "none.json"},
		{[]string{"report", t.TempDir()}, exitFailed, "no result files"},
	} {
		var out, errs bytes.Buffer
		code := realMain(c.args, &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") > 2 {
			t.Errorf("%q: exit code %d, %q", c.args, code, errs.String())
		}
	}
}

// The committed page and pictures are what the committed results give.
func TestReportIsFresh(t *testing.T) {
	files, err := filepath.Glob("results/*.json*")
	if err != nil || len(files) == 0 {
		t.Skip("no results are kept yet")
	}
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "report.html"), filepath.Join(dir, "lookups.svg")
	var out, errs bytes.Buffer
	if code := realMain([]string{"report", "results", "--out", page, "--picture", picture}, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for made, kept := range map[string]string{page: "../docs/report.html", picture: "../docs/pictures/lookups.svg"} {
		a, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(kept); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not what results give: make report. %v", kept, err)
		}
	}
}

// Every experiment is in the list once, and the order names no other.
func TestOrderNamesExperiments(t *testing.T) {
	if names := experimentNames(); !slices.Equal(names, listing) {
		t.Errorf("the experiments are %q, and the order %q", names, listing)
	}
}

// The table of README.md names every experiment.
func TestREADMENamesExperiments(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Skip("no sources here")
	}
	for _, e := range allExperiments {
		if !bytes.Contains(text, []byte("`"+e.Name+"`")) {
			t.Errorf("README.md does not say what %s redoes", e.Name)
		}
	}
}
