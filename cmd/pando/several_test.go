package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando/cmd/pando/internal/gen"
	"github.com/pando-index/pando/internal/table"
)

// Progress may be asked for beside Next, also where Next goes on to another table, and never goes
// back. The race detector notices what else is wrong.
func TestProgressBesideNext(t *testing.T) {
	var paths []string
	for i := range 20 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".csv"))
		if err := os.WriteFile(path, []byte("key,value\n"+strings.Repeat("1,2\n", 1000)), 0o666); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	several, err := openTables(paths, nil, table.Options{Header: true})
	if err != nil {
		t.Fatal(err)
	}
	generated, err := gen.New(gen.Spec{Rows: 200_000, Dist: "uniform", Keys: "uint64", Value: "uint64"})
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]table.Source{"several": several, "generated": generated} {
		ended := make(chan error)
		go func() {
			var b table.Batch
			for {
				if err := src.Next(&b); err != nil {
					ended <- err
					return
				}
			}
		}()
		last := int64(0)
		for err = nil; err == nil; {
			done, total := src.Progress()
			if done < last || done > total {
				t.Fatalf("%s: %d of %d, and %d before", name, done, total, last)
			}
			last = done
			select {
			case err = <-ended:
			default:
			}
		}
		if done, total := src.Progress(); !errors.Is(err, io.EOF) || done != total {
			t.Errorf("%s: %d of %d at the end, %v", name, done, total, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
