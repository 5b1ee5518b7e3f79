package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando"
)

func TestDemo(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"demo", "-n", "20000"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, want := range []string{"built from 20000 sorted pairs", "GetBatch", "RankBatch", "RangeBatch", "ran on: cpu", "are equal"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, args := range [][]string{nil, {"dmeo"}, {"demo", "-n", "5"}, {"demo", "-n", "x"}, {"demo", "more"},
		{"devices", "more"}, {"devices", "-n", "5"}, {"devices", "--json=x"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("pando %v: exit code %d, stdout %q, stderr %q", args, code, out.String(), errs.String())
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"demo", "-h"}, {"devices", "-h"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 0 || out.Len()+errs.Len() == 0 {
			t.Errorf("pando %v: exit code %d", args, code)
		}
	}
}

// What info says opens an index of string values does.
func TestStringValuesOpen(t *testing.T) {
	folder := t.TempDir()
	table, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	must(t, "gen", "-n", "10", "--dist", "dense", "--value", "string", "-o", table)
	must(t, "build", table, "-o", file, "-k", "key", "-v", "value", "-q")
	ix, err := pando.Open[int64, string](file)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if k, v, ok := ix.Min(); !ok || v == "" {
		t.Errorf("%d has %q, %t", k, v, ok)
	}
}
