package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	figures "github.com/pando-index/pando/bench/report"
)

// report is the JSON file: it has everything, so that a table can be made
// again.
type report struct {
	Format      int       `json:"format"` // figures.Format
	Command     string    `json:"command"`
	Started     time.Time `json:"started"`
	Machine     machine   `json:"machine"`
	Experiments []*result `json:"experiments"`
}

func newReport(command string) *report {
	return &report{Format: figures.Format, Command: command, Started: time.Now().UTC(), Machine: describeMachine()}
}

// write replaces the file at path.
func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("results as JSON: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o666)
}
