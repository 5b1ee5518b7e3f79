package main

import (
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/gen"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

// choices are the values of flags that take one of a few words. The format of get
// and its like is one to write; that of build and import is one to read.
func choices(cmd *cobra.Command, flag string) []string {
	switch flag {
	case "format":
		if cmd.Name() == "build" || cmd.Name() == "import" {
			return table.Formats()
		}
		return rowFormats
	case "from-format", "input-format":
		return table.Formats()
	case "how":
		return []string{string(inner), string(left), string(semi), string(anti)}
	case "missing":
		return []string{"skip", "null", "fail"}
	case "only":
		return []string{"key", "value"}
	case "duplicates":
		return []string{"keep", "refuse"}
	case "device":
		return []string{"auto", "cpu", "gpu:0", "hybrid:0"}
	case "layout":
		var names []string
		for _, k := range pando.Layouts() {
			names = append(names, k.String())
		}
		return names
	case "dist":
		return gen.Dists()
	case "keys":
		return gen.KeyKinds()
	}
	return nil
}

// columnFlags are the flags whose value is a column of the input.
var columnFlags = []string{"key", "value", "on", "columns", "type"}

// addCompletion teaches a command to complete the values of its flags.
func addCompletion(cmd *cobra.Command) {
	register := func(flag string, do cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, do) // fails only for flags that are not there
		}
	}
	for _, flag := range []string{"format", "from-format", "input-format", "how", "missing", "only", "duplicates", "device", "layout", "dist", "keys"} {
		if words := choices(cmd, flag); cmd.Name() != "gen" || flag != "format" {
			register(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, flag := range columnFlags {
		if cmd.Name() == "gen" {
			break
		}
		register(flag, func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completeColumn(cmd, args, flag, begun), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// completeColumn returns the columns of the table that a command line names, and for
// --type the types of one.
func completeColumn(cmd *cobra.Command, args []string, flag, begun string) (words []string) {
	if col, _, ok := strings.Cut(begun, "="); ok && flag == "type" {
		for t := table.Int64; t <= table.String; t++ {
			words = append(words, col+"="+t.String())
		}
		return words
	}
	path := tableOf(cmd, args)
	if path == "" || path == "-" {
		return nil
	}
	src, err := table.Open(path, nil, table.Options{Pass: true, Workers: 1})
	if err != nil {
		return nil
	}
	defer src.Close()
	for _, f := range src.Schema() {
		if flag == "type" {
			f.Name += "="
		}
		words = append(words, f.Name)
	}
	return words
}

// tableOf returns the table that a command line names, "" if it does not yet.
func tableOf(cmd *cobra.Command, args []string) string {
	if from := cmd.Flags().Lookup("from"); from != nil {
		return from.Value.String()
	}
	at, ok := map[string]int{"build": 0, "join": 1, "import": 1}[cmd.Name()]
	if !ok || at >= len(args) {
		return ""
	}
	return args[at]
}
