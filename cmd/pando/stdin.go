package main

import (
	"context"
	"io"
	"os"
)

// stdinOf returns a program's input. Reads of a pipe or a terminal end when
// ctx is done, so that ^C also ends a command that waits for input; a regular
// file is returned as it is, because readers of some formats need to seek in
// it.
func stdinOf(ctx context.Context, in io.Reader) io.Reader {
	if f, ok := in.(*os.File); ok {
		if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
			return in
		}
	}
	return &impatient{ctx: ctx, in: in}
}

// impatient is a reader that fails when a context is done, even in the middle
// of a read.
type impatient struct {
	ctx    context.Context
	in     io.Reader
	pieces chan piece
	free   chan []byte
	rest   []byte // part of buf not yet returned
	buf    []byte
	err    error // returned after rest
}

// piece is the result of one read.
type piece struct {
	buf []byte
	n   int
	err error
}

// pieceSize is the most that is read at once; two pieces are used in turn.
const pieceSize = 256 << 10

func (r *impatient) Read(p []byte) (int, error) {
	if r.pieces == nil {
		r.start()
	}
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.buf != nil {
			r.free <- r.buf
		}
		select {
		case got := <-r.pieces:
			r.buf, r.rest, r.err = got.buf, got.buf[:got.n], got.err
		case <-r.ctx.Done():
			r.buf, r.err = nil, r.ctx.Err()
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// start reads ahead on a goroutine of its own. The goroutine may stay in a
// read until the program ends: nothing can interrupt it.
func (r *impatient) start() {
	r.pieces, r.free = make(chan piece, 2), make(chan []byte, 2)
	r.free <- make([]byte, pieceSize)
	r.free <- make([]byte, pieceSize)
	go func() {
		for buf := range r.free {
			n, err := r.in.Read(buf)
			r.pieces <- piece{buf, n, err}
			if err != nil {
				return
			}
		}
	}()
}
