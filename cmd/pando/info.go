package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/spf13/cobra"
)

const infoLong = `Tell what is in an index file: its types, how many entries it has, and how it is laid
out. Only the head of the file is read, so that this takes no longer for a large
file. The last line is how a Go program opens it. A folder is a store: see
` + "`pando store info`" + `.`

const infoExample = `  pando info people.pando
  pando info people.pando --json | jq .len`

func newInfo() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "info FILE [flags]",
		Short:   "Tell what is in an index file",
		Long:    infoLong,
		Example: infoExample,
		Args:    takes(1, 1, "an index file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if fi, err := os.Stat(args[0]); err == nil && fi.IsDir() {
				return storeInfo(cmd.OutOrStdout(), args[0], asJSON)
			}
			info, err := pando.Inspect(args[0])
			if err != nil {
				return explain(args[0], err)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), info)
			}
			printInfo(cmd.OutOrStdout(), info)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// infoLine writes a line of what info tells.
type infoLine func(name, format string, args ...any)

func infoLines(out io.Writer) infoLine {
	return func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-10s%s\n", name, fmt.Sprintf(format, args...))
	}
}

func printInfo(out io.Writer, info pando.FileInfo) {
	line := infoLines(out)
	line("file", "%s, %s, format version %d", info.Path, binary(info.Bytes), info.Version)
	line("entries", "%s", thousands(int64(info.Len)))
	printTypes(line, info.Key, info.Value, info.Note)
	if info.Fanout > 0 {
		line("layout", "%s, %d inner levels of fanout %d", info.Layout, info.Levels, info.Fanout)
	} else {
		line("layout", "%s", info.Layout)
	}
	for _, s := range info.Sections {
		line("section", "%-11s %14s bytes at %s, checksum %08x", s.Name, thousands(s.Bytes), thousands(s.Offset), s.Checksum)
	}
	if t, err := typed.FileTypes(info); err == nil {
		line("in Go", "pando.Open[%s](%q)", inGo(t), info.Path)
	}
}

// printTypes tells the types of keys and values, and what a note says of them.
func printTypes(line infoLine, key, value, text string) {
	n := readNote(text)
	line("keys", "%s", with(key, n.Key))
	values := with(value, n.Value)
	if n.Name != "" {
		values += " (column " + n.Name + ")"
	}
	line("values", "%s", values)
	for _, p := range n.Values {
		line("", "%s: %s", p.Name, with(p.Type.String(), p.Kind))
	}
	if n.Key == "" && n.Value == "" && n.Name == "" && n.Values == nil && text != "" {
		line("note", "%q", text) // of another program
	}
}

// inGo returns types as the type parameters of Go.
func inGo(t typed.Types) string {
	value := "struct{}"
	if t.Valued {
		value = t.Value.String()
	}
	return t.Key.String() + ", " + value
}

// with returns a type with its kind behind it, if it has one.
func with(name, kind string) string {
	if kind == "" {
		return name
	}
	return name + ", " + kind
}

const verifyLong = `Read a whole index file and check it: every checksum, the order of the keys and the
structure of the tree. The exit code is 1 if anything is wrong.`

const verifyExample = `  pando verify people.pando
  pando verify people.pando --json`

func newVerify() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "verify FILE [flags]",
		Short:   "Check a whole index file",
		Long:    verifyLong,
		Example: verifyExample,
		Args:    takes(1, 1, "an index file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := time.Now()
			watched.add(args[0])
			err := pando.Verify(args[0])
			if asJSON {
				return errors.Join(err, verdict(cmd.OutOrStdout(), args[0], err))
			}
			if err != nil {
				return explain(args[0], err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is whole (checked in %v)\n", args[0], time.Since(start).Round(time.Millisecond))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verdict writes the result of a check as JSON.
func verdict(out io.Writer, path string, err error) error {
	v := struct {
		Path  string `json:"path"`
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
	}{Path: path, OK: err == nil}
	if err != nil {
		v.Error = err.Error()
	}
	return writeJSON(out, v)
}
