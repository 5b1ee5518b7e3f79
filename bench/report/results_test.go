package report

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

const oneRun = `{"format": 1, "command": "go run . run x", "started": "2026-01-02T03:04:05Z", "machine": {"cpu": "A", "cores": 2, "go": "go1", "os": "linux"},
 "experiments": [{"name": "point-u64", "rows": [{"system": "Pando pairs", "n": 1024, "threads": 1, "ns_per_op_median": 10, "ns_per_op_rounds": [10.12345, 9]}]}]}`

// What is no result file gets a sentence that names the file and says what to
// do.
func TestBadFiles(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(oneRun))
	z.Close()
	for _, c := range []struct{ name, text, want string }{
		{"empty.json", "", "damaged, or no result file"},
		{"cut.json", oneRun[:len(oneRun)/2], "damaged, or no result file"},
		{"cut.json.gz", packed.String()[:packed.Len()/2], "compressed file is damaged"},
		{"other.json", `{"name": "something else"}`, "no result file: 'go run"},
		{"list.json", `[1, 2]`, "no result file"},
		{"old.json", strings.Replace(oneRun, `"format": 1, `, "", 1), "an older bench wrote it"},
		{"new.json", strings.Replace(oneRun, `"format": 1`, `"format": 2`, 1), "format 2, and this bench reads format 1"},
		{"nobody.json", strings.Replace(oneRun, `"cpu": "A", `, "", 1), "a run without a machine"},
		{"row.json", strings.Replace(oneRun, `"n": 1024`, `"n": -1`, 1), "point-u64 has a row without a system"},
		{"null.json", `{"format": 1, "runs": [null]}`, "a run without a machine"},
		{"types.json", strings.Replace(oneRun, `"cores": 2`, `"cores": "two"`, 1), "damaged"},
	} {
		path := write(t, c.name, c.text)
		_, err := Load([]string{path})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
	if _, err := Load([]string{filepath.Join(t.TempDir(), "none.json")}); err == nil {
		t.Error("a file that is not there is read")
	}
	if _, err := Load([]string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no result files") {
		t.Errorf("an empty folder: %v", err)
	}
}

// A folder stands for its files, and a merged file for what was merged.
func TestMergedFilesReadBack(t *testing.T) {
	path := write(t, "one.json", oneRun)
	runs, err := Load([]string{filepath.Dir(path)})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs: %v", len(runs), err)
	}
	for _, name := range []string{"all.json", "all.json.gz"} {
		merged := filepath.Join(t.TempDir(), name)
		if err := WriteMerged(merged, append(runs, runs...)); err != nil {
			t.Fatal(err)
		}
		again, err := Load([]string{merged})
		if err != nil || len(again) != 2 || !reflect.DeepEqual(again[0], runs[0]) {
			t.Errorf("%s reads back as %d runs: %v", name, len(again), err)
		}
	}
	if got := runs[0].Experiments[0].Rows[0].Rounds[0]; got != 10.12 {
		t.Errorf("a round is kept as %v", got)
	}
}

// run makes a run of one experiment.
func run(day int, cpu, gpu string, name string, rows ...*Row) *Run {
	e := &Experiment{Name: name, Rows: rows}
	if gpu != "" {
		e.GPU = []byte(`{"name": "` + gpu + `"}`)
	}
	return &Run{Started: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC), Machine: Machine{CPU: cpu, Cores: 2}, Experiments: []*Experiment{e}}
}

func row(system, label string, n, threads int, median float64) *Row {
	return &Row{System: system, Case: label, N: n, Threads: threads, Median: median}
}

