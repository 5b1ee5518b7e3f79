package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoserver"
	"github.com/pando-index/pando/pandostore"
	"github.com/spf13/cobra"
)

const serveLong = `Put an index on the wire: clients and tools of redis speak to it. Without arguments it
is in memory and gone when the command ends; a folder is a store, which is made if it
is not there, and keeps every change that a client was told is done; a file is only
read. Of several the first is number 0, and SELECT takes a number or a name: that of
the file or folder without its extension.

Keys are in order: PANDO.RANGE, PANDO.PREFIX, PANDO.COUNT and their like ask for it, and
ZRANGE NAME … BYLEX. docs/server.md has all commands.

The server listens on an address of this machine alone until it is interrupted. Then it
finishes the commands that have come.`

const serveExample = `  pando serve                            an index in memory, on 127.0.0.1:6379
  pando serve data                       a store in the folder data
  pando serve people.pando cities.pando  two files
  redis-cli set apple 3
  redis-cli pando.range a b`

// usualAddress is where redis' clients look for a server.
const usualAddress = "127.0.0.1:6379"

func newServe() *cobra.Command {
	address := usualAddress
	cmd := &cobra.Command{
		Use:     "serve [DIR|FILE...] [flags]",
		Short:   "Serve an index to clients of redis",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			l, err := listen(address)
			if err != nil {
				return err
			}
			defer l.Close()
			s := &serving{}
			defer func() { err = errors.Join(err, s.close()) }()
			if err := s.open(cmd.Context(), args); err != nil {
				return err
			}
			return s.serve(cmd, l)
		},
	}
	cmd.Flags().StringVar(&address, "listen", usualAddress, "`ADDRESS` to listen on; port 0 is any that is free")
	return cmd
}

// listen listens on an address of this machine alone.
func listen(address string) (net.Listener, error) {
	l, err := pandoserver.Listen(address)
	switch {
	case errors.Is(err, pandoserver.ErrExposed):
		return nil, usagef("--listen %s: %w", address, err)
	case err != nil:
		return nil, fmt.Errorf("cannot listen: %w; is another program there, redis-server perhaps? --listen 127.0.0.1:0 takes a port that is free", err)
	}
	return l, nil
}

// serving is what the command serves.
type serving struct {
	names   []string
	sources []pandoserver.Source
	what    []string // in words
	closers []func() error
}

// add adds an index.
func (s *serving) add(name string, src pandoserver.Source, what string, closer func() error) {
	s.names, s.sources = append(s.names, name), append(s.sources, src)
	s.what, s.closers = append(s.what, what), append(s.closers, closer)
}

func (s *serving) close() (err error) {
	for _, f := range s.closers {
		err = errors.Join(err, f())
	}
	return err
}

// open opens all that arguments name.
func (s *serving) open(ctx context.Context, args []string) error {
	if len(args) == 0 {
		tree, err := pando.NewTree[string, []byte]()
		if err != nil {
			return err
		}
		s.add("index", pandoserver.Tree(tree), "an index in memory, which is gone at the end", tree.Close)
	}
	for _, path := range args {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.openOne(path); err != nil {
			return err
		}
	}
	return nil
}

// bare returns the name of a file or folder without its extension. A dot before it is none: it hides it.
func bare(base string) string {
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}

// openOne opens a store or a file. What is not there and is not called as files are becomes a
// store.
func (s *serving) openOne(path string) error {
	base := filepath.Base(path)
	name := bare(base)
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir(), errors.Is(err, fs.ErrNotExist) && name == base:
		return s.openStore(path, name)
	}
	ix, err := anywhere.openIndex(path)
	if err != nil {
		return err
	}
	s.add(name, fileSource(ix), fmt.Sprintf("%s: %d entries of a file, only read", path, ix.Len()), ix.Close)
	return nil
}

func (s *serving) openStore(path, name string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	st, err := pandostore.Open[string, []byte](path)
	switch {
	case errors.Is(err, pando.ErrType):
		return fmt.Errorf("%w; a store that is served has keys and values of bytes, as pando serve makes it", err)
	case err != nil:
		return err
	}
	if name == "." || name == ".." {
		name = bare(filepath.Base(abs))
	}
	s.add(name, pandoserver.Store(st), fmt.Sprintf("%s: %d entries of a store", path, st.Len()), st.Close)
	return nil
}

// serve serves until the command is interrupted.
func (s *serving) serve(cmd *cobra.Command, l net.Listener) error {
	opts := []pandoserver.Option{pandoserver.Name(s.names[0]), pandoserver.Logger(slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))}
	for i := 1; i < len(s.names); i++ {
		opts = append(opts, pandoserver.And(s.names[i], s.sources[i]))
	}
	srv, err := pandoserver.New(s.sources[0], opts...)
	if err != nil {
		return usageError{err}
	}
	for i, what := range s.what {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d %s  %s\n", i, s.names[i], what)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), l.Addr()); err != nil {
		return err // nobody would know where to connect
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Serving clients of redis on this machine until interrupted (Ctrl-C).\n")
	return srv.Serve(cmd.Context(), l)
}
