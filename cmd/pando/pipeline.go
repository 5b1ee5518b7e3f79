package main

import (
	"context"
	"errors"
	"io"
	"runtime/debug"

	"github.com/pando-index/pando/internal/table"
)

// job is a batch of rows in a pipeline, with memory for its results, so that
// nothing is allocated per batch.
type job struct {
	in    table.Batch
	row   int64 // number of the first row, from 1
	vals  table.Column
	found []bool
	ranks []int
	out   table.Batch
}

// onTheWay is the number of batches in a pipeline: one in each of the three
// stages and one between any two.
const onTheWay = 5

// pipeline reads all batches of a source, works on each and delivers it, in
// order. The three stages run at the same time, each on its own batch. It ends
// when everything is delivered or something fails; after a failure, a read in
// progress may end later, and the source must then be closed. Either function
// may be nil.
func pipeline(ctx context.Context, src table.Source, work, deliver func(*job) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	empty := make(chan *job, onTheWay)
	for range onTheWay {
		empty <- new(job)
	}
	full, worked := make(chan *job), make(chan *job)
	row := int64(1)
	go stage(ctx, cancel, empty, full, func(j *job) error {
		err := src.Next(&j.in)
		j.row = row
		row += int64(j.in.Rows)
		return err
	})
	go stage(ctx, cancel, full, worked, work)
	stage(ctx, cancel, worked, nil, func(j *job) error {
		if deliver != nil {
			if err := deliver(j); err != nil {
				return err
			}
		}
		empty <- j // never blocks: there is room for all
		return nil
	})
	for range worked { // until both others are done
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// stage takes jobs from one channel, processes them and passes them on. It
// ends when the channel is closed, at io.EOF from do, or when the context is
// done, and closes its own channel, so that the stages after it end as well.
// An error cancels the context with that error as the cause, and so does a fault
// of an index file that changes.
func stage(ctx context.Context, cancel context.CancelCauseFunc, from <-chan *job, to chan<- *job, do func(*job) error) {
	if to != nil {
		defer close(to)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			cancel(watched.fault(v))
		}
	}()
	for {
		var j *job
		var ok bool
		select {
		case j, ok = <-from:
		case <-ctx.Done():
		}
		if !ok || ctx.Err() != nil {
			return
		}
		if do != nil {
			if err := do(j); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				cancel(err)
				return
			}
		}
		if to == nil {
			continue
		}
		select {
		case to <- j:
		case <-ctx.Done():
			return
		}
	}
}
