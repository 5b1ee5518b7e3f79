package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/cmd/pando/internal/typed"
	"github.com/pando-index/pando/internal/table"
	"github.com/spf13/cobra"
)

// place is the flags that tell where an index runs.
type place struct {
	device  string
	threads int
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.device, "device", "d", "auto", "`DEVICE` where batches run: auto, cpu, gpu:0, which copies the index there first, or hybrid:0, which copies inner nodes, or of strings the partial keys")
	cmd.Flags().IntVar(&p.threads, "threads", 0, "most `THREADS` to use; 0 is one for each core")
}

// options returns the flags as options.
func (p *place) options() ([]pando.Option, error) {
	d, err := parseDevice(p.device)
	if err != nil {
		return nil, err
	}
	if p.threads < 0 {
		return nil, usagef("--threads %d; 0 is one for each core", p.threads)
	}
	return []pando.Option{pando.On(d), pando.Workers(p.threads)}, nil
}

func parseDevice(s string) (pando.Device, error) {
	d, err := pando.ParseDevice(s)
	if err != nil {
		return d, usagef("no device %q; take auto, cpu, gpu:0 or hybrid:0; `pando devices` lists what there is", s)
	}
	return d, nil
}

// anywhere is the place for commands that make few queries.
var anywhere = &place{device: "auto"}

// openIndex opens a file on the place that the flags select.
func (p *place) openIndex(path string) (typed.Index, error) {
	opts, err := p.options()
	if err != nil {
		return nil, err
	}
	watched.add(path)
	ix, err := typed.Open(path, opts...)
	if err != nil {
		return nil, explain(path, err)
	}
	info, err := pando.Inspect(path)
	if err != nil {
		ix.Close()
		return nil, explain(path, err)
	}
	return withKinds(ix, info.Note), nil
}

// openFor opens a file as openIndex does, and tells if it is not where the flags want
// it: answers are the same on the CPU, but not as fast.
func (p *place) openFor(cmd *cobra.Command, path string) (typed.Index, error) {
	ix, err := p.openIndex(path)
	if err != nil {
		return nil, err
	}
	asked, _ := parseDevice(p.device)
	if s := ix.Stats(); asked != pando.Auto && asked != pando.CPU && s.Device == pando.CPU {
		fmt.Fprintf(cmd.ErrOrStderr(), "--device %s: the CPU answers instead (%s); `pando devices` tells what there is\n", p.device, s.Reason)
	}
	return ix, nil
}

// opener opens what a command asks: a file, or a store.
type opener func(cmd *cobra.Command, path string) (typed.Index, error)

// openFile opens a file for commands that make few queries.
func openFile(_ *cobra.Command, path string) (typed.Index, error) { return anywhere.openIndex(path) }

// explain adds a next step to errors of opening.
func explain(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file; `pando build TABLE -o %s --key COL` makes one", path, path)
	case errors.Is(err, pando.ErrFile) && looksLikeTable(path):
		return fmt.Errorf("%w; it looks like a table: `pando build %s -o FILE --key COL` makes an index of it", err, path)
	}
	return err
}

func looksLikeTable(path string) bool {
	_, known := extensions[tableExt(path)]
	return known
}

// selection is the flag --only.
type selection struct{ only string }

func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.only, "only", "", "write only the `key|value`")
}

// columns reports whether keys and values are to be written.
func (s *selection) columns(ix typed.Index) (keys, vals bool, err error) {
	_, valued := ix.Value()
	switch {
	case s.only == "":
		return true, valued, nil
	case s.only == "key":
		return true, false, nil
	case s.only == "value" && valued:
		return false, true, nil
	case s.only == "value":
		return false, false, usagef("--only value: the index has keys alone")
	}
	return false, false, usagef("--only %q; take key or value", s.only)
}

// entrySchema returns the columns of entries.
func entrySchema(ix typed.Index, keys, vals bool) (schema []table.Field) {
	if keys {
		schema = append(schema, keyField(ix))
	}
	if vals {
		schema = append(schema, valueField(ix, besideKey(valueName(ix))))
	}
	return schema
}
