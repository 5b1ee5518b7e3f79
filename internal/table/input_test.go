package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/pando-index/pando/internal/seed"
)

// TestLimitIsNoDamage tests that what is refused by a limit is not called damage
// in compressed files, and that damage still is.
func TestLimitIsNoDamage(t *testing.T) {
	long := map[string]string{
		"x.jsonl": `{"a":"` + strings.Repeat("x", maxRecord) + `"}` + "\n",
		"x.csv":   "a\n\"" + strings.Repeat("x", maxRecord) + "\n\"\n",
	}
	for name, text := range long {
		for end, data := range pack(t, []byte(text)) {
			if !seed.Long() && (end == ".gz" && name == "x.csv" || end == ".zst" && name == "x.jsonl") {
				continue
			}
			_, err := readErr(tempFile(t, name+end, string(data)), Options{})
			if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") || strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s%s: %v", name, end, err)
			}
			if end == "" {
				continue
			}
			_, err = readErr(tempFile(t, name+end, string(data[:len(data)/2])), Options{})
			if err == nil || !strings.Contains(err.Error(), "is damaged or cut short") {
				t.Errorf("%s%s, half of it: %v", name, end, err)
			}
		}
	}
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(2*zstdWindow))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	wide.Reset(&b)
	for range 3 { // more than one block, so that the size is not known when the first is written
		if _, err := wide.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	wide.Close()
	if _, err = readErr(tempFile(t, "x.csv.zst", b.String()), Options{}); err == nil || !strings.Contains(err.Error(), "window of 256 MiB") {
		t.Errorf("%v", err)
	}
}