// Runs of one machine are one site, the newer set takes the older one's place as
// a whole, and what only the older run has stays.
func TestMerge(t *testing.T) {
	known := []Known{{Name: "a"}, {Name: "b"}}
	sites, notes := merge([]*Run{
		run(1, "X", "", "a", row("Pando", "", 1, 1, 10), row("old peer", "", 1, 1, 20), row("Pando", "", 2, 1, 30)),
		run(2, "Y", "", "a", row("Pando", "", 1, 1, 99)),
		run(3, "X", "H200", "b", row("Pando GPU", "", 1, 0, 1)),
		run(4, "X", "", "a", row("Pando", "", 1, 1, 11)),
		run(5, "X", "other GPU", "b", row("Pando GPU", "", 1, 0, 2)),
		run(6, "X", "", "gone", row("Pando", "", 1, 1, 1)),
	}, known)
	if len(sites) != 3 || sites[0].GPU != "H200" || sites[1].Machine.CPU != "Y" || sites[2].GPU != "other GPU" {
		t.Fatalf("%d sites: %+v", len(sites), sites)
	}
	got := sites[0].find("a").Rows
	if len(got) != 2 || got[0].Median != 11 || got[1].N != 2 {
		t.Errorf("merged rows: %+v %+v", got[0], got[len(got)-1])
	}
	if sites[0].find("b").Rows[0].Median != 1 || sites[2].find("b").Rows[0].Median != 2 {
		t.Error("rows of two GPUs are mixed")
	}
	if len(notes) != 1 || !strings.Contains(notes[0], `"gone"`) {
		t.Errorf("notes: %q", notes)
	}
}

func TestMeasures(t *testing.T) {
	rows := []*Row{
		row("Pando", "a", 1, 1, 10), row("peer", "a", 1, 1, 20), row("Pando", "a", 2, 1, 10), row("peer", "a", 2, 1, 80),
		row("Pando", "b", 1, 1, 5), {System: "GPU", Case: "b", N: 1, Median: 1, Extra: map[string]float64{"share": 0.04, "all": 0.8}},
	}
	sites, _ := merge([]*Run{run(1, "X", "", "e", rows...)}, []Known{{Name: "e"}})
	it := &Item{By: []string{"e"}}
	for _, c := range []struct {
		m    Measure
		unit string
		want string
	}{
		{Measure{Of: "rate", System: "Pando", Case: "a", Over: &Base{System: "peer"}}, "x", "4.00 (2.00 to 8.00)"},
		{Measure{Of: "rate", System: "Pando", Case: "a", Over: &Base{System: "peer"}, Pick: "max"}, "x", "8.00"},
		{Measure{Of: "rate", System: "Pando", Case: "a", Over: &Base{System: "peer"}, Pick: "min"}, "x", "2.00"},
		{Measure{Of: "rate", System: "Pando", Case: "a", Over: &Base{System: "peer"}, Pick: "range"}, "x", "2.00 to 8.00"},
		{Measure{Of: "rate", System: "Pando", Case: "a", N: 2, Over: &Base{System: "peer"}}, "x", "8.00"},
		{Measure{Of: "rate", System: "GPU", Over: &Base{System: "Pando"}}, "x", "5.00"},
		{Measure{Of: "rate", System: "Pando", Case: "b", Over: &Base{Case: "a"}}, "x", "2.00"},
		{Measure{Of: "rate", System: "Pando", Case: "b", Over: &Base{Threads: 1}}, "x", "1.00"},
		{Measure{Of: "rate", System: "Pando", Case: "b", Over: &Base{Threads: 2}}, "x", ""},
		{Measure{Of: "time", System: "Pando", Case: "a"}, "ns", "10.0"},
		{Measure{Of: "rate", System: "Pando", Case: "b"}, "Mops/s", "200"},
		{Measure{Of: "share", System: "GPU", Over: &Base{Of: "all"}}, "%", "5.00"},
		{Measure{Of: "share", System: "GPU"}, "s", "0.0400"},
		{Measure{Of: "rate", System: "nobody"}, "x", ""},
		{Measure{Of: "rate", System: "Pando", Over: &Base{System: "nobody"}}, "x", ""},
		{Measure{Exp: "missing", Of: "rate"}, "x", ""},
	} {
		got := ""
		if o, ok := c.m.apply(sites[0], it); ok {
			got = o.text(c.unit)
		}
		if got != c.want {
			t.Errorf("%+v: %q, not %q", c.m, got, c.want)
		}
	}
}
