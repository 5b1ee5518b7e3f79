package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	figures "github.com/pando-index/pando/bench/report"
)

// reportConfig is what the words and flags of report set. Paths that are empty
// are not written.
type reportConfig struct {
	files   []string
	out     string // the page
	svg     string // a folder for pictures of all plots
	picture string // lookups beside every peer
	readme  string // a document whose marks are filled in
	json    string // all results
}

func parseReport(args []string) (command, error) {
	var rep reportConfig
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&rep.out, "out", "", "")
	fs.StringVar(&rep.svg, "svg", "", "")
	fs.StringVar(&rep.picture, "picture", "", "")
	fs.StringVar(&rep.readme, "readme", "", "")
	fs.StringVar(&rep.json, "json", "", "")
	files, err := anywhere(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		return command{verb: verbHelp}, nil
	}
	if err != nil {
		return command{}, fmt.Errorf("%w"+seeHelp, err)
	}
	rep.files = files
	if len(rep.files) == 0 {
		return command{}, errors.New("report needs result files: name files that 'run NAME... --json FILE' wrote, or a folder of them" + seeHelp)
	}
	if rep.out+rep.svg+rep.picture+rep.readme+rep.json == "" {
		rep.out = "report.html"
	}
	return command{verb: verbReport, report: rep}, nil
}

// makeReport reads result files and writes what was asked for.
func makeReport(cfg reportConfig, stdout, stderr io.Writer) error {
	runs, err := figures.Load(cfg.files)
	if err != nil {
		return err
	}
	rep, err := figures.New(runs, knownExperiments())
	if err != nil {
		return err
	}
	for _, note := range rep.Notes {
		fmt.Fprintf(stderr, "report: %s\n", note)
	}
	for _, step := range []struct {
		path  string
		write func(path string) error
	}{
		{cfg.json, func(path string) error { return figures.WriteMerged(path, runs) }},
		{cfg.out, func(path string) error { return writePage(rep, path) }},
		{cfg.svg, func(dir string) error { return writePictures(rep, dir) }},
		{cfg.picture, func(path string) error { return writePicture(rep, path) }},
		{cfg.readme, figures.FillMarks},
	} {
		if step.path == "" {
			continue
		}
		if err := step.write(step.path); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "wrote %s\n", step.path)
	}
	return nil
}

// knownExperiments is the registry, as the page needs it.
func knownExperiments() (out []figures.Known) {
	for _, e := range allExperiments {
		out = append(out, figures.Known{Name: e.Name, About: e.About, Figure: e.Figure})
	}
	return out
}

func writePage(rep *figures.Report, path string) error {
	text, err := rep.HTML()
	if err != nil {
		return err
	}
	return writeInto(path, text)
}

func writePictures(rep *figures.Report, dir string) error {
	pictures := rep.Pictures()
	for _, name := range slices.Sorted(maps.Keys(pictures)) {
		if err := writeInto(filepath.Join(dir, name), []byte(pictures[name])); err != nil {
			return err
		}
	}
	return nil
}

func writePicture(rep *figures.Report, path string) error {
	text, err := rep.Lookups()
	if err != nil {
		return err
	}
	return writeInto(path, []byte(text))
}

// writeInto writes a file, and makes its folder if there is none.
func writeInto(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o666)
}
