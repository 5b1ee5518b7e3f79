package main

import (
	"bytes"
	"strings"
	"testing"
)

// Where rows are made, a bar counts rows; where they are read, the bytes.
func TestProgressBarsUnit(t *testing.T) {
	for _, rows := range []bool{true, false} {
		var out bytes.Buffer
		p := newProgress(&out, false, "writing")
		p.rows, p.pause = rows, 0
		p.drawBar(0, 4<<20, 0)
		p.drawBar(4<<20-1, 4<<20, 1_000_000)
		p.end()
		text := out.String()
		if got := strings.Contains(text, "B/s"); got == rows {
			t.Errorf("rows %t: %q", rows, text)
		}
		if got := strings.Contains(text, "rows/"); got != rows {
			t.Errorf("rows %t: %q", rows, text)
		}
	}
}
