package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/pando-index/pando/internal/table"
)

// numberSource returns batches of one row, numbered from 0, and then an error.
type numberSource struct {
	n, next int64
	end     error
}

func (s *numberSource) Schema() []table.Field    { return []table.Field{{Name: "n"}} }
func (s *numberSource) Progress() (int64, int64) { return s.next, s.n }
func (s *numberSource) Close() error             { return nil }

func (s *numberSource) Next(b *table.Batch) error {
	b.Reset(s.Schema())
	if s.next == s.n {
		return s.end
	}
	b.Columns[0].Int64, b.Rows = append(b.Columns[0].Int64, s.next), 1
	s.next++
	return nil
}

// All batches come through, in order, with their row numbers.
func TestPipelineKeepsOrder(t *testing.T) {
	next := int64(0)
	err := pipeline(t.Context(), &numberSource{n: 1000, end: io.EOF},
		func(j *job) error { j.in.Columns[0].Int64[0] *= 2; return nil },
		func(j *job) error {
			if got := j.in.Columns[0].Int64[0]; got != 2*next || j.row != next+1 {
				t.Errorf("batch %d has %d, and row %d", next, got, j.row)
			}
			next++
			return nil
		})
	if err != nil || next != 1000 {
		t.Errorf("%v after %d batches", err, next)
	}
}

// An error of any stage ends the pipeline and is returned.
func TestPipelineFails(t *testing.T) {
	broken := errors.New("broken")
	at := func(stop int64) func(*job) error {
		return func(j *job) error {
			if j.row == stop {
				return broken
			}
			return nil
		}
	}
	for name, err := range map[string]error{
		"source":  pipeline(t.Context(), &numberSource{n: 50, end: broken}, nil, nil),
		"work":    pipeline(t.Context(), &numberSource{n: 50, end: io.EOF}, at(20), nil),
		"deliver": pipeline(t.Context(), &numberSource{n: 50, end: io.EOF}, nil, at(20)),
		"first":   pipeline(t.Context(), &numberSource{n: 0, end: broken}, nil, nil),
	} {
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pipeline(ctx, &numberSource{n: 50, end: io.EOF}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
