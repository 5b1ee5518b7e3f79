package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/spf13/cobra"
)

// writeFile writes a file that does not exist until it is complete: it is
// written under another name, synced and renamed. If anything fails, or ctx is
// done, nothing is left behind. Pipes and devices are written to directly.
func writeFile(ctx context.Context, path string, write func(io.Writer) error) error {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() && !fi.IsDir() {
		return writeInto(ctx, path, write)
	}
	err := snapshot.Replace(path, func(w io.Writer) error {
		if err := write(patient{w, ctx}); err != nil {
			return err
		}
		return ctx.Err()
	}, func() {})
	return explainWrite(path, err)
}

func writeInto(ctx context.Context, path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return explainWrite(path, err)
	}
	if err := write(patient{f, ctx}); err != nil {
		f.Close()
		return explainWrite(path, err)
	}
	return f.Close()
}

// explainWrite adds which file cannot be written if the file system is the
// cause; other errors are clear by themselves.
func explainWrite(path string, err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return fmt.Errorf("cannot write %s: %w; is its folder there, yours, and not full?", path, p.Err)
	case errors.As(err, &l):
		return fmt.Errorf("cannot write %s: %w", path, l.Err)
	}
	return err
}

// patient is a writer that fails once a context is done.
type patient struct {
	io.Writer
	ctx context.Context
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.Writer.Write(b)
}

// mayWrite refuses a folder, and a file that the command reads, under any name or link, or
// that lies in a folder that it reads:
// the result of a mistaken command must not take its input's place, nor go behind it.
// Path "" is stdout, "-" among reads stdin and "" nothing, and patterns stand for their
// files.
func mayWrite(cmd *cobra.Command, path string, reads []string) error {
	for _, r := range reads {
		store, above := infoOf(r, nil), infoOf(filepath.Dir(path), nil)
		if path != "" && store != nil && store.IsDir() && above != nil && os.SameFile(store, above) {
			return usagef("%s is a store, and nothing else goes into its folder; write to another", r)
		}
	}
	fi := infoOf(path, cmd.OutOrStdout())
	switch {
	case fi == nil:
		return nil // it does not exist, or writing will fail
	case fi.IsDir():
		return usagef("%s is a folder; name a file in it", path)
	case !fi.Mode().IsRegular():
		return nil // a terminal is read and written
	}
	reads, err := expand(reads)
	if err != nil {
		return nil // to open them will fail, and say more
	}
	for _, r := range reads {
		if r == "" { // no file of keys
			continue
		}
		name := path
		if name == "" {
			name = r
		}
		if r == "-" {
			r = ""
		}
		if read := infoOf(r, cmd.InOrStdin()); read != nil && os.SameFile(fi, read) {
			return usagef("%s is what is read; write to another file, and rename it if all went well", name)
		}
	}
	return nil
}

// infoOf describes the file at a path, or that of a stream where the path is empty;
// nil if there is none.
func infoOf(path string, stream any) os.FileInfo {
	var fi os.FileInfo
	var err error
	if path != "" {
		fi, err = os.Stat(path)
	} else if f := fileOf(stream); f != nil {
		fi, err = f.Stat()
	}
	if err != nil {
		return nil
	}
	return fi
}

// mayReplace refuses to replace a file that has something in it, unless it is an
// index where an index will be: a typo must not cost anyone a table. With
// --force it is not called.
func mayReplace(path string, byIndex bool) error {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
		return nil // or writing will fail
	}
	if !byIndex {
		return fmt.Errorf("%s is there; take another name, or --force to replace it", path)
	}
	if _, err := pando.Inspect(path); errors.Is(err, pando.ErrFile) {
		return fmt.Errorf("%s is there and is no Pando index; take another name, or --force to replace it", path)
	}
	return nil
}

// canWrite returns an error if no file can be made at a path: better before hours of
// reading than after them.
func canWrite(path string) error {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil // a pipe or a device
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".pando-*")
	if err != nil {
		return explainWrite(path, err)
	}
	f.Close()
	return os.Remove(f.Name())
}
