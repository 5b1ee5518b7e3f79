package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pando-index/pando/internal/table"
)

// several is tables of the same columns, one after the other. The first decides
// about types, which all others are read with.
type several struct {
	paths  []string // of those that are not opened yet
	stdin  io.Reader
	o      table.Options
	schema []table.Field
	total  int64 // bytes of all, 0 if that is not known

	mu     sync.Mutex // held to change the fields below, and by Progress, which runs beside Next
	now    table.Source
	before int64 // bytes of those that are behind
}

// openTables opens one or several tables. A path that is not there may be a pattern,
// such as part-*.parquet, for shells that do not know it.
func openTables(paths []string, stdin io.Reader, o table.Options) (table.Source, error) {
	paths, err := expand(paths)
	if err != nil {
		return nil, err
	}
	first, err := table.Open(paths[0], stdin, o)
	if err != nil || len(paths) == 1 {
		return first, err
	}
	s := &several{paths: paths[1:], stdin: stdin, o: o, now: first, schema: first.Schema()}
	if !o.Pass {
		s.o.Columns = nil
		for _, f := range s.schema {
			s.o.Columns = append(s.o.Columns, f.Name)
		}
		s.keepTypes(s.schema)
	} else if o.Typed { // the last column is looked up
		s.keepTypes(s.schema[:len(s.schema)-1])
	}
	for _, p := range paths {
		fi, err := os.Stat(p)
		if err != nil || !fi.Mode().IsRegular() {
			s.total = 0
			break
		}
		s.total += fi.Size()
	}
	return s, nil
}

// keepTypes makes all further tables have the types of columns of the first.
func (s *several) keepTypes(columns []table.Field) {
	s.o.Types, s.o.Kinds, s.o.Exact = map[string]table.Type{}, map[string]table.Kind{}, map[string]bool{}
	for _, f := range columns {
		if f.Native == nil && f.Form != table.Token {
			s.o.Types[f.Name], s.o.Kinds[f.Name], s.o.Exact[f.Name] = f.Type, f.Kind, f.Exact
		}
	}
}

// expand replaces patterns by the files they stand for, in the order of their names.
func expand(paths []string) (all []string, err error) {
	for _, p := range paths {
		_, missing := os.Lstat(p)
		if p == "-" && slices.Contains(all, p) {
			return nil, usagef("stdin can be read only once")
		}
		if p == "-" || missing == nil || !strings.ContainsAny(p, "*?[") {
			all = append(all, p)
			continue
		}
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			return nil, usagef("no file is like %s", p)
		}
		all = append(all, found...)
	}
	return all, nil
}

func (s *several) Schema() []table.Field { return s.schema }

// Next implements table.Source.Next.
func (s *several) Next(b *table.Batch) error {
	for {
		err := s.now.Next(b)
		if !errors.Is(err, io.EOF) || len(s.paths) == 0 {
			return err
		}
		_, size := s.now.Progress()
		if err := s.now.Close(); err != nil {
			return err
		}
		next, err := table.Open(s.paths[0], s.stdin, s.o)
		if err != nil {
			return err
		}
		path := s.paths[0]
		s.paths = s.paths[1:]
		s.mu.Lock()
		s.now, s.before = next, s.before+size
		s.mu.Unlock()
		if !slices.EqualFunc(s.schema, next.Schema(), alike) {
			return fmt.Errorf("%s has other columns than the first table: %s, not %s", path, names(next.Schema()), names(s.schema))
		}
	}
}

// alike reports whether two columns can be written as one.
func alike(a, b table.Field) bool {
	return a.Name == b.Name && a.Type == b.Type && (a.Form == table.Token) == (b.Form == table.Token) && fmt.Sprint(a.Native) == fmt.Sprint(b.Native)
}

func (s *several) Progress() (done, total int64) {
	s.mu.Lock()
	now, before := s.now, s.before
	s.mu.Unlock()
	done, _ = now.Progress()
	return before + done, s.total
}

// Close implements table.Source.Close. A read that was given up may still be under way.
func (s *several) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Close()
}

// Notes returns the decisions about the first table.
func (s *several) Notes() []string {
	if n, ok := s.now.(interface{ Notes() []string }); ok {
		return n.Notes()
	}
	return nil
}
