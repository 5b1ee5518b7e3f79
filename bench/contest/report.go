package contest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	figures "github.com/pando-index/pando/bench/report"
)

// Report is the JSON file: it has everything, so that a table can be made
// again.
type Report struct {
	Format      int             `json:"format"` // figures.Format
	Command     string          `json:"command"`
	Started     time.Time       `json:"started"`
	Machine     figures.Machine `json:"machine"`
	Experiments []*result       `json:"experiments"`
}

// CutShort is the note of an experiment that has not come to its end.
const CutShort = "cut short: it did not come to its end, and what is missing was not measured"

// NewReport returns an empty report. cores is the machine's number; 0: as many
// as the process may use.
func NewReport(command string, cores int) *Report {
	r := &Report{Format: figures.Format, Command: command, Started: time.Now().UTC(), Machine: describeMachine()}
	if cores != 0 {
		r.Machine.Cores = cores
	}
	return r
}

// With returns the report with one more experiment.
func (r *Report) With(res *result) *Report {
	more := *r
	more.Experiments = append(slices.Clone(r.Experiments), res)
	return &more
}

// Write replaces the file at path; an empty path is none.
func (r *Report) Write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("results as JSON: %w", err)
	}
	// This process may be killed at any time.
	part := path + ".part"
	return errors.Join(os.WriteFile(part, append(text, '\n'), 0o666), os.Rename(part, path))
}
