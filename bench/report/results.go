package report

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format is the version of result files that this program writes and reads.
const Format = 1

// Run is what one command measured on one machine: a file of "bench run
// --json".
type Run struct {
	Format      int           `json:"format"`
	Command     string        `json:"command"`
	Started     time.Time     `json:"started"`
	Machine     Machine       `json:"machine"`
	Experiments []*Experiment `json:"experiments"`
}

// Merged is several runs in one file, as "bench report --json" writes it.
type Merged struct {
	Format int    `json:"format"`
	Runs   []*Run `json:"runs"`
}

// Machine is what a run was measured on.
type Machine struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	MaxProcs  int    `json:"gomaxprocs"`
	Memory    int64  `json:"memory_bytes,omitempty"`
	Go        string `json:"go"`
	OS        string `json:"os"`
	HugePages string `json:"huge_pages"`
}

// String returns what a reader needs to know of a machine.
func (m Machine) String() string {
	text := fmt.Sprintf("%s, %d cores", m.CPU, m.Cores)
	if m.Memory > 0 {
		text += fmt.Sprintf(", %.0f GiB", float64(m.Memory)/(1<<30))
	}
	return text
}

// Experiment is one table of a run.
type Experiment struct {
	Name     string          `json:"name"`
	About    string          `json:"about"`
	Figure   string          `json:"figure,omitempty"`
	PerOp    string          `json:"operation,omitempty"`
	CaseName string          `json:"case_name,omitempty"`
	GPU      json.RawMessage `json:"gpu,omitempty"`
	Rows     []*Row          `json:"rows"`
	LeftOut  []string        `json:"left_out,omitempty"`
	Notes    []string        `json:"notes,omitempty"`
}

// GPUName returns the name of the GPU that took part, if any.
func (e *Experiment) GPUName() string {
	var gpu struct {
		Name string `json:"name"`
	}
	if len(e.GPU) == 0 || json.Unmarshal(e.GPU, &gpu) != nil {
		return ""
	}
	return gpu.Name
}

// Row is one line of a table.
type Row struct {
	System        string             `json:"system"`
	Case          string             `json:"case,omitempty"`
	N             int                `json:"n"`
	Threads       int                `json:"threads,omitempty"`
	Ops           int                `json:"operations_per_round,omitempty"`
	Rounds        []float64          `json:"ns_per_op_rounds,omitempty"`
	Best          float64            `json:"ns_per_op_best,omitempty"`
	Median        float64            `json:"ns_per_op_median,omitempty"`
	AllocsPerOp   float64            `json:"allocations_per_op"`
	BytesPerEntry float64            `json:"bytes_per_entry,omitempty"`
	RatioMedian   float64            `json:"ratio_to_pando_median,omitempty"`
	RatioBest     float64            `json:"ratio_to_pando_best,omitempty"`
	Extra         map[string]float64 `json:"extra,omitempty"`
	Reference     bool               `json:"reference,omitempty"`
}

// Figures of every row beside its further columns.
const (
	ofRate  = "rate"        // million operations a second, by the median
	ofTime  = "time"        // nanoseconds an operation, by the median
	ofBytes = "bytes/entry" // of memory
)

// value returns one column of a row; ok is false if it has none.
func (r *Row) value(of string) (v float64, ok bool) {
	switch of {
	case ofRate:
		if r.Median > 0 {
			return 1000 / r.Median, true
		}
		return 0, false
	case ofTime:
		return r.Median, r.Median > 0
	case ofBytes:
		return r.BytesPerEntry, r.BytesPerEntry > 0
	}
	v, ok = r.Extra[of]
	return v, ok
}

// Pando reports whether a row is Pando's.
func (r *Row) Pando() bool { return strings.HasPrefix(r.System, "Pando") }

// Limit reports whether a row is what the machine allows at best.
func (r *Row) Limit() bool { return strings.HasPrefix(r.System, "limit") }

// Load reads result files. A folder stands for all result files in it. An
// error names the file and says what to do.
func Load(paths []string) ([]*Run, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no result files: name some, or a folder with some; 'go run . run NAME... --json FILE' makes one")
	}
	var out []*Run
	for _, file := range files {
		runs, err := loadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, runs...)
	}
	slices.SortStableFunc(out, func(a, b *Run) int { return a.Started.Compare(b.Started) })
	return out, nil
}

// expand puts the files of folders in the place of folders.
func expand(paths []string) (files []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		for _, pattern := range []string{"*.json", "*.json.gz"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, err
			}
			files = append(files, found...)
		}
	}
	return files, nil
}

// largestFile bounds what a file may hold when it is unpacked.
const largestFile = 256 << 20

func loadFile(path string) ([]*Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		if text, err = unpack(text); err != nil {
			return nil, fmt.Errorf("the compressed file is damaged: %w", err)
		}
	}
	return parse(text)
}

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, largestFile+1))
	if err == nil && len(text) > largestFile {
		err = fmt.Errorf("it holds more than %d MiB", largestFile>>20)
	}
	return text, err
}

// parse reads one run, or several that were merged.
func parse(text []byte) ([]*Run, error) {
	var head struct {
		Format      *int             `json:"format"`
		Experiments json.RawMessage  `json:"experiments"`
		Runs        *json.RawMessage `json:"runs"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("it is damaged, or no result file: %w", err)
	}
	switch {
	case head.Format == nil && head.Experiments != nil:
		return nil, fmt.Errorf("an older bench wrote it, without a format: measure again with this one, which writes format %d", Format)
	case head.Format == nil:
		return nil, errors.New("it is no result file: 'go run . run NAME... --json FILE' writes one")
	case *head.Format != Format:
		return nil, fmt.Errorf("it has format %d, and this bench reads format %d: use the bench that wrote it, or measure again", *head.Format, Format)
	}
	var runs []*Run
	var err error
	if head.Runs != nil {
		err = json.Unmarshal(*head.Runs, &runs)
	} else {
		runs = []*Run{{}}
		err = json.Unmarshal(text, runs[0])
	}
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	for _, run := range runs {
		if err := run.check(); err != nil {
			return nil, fmt.Errorf("it is damaged: %w", err)
		}
	}
	return runs, nil
}

// check reports what no run has.
func (run *Run) check() error {
	if run == nil || run.Machine.CPU == "" || run.Machine.Cores < 1 {
		return errors.New("a run without a machine")
	}
	for _, e := range run.Experiments {
		if e == nil || e.Name == "" {
			return errors.New("an experiment without a name")
		}
		for _, r := range e.Rows {
			if r == nil || r.System == "" || r.N < 1 || r.Median < 0 || math.IsInf(r.Median, 0) {
				return fmt.Errorf("%s has a row without a system, with n or times that cannot be", e.Name)
			}
		}
	}
	return nil
}

// WriteMerged writes runs to one file; one that ends in .gz is compressed.
// Single rounds are rounded to four digits: that is finer than they differ.
func WriteMerged(path string, runs []*Run) error {
	for _, run := range runs {
		for _, e := range run.Experiments {
			for _, r := range e.Rows {
				for i, v := range r.Rounds {
					r.Rounds[i] = fourDigits(v)
				}
			}
		}
	}
	text, err := json.Marshal(Merged{Format: Format, Runs: runs})
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if strings.HasSuffix(path, ".gz") {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		text = packed.Bytes()
	}
	return os.WriteFile(path, text, 0o666)
}

func fourDigits(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return v
	}
	return out
}
