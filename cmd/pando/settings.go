package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// settings are the flags of a command that runs for long: an environment variable may set each of them,
// or a line of a file. A flag on the command line counts, else the variable, else the file, else the default.
type settings struct {
	flags  *pflag.FlagSet
	prefix string   // of environment variables
	none   []string // flags that are no settings
	paths  []string // flags that name files: in a file, from its own folder
	files  []string // what else the command line names: index = PATH in a file
	file   string   // that settings were read from, or ""
}

// ofIndexes is the setting of what the arguments of the command line are otherwise.
const ofIndexes = "index"

// variable returns the name of the environment variable of a setting.
func (s *settings) variable(name string) string {
	return s.prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// is reports whether a flag is a setting.
func (s *settings) is(f *pflag.Flag) bool { return !slices.Contains(s.none, f.Name) && !f.Hidden }

// load sets what the command line does not say. args are its arguments.
func (s *settings) load(path string, args []string) error {
	said := map[string]bool{}
	s.flags.Visit(func(f *pflag.Flag) { said[f.Name] = true })
	s.files = args
	if err := s.fromEnvironment(said); err != nil {
		return err
	}
	if path == "" {
		path = os.Getenv(s.variable("config"))
	}
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	s.file = path
	return s.fromFile(f, path, said)
}

// ofOthers are what variables go on with that are none of ours behind the same prefix: Kubernetes sets them for a service called
// pando-serve.
var ofOthers = []string{"PORT", "SERVICE"}

// unknown returns an error for a variable that looks like a setting, and is none.
func (s *settings) unknown() error {
	ours := map[string]bool{s.variable(ofIndexes): true, s.variable("config"): true}
	s.flags.VisitAll(func(f *pflag.Flag) { ours[s.variable(f.Name)] = ours[s.variable(f.Name)] || s.is(f) })
	for _, text := range os.Environ() {
		name, value, _ := strings.Cut(text, "=")
		rest, is := strings.CutPrefix(name, s.prefix)
		first, _, _ := strings.Cut(rest, "_")
		if is && value != "" && !ours[name] && !slices.Contains(ofOthers, first) {
			return usagef("%s is no setting; pando serve --print-config shows them all", name)
		}
	}
	return nil
}

func (s *settings) fromEnvironment(said map[string]bool) (err error) {
	if err := s.unknown(); err != nil {
		return err
	}
	s.flags.VisitAll(func(f *pflag.Flag) {
		name := s.variable(f.Name)
		text := os.Getenv(name)
		if text == "" || said[f.Name] || !s.is(f) || err != nil {
			return
		}
		said[f.Name] = true
		if e := f.Value.Set(text); e != nil {
			err = usagef("%s=%s: %v", name, text, e)
		}
	})
	if text := os.Getenv(s.variable(ofIndexes)); text != "" && len(s.files) == 0 {
		s.files = filepath.SplitList(text)
	}
	return err
}

// mostConfig bounds a file of settings.
const mostConfig = 1 << 20

// fromFile reads lines of name = value. What is behind # at the begin of a line says nothing.
func (s *settings) fromFile(r io.Reader, path string, said map[string]bool) error {
	limited := &io.LimitedReader{R: r, N: mostConfig + 1}
	lines := bufio.NewScanner(limited)
	seen := map[string]bool{}
	var indexes []string
	for n := 1; lines.Scan(); n++ {
		wrong := func(format string, args ...any) error {
			return usagef("%s, line %d: %w", path, n, fmt.Errorf(format, args...))
		}
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, is := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		f := s.flags.Lookup(name)
		switch {
		case !is:
			return wrong("%q is no setting; write name = value", line)
		case name == ofIndexes && value == "":
			return wrong("%s has no path; write %s = PATH, or leave the line out", name, name)
		case name == ofIndexes:
			indexes = append(indexes, beside(path, value))
			continue
		case f == nil || !s.is(f):
			return wrong("there is no setting %q; pando serve --print-config shows them all", name)
		case seen[name]:
			return wrong("%s is there twice", name)
		}
		seen[name] = true
		if slices.Contains(s.paths, name) && value != "" {
			value = beside(path, value)
		}
		if said[name] {
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return wrong("%s: %w", name, err)
		}
		said[name] = true
	}
	switch {
	case lines.Err() != nil:
		return usagef("%s: %w", path, lines.Err())
	case limited.N == 0:
		return usagef("%s has more than %d bytes; is it a file of settings?", path, mostConfig)
	}
	if len(s.files) == 0 {
		s.files = indexes
	}
	return nil
}

// beside returns a path that a file names, from the folder of that file.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// print writes a file of settings: what each is for, and what it is now. Those that have their default are comments.
func (s *settings) print(w io.Writer, about string) error {
	var b strings.Builder
	comment := func(text string) {
		for _, line := range strings.Split(wrapped(text, 96), "\n") {
			b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
		}
	}
	comment(about)
	b.WriteString("\n")
	comment("A file or folder to serve; there may be several such lines. Without one the index is in memory.")
	for _, path := range s.files {
		b.WriteString(ofIndexes + " = " + whole(path) + "\n")
	}
	if len(s.files) == 0 {
		b.WriteString("#" + ofIndexes + " = data\n")
	}
	s.flags.VisitAll(func(f *pflag.Flag) {
		if !s.is(f) {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		b.WriteString("\n")
		comment(usage)
		value := text(f)
		mark := ""
		switch {
		case value == f.DefValue || value == "":
			mark = "#"
		case slices.Contains(s.paths, f.Name):
			value = whole(value)
		}
		b.WriteString(strings.TrimRight(mark+f.Name+" = "+value, " ") + "\n")
	})
	_, err := io.WriteString(w, b.String())
	return err
}

// whole returns a path that is the same wherever the file lies that has it.
func whole(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// text returns the value of a flag as Set takes it.
func text(f *pflag.Flag) string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return f.Value.String()
}

// wrapped breaks a text into lines of at most width letters.
func wrapped(text string, width int) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		at := 0
		for _, word := range strings.Fields(paragraph) {
			switch {
			case at == 0:
			case at+1+len(word) > width:
				b.WriteByte('\n')
				at = 0
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += len(word)
		}
	}
	return b.String()
}

// oneOf is a flag that is one of some words.
type oneOf struct {
	words []string
	value string
}

func (o *oneOf) String() string { return o.value }
func (o *oneOf) Type() string   { return strings.Join(o.words, "|") }

func (o *oneOf) Set(text string) error {
	if !slices.Contains(o.words, text) {
		return errors.New("take " + strings.Join(o.words, " or "))
	}
	o.value = text
	return nil
}
