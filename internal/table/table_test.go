package table

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tempFile writes a file for a test.
func tempFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll returns all rows of an input in one batch.
func readAll(t testing.TB, path string, o Options) *Batch {
	t.Helper()
	all, err := readErr(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// readErr returns all rows of an input in one batch, or the error.
func readErr(path string, o Options) (*Batch, error) {
	src, err := Open(path, nil, o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return drain(src)
}

// drain returns all rows of a source in one batch.
func drain(src Source) (*Batch, error) {
	var all, b Batch
	all.Reset(src.Schema())
	for {
		err := src.Next(&b)
		if err == io.EOF {
			if again := src.Next(&b); again != io.EOF {
				return nil, errors.New("the end does not stay")
			}
			return &all, nil
		}
		if err != nil {
			return nil, err
		}
		if b.Rows == 0 {
			return nil, errors.New("an empty batch")
		}
		if err := gather(&all, &b); err != nil {
			return nil, err
		}
	}
}

// gather appends the rows of b to all.
func gather(all, b *Batch) error {
	for i := range b.Columns {
		from, to := &b.Columns[i], &all.Columns[i]
		if from.Len() != b.Rows || from.Null != nil && len(from.Null) != b.Rows || from.Field != to.Field {
			return errors.New("a column does not fit its batch")
		}
		if from.Null != nil {
			to.PadNull(to.Len())
		}
		to.Int64 = append(to.Int64, from.Int64...)
		to.Uint64 = append(to.Uint64, from.Uint64...)
		to.Int32 = append(to.Int32, from.Int32...)
		to.Uint32 = append(to.Uint32, from.Uint32...)
		to.Float64 = append(to.Float64, from.Float64...)
		to.Float32 = append(to.Float32, from.Float32...)
		to.String = append(to.String, from.String...)
		if from.Null != nil {
			to.Null = append(to.Null, from.Null...)
		}
		to.Seal()
	}
	all.Rows += b.Rows
	return nil
}
