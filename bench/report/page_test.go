package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/tool"
)

var update = flag.Bool("update", false, "write the golden pictures anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is not what is drawn: look at both, then go test ./report -update\n%s", path, got)
	}
}

// threeSizes is an experiment with a peer, a limit and two cases.
func threeSizes() *Experiment {
	e := &Experiment{Name: "point-u64", CaseName: "keys"}
	for _, label := range []string{"uint64", "uint32"} {
		for i, n := range []int{1 << 10, 1 << 20, 64 << 20} {
			at := float64(i + 1)
			e.Rows = append(e.Rows, row("Pando", label, n, 1, 10*at), row("a <peer> & more", label, n, 1, 100*at), row("limit: reads", label, n, 1, 5))
		}
	}
	return e
}

func TestPictures(t *testing.T) {
	lines := panels(View{}, threeSizes(), "id", nil)
	if len(lines) != 2 || lines[1].Title != "keys: uint32" || len(lines[0].Lines) != 3 {
		t.Fatalf("%d panels, %+v", len(lines), lines[0])
	}
	golden(t, "lines.svg", lines[0].SVG("HB+, figure 0", true))
	bars := panels(View{X: "case", Y: "time"}, threeSizes(), "id", nil)
	if len(bars) != 3 || len(bars[0].Groups) != 2 || bars[2].Title != "64M entries" {
		t.Fatalf("%d panels, %+v", len(bars), bars[0])
	}
	golden(t, "bars.svg", bars[0].SVG("HB+, figure 0", true))
	if got := panels(View{Y: "no such column"}, threeSizes(), "id", nil); got != nil {
		t.Errorf("rows without a value are drawn: %+v", got)
	}
}

// A paper's own lines stand beside rates, within the sizes that were measured.
func TestPaperLines(t *testing.T) {
	paper := &Table{Rates: true, Columns: []string{"entries", "a <peer> & more, ms", "b"},
		Rows: [][]string{{"2^9", "1", "2"}, {"2^10", "1.024", "2"}, {"2^11", "2.048", "×"}}}
	panel := panels(View{}, threeSizes(), "id", paper.lines())[0]
	if len(panel.Lines) != 5 {
		t.Fatalf("%d lines", len(panel.Lines))
	}
	a, b := panel.Lines[3], panel.Lines[4]
	if fmt.Sprint(a.Points) != "[[1024 1] [2048 1]]" || fmt.Sprint(b.Points) != "[[1024 2]]" || !a.Dashed {
		t.Errorf("points %v and %v", a.Points, b.Points)
	}
	if a.Style != panel.Lines[1].Style || b.Style == a.Style {
		t.Errorf("styles %s and %s; ours is %s", a.Style, b.Style, panel.Lines[1].Style)
	}
}

// sample is a report of a small run that is kept for tests.
func sample(t *testing.T) *Report {
	t.Helper()
	runs, err := Load([]string{filepath.Join("testdata", "sample.json.gz")})
	if err != nil {
		t.Fatal(err)
	}
	var known []Known
	for _, r := range runs {
		for _, e := range r.Experiments {
			known = append(known, Known{Name: e.Name})
		}
	}
	rep, err := New(runs, known)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// The page names every figure, needs nothing from elsewhere, and is the same
// whenever it is made.
func TestPage(t *testing.T) {
	rep := sample(t)
	page, err := rep.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := sample(t).HTML(); !bytes.Equal(page, again) {
		t.Error("the page differs from one time to the next")
	}
	text := string(page)
	for _, p := range rep.Papers {
		for _, it := range p.Items {
			if n := strings.Count(text, `<article id="`+it.Anchor(p)+`"`); n != 1 {
				t.Errorf("%s, %s is on the page %d times", p.Short, it.Name(), n)
			}
		}
	}
	if found := regexp.MustCompile(`(?:src|href)="(?:https?:)?//`).FindString(text); found != "" {
		t.Errorf("the page fetches from elsewhere: %s", found)
	}
	for _, want := range []string{"Permission is hereby granted", "dict-search", "No results yet of", "cd bench &amp;&amp; go run . run hybrid-sizes"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if pictures := rep.Pictures(); len(pictures) < 5 {
		t.Errorf("%d pictures", len(pictures))
	}
}

// A page without results still says what there is and why not.
func TestPageWithoutResults(t *testing.T) {
	rep, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := rep.HTML()
	if err != nil || !bytes.Contains(page, []byte("No results.")) || !bytes.Contains(page, []byte("hbtree-figure-16a")) {
		t.Errorf("%v\n%.300s", err, page)
	}
	if _, err := rep.Lookups(); err == nil || !strings.Contains(err.Error(), "run point-u64") {
		t.Errorf("a picture of nothing: %v", err)
	}
}

func TestLookups(t *testing.T) {
	text, err := sample(t).Lookups()
	if err != nil {
		t.Fatal(err)
	}
	first, second := strings.Index(text, "Pando, GetBatch"), strings.Index(text, "slices.BinarySearch")
	if first < 0 || second < first || strings.Contains(text, "limit:") {
		t.Errorf("the picture has not Pando, then the others, without limits:\n%s", text)
	}
}

func TestFillMarks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "README.md")
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("README.md", "no marks")
	if err := FillMarks(path); err == nil {
		t.Error("a document without marks is filled in")
	}
	empty := "before\n" + marksBegin + "\n" + marksEnd + "\nafter\n"
	filled := "before\n" + marksBegin + "\n![Lookups a second beside other maps](docs/pictures/lookups.svg)\n\n" + marksEnd + "\nafter\n"
	put("README.md", empty)
	for _, want := range []string{empty, filled, filled} {
		if err := FillMarks(path); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%q, not %q", got, want)
		}
		put("docs/pictures/lookups.svg", "<svg/>")
	}
}

// The colours of pictures and page are the same.
func TestColoursAgree(t *testing.T) {
	rule := regexp.MustCompile(`\.([pq]\d|limit)\{--c:(#\w+)\}`)
	inPage, inPictures := rule.FindAllString(pageCSS, -1), rule.FindAllString(svgStyle, -1)
	if len(inPage) != 28 || strings.Join(inPage, "") != strings.Join(inPictures, "") {
		t.Errorf("page: %v\npictures: %v", inPage, inPictures)
	}
}

// A browser draws the plots and runs the script to its end.
func TestBrowserDrawsPlots(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	chromium := tool.Path(t, "chromium", "chromium")
	page, err := sample(t).HTML()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, page, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--window-size=1200,900", "--virtual-time-budget=2000", "--dump-dom", "file://"+path+"?all")
	cmd.WaitDelay = time.Second
	timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	dom, err := cmd.Output()
	if err != nil {
		t.Skipf("chromium does not run here: %v", err)
	}
	plots, canvases := bytes.Count(page, []byte(`data-panel="`)), bytes.Count(dom, []byte("<canvas"))
	if plots == 0 || canvases != plots {
		t.Errorf("%d plots, %d of them drawn", plots, canvases)
	}
	if !bytes.Contains(dom, []byte(`aria-pressed="true">all</button>`)) {
		t.Error("the script has not come to the list of figures")
	}
}
