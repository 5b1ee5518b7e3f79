package main

import (
	"bytes"
	"strings"
	"testing"
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
