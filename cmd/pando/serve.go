package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/scaled"
	"github.com/pando-index/pando/pandoserver"
	"github.com/pando-index/pando/pandoserver/pandohttp"
	"github.com/pando-index/pando/pandostore"
	"github.com/pando-index/pando/pandoview"
	"github.com/spf13/cobra"
)

const serveLong = `Put an index on the wire: clients and tools of redis speak to it, and curl, browsers
and Prometheus by HTTP. Without arguments it is in memory and gone when the command
ends; a folder is a store, which is made if it is not there, and keeps every change
that a client was told is done; a file is only read. Of several the first is number 0,
and SELECT takes a number or a name: that of the file or folder without its extension.

Keys are in order: PANDO.RANGE, PANDO.PREFIX, PANDO.COUNT and their like ask for it,
and ZRANGE NAME … BYLEX. By HTTP, /openapi.json says what can be asked, /view/ shows
an index, /metrics is for Prometheus. docs/server.md has all commands.

The server listens on addresses of this machine alone, unless --tls-cert, --tls-key
and --users are there: then others may be given. --users is a file with a line for
each user, as redis has them: user alice on >secret +@all ~*

Every flag is also an environment variable (--http-host is PANDO_SERVE_HTTP_HOST) and
a line of the file that --config names (http-host = …). The command line counts most,
then the variable, then the file. --print-config writes such a file with all settings
explained; --check looks at a configuration and ends.

When it is interrupted it finishes what has come, and ends.`

const serveExample = `  pando serve                            an index in memory, on 127.0.0.1:6379 and :6380
  pando serve data                       a store in the folder data
  pando serve people.pando cities.pando  two files
  redis-cli set apple 3
  redis-cli pando.range a b
  curl 'localhost:6380/v1/range?lo=a&format=csv'
  pando serve --print-config > pando.conf
  pando serve --config pando.conf --check`

// Where clients of redis look for a server, and the port behind it.
const (
	usualAddress = "127.0.0.1:6379"
	usualHTTP    = "127.0.0.1:6380"
)

// off is the address of what is not served.
const off = "off"

// serveFlags are the settings of the command.
type serveFlags struct {
	listen, http, pprof       string
	hosts                     []string
	users, cert, key, clients string
	place                     place
	memory                    string
	sync                      string
	maxClients                int
	idle, write, grace        time.Duration
	slower                    time.Duration
	level, format             oneOf
	config                    string
	check, print              bool
}

func newServe() *cobra.Command {
	f := &serveFlags{level: oneOf{[]string{"debug", "info", "warn", "error"}, "info"}, format: oneOf{[]string{"text", "json"}, "text"}}
	cmd := &cobra.Command{
		Use:     "serve [DIR|FILE...] [flags]",
		Short:   "Serve an index to clients of redis and by HTTP",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.ArbitraryArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", usualAddress, "`ADDRESS` for clients of redis; port 0 is any that is free, off is none")
	flags.StringVar(&f.http, "http", usualHTTP, "`ADDRESS` for HTTP; port 0 is any that is free, off is none")
	flags.StringSliceVar(&f.hosts, "http-host", nil, "other `NAMES` than localhost by which HTTP may be asked, separated by commas")
	flags.StringVar(&f.users, "users", "", "`FILE` of users, a line each: user alice on >secret +@all ~*; without it everybody may do everything")
	flags.StringVar(&f.cert, "tls-cert", "", "`FILE` of the server's certificate, in PEM, with those that vouch for it; read again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` of the key of the certificate")
	flags.StringVar(&f.clients, "tls-clients", "", "`FILE` of the certificates of those who vouch for clients: then each client needs a certificate")
	flags.StringVar(&f.sync, "sync", "always", "when changes of a store are on disk: always, before they are acknowledged; or after a `TIME` such as 100ms at most; or never, but by SAVE and at the end")
	flags.StringVar(&f.memory, "memory", "", "most `BYTES` of an index that can be changed, such as 4GiB: changes that need more are errors")
	f.place.flags(cmd)
	flags.IntVar(&f.maxClients, "max-clients", 10_000, "most `CONNECTIONS` of clients of redis")
	flags.DurationVar(&f.idle, "idle-timeout", 0, "`TIME` after which connections are closed on which nothing comes; 0 is never")
	flags.DurationVar(&f.write, "write-timeout", 10*time.Second, "`TIME` after which clients are dropped that do not take their replies")
	flags.DurationVar(&f.grace, "grace", 5*time.Second, "`TIME` that commands under way have when the server ends")
	flags.DurationVar(&f.slower, "slower-than", 10*time.Millisecond, "`TIME` from which on SLOWLOG remembers a command; below 0 it remembers none")
	flags.Var(&f.level, "log-level", "what is written to stderr: `LEVEL` and what is worse; debug, info, warn or error")
	flags.Var(&f.format, "log-format", "`FORMAT` of what is written there: text or json")
	flags.StringVar(&f.pprof, "pprof", off, "`ADDRESS` of this machine alone where go tool pprof may ask")
	flags.StringVar(&f.config, "config", "", "`FILE` of settings, by the names of these flags")
	flags.BoolVar(&f.check, "check", false, "look whether the configuration is right, and end")
	flags.BoolVar(&f.print, "print-config", false, "write a file of settings, with what each is for, and end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) }
	return cmd
}

const configAbout = `Settings of pando serve --config FILE. The command line counts more than this file, and environment variables do, too: http-host is PANDO_SERVE_HTTP_HOST. Names of files are seen from the folder of this file.`

func (f *serveFlags) run(cmd *cobra.Command, args []string) (err error) {
	set := &settings{flags: cmd.Flags(), prefix: "PANDO_SERVE_", none: []string{"config", "check", "print-config", "help"},
		paths: []string{"users", "tls-cert", "tls-key", "tls-clients"}}
	if err := set.load(f.config, args); err != nil {
		return err
	}
	if f.print {
		return set.print(cmd.OutOrStdout(), configAbout)
	}
	s := &serving{flags: f}
	if err := s.protect(); err != nil {
		return err
	}
	if err := s.prepare(cmd.ErrOrStderr()); err != nil {
		return err
	}
	if f.check {
		return s.check(cmd, set.files)
	}
	ways, err := s.listen()
	if err != nil {
		return err
	}
	defer ways.close()
	defer func() { err = errors.Join(err, s.close()) }()
	return s.serve(cmd, set.files, ways)
}

// serving is what the command serves.
type serving struct {
	flags *serveFlags
	users *pandoserver.Users
	certs *pandoserver.Certificates
	tree  []pando.Option      // of indexes that can be changed
	store []pandostore.Option // of stores
	log   *slog.Logger        // where the server writes what happens
	web   *pandohttp.Server   // which has no indexes yet
	ports []port              // where it listens

	names   []string
	sources []pandoserver.Source
	views   []pandoview.Index
	what    []string // in words
	closers []func() error
}

// add adds an index.
func (s *serving) add(name string, src pandoserver.Source, shown pandoview.Index, what string, closer func() error) {
	s.names, s.sources, s.views = append(s.names, name), append(s.sources, src), append(s.views, shown)
	s.what, s.closers = append(s.what, what), append(s.closers, closer)
}

func (s *serving) close() (err error) {
	for _, f := range s.closers {
		err = errors.Join(err, f())
	}
	return err
}

// prepare makes all that settings tell and that needs no index, so that --check finds what is wrong with them.
func (s *serving) prepare(told io.Writer) (err error) {
	f := s.flags
	if s.ports, err = f.addresses(); err != nil {
		return err
	}
	if _, err := f.place.options(); err != nil {
		return err
	}
	if s.tree, err = f.tree(); err != nil {
		return err
	}
	if s.store, err = f.store(s.tree); err != nil {
		return err
	}
	if s.log, err = f.log(told); err != nil {
		return err
	}
	s.web, err = s.newWeb()
	return err
}

// tree returns the options of indexes that can be changed.
func (f *serveFlags) tree() (opts []pando.Option, err error) {
	if f.memory == "" {
		return nil, nil
	}
	n, err := scaled.Parse(f.memory, 1024)
	if err != nil || n == 0 {
		return nil, usagef("--memory %s; take a number of bytes such as 500MiB or 4GiB", f.memory)
	}
	return []pando.Option{pando.MemoryLimit(n)}, nil
}

// store returns the options of stores.
func (f *serveFlags) store(tree []pando.Option) (opts []pandostore.Option, err error) {
	opts = append(opts, pandostore.Tree(tree...))
	switch f.sync {
	case "always":
		return opts, nil
	case "never":
		return append(opts, pandostore.NoSync()), nil
	}
	d, err := time.ParseDuration(f.sync)
	if err != nil || d <= 0 {
		return nil, usagef("--sync %s; take always, never or a time such as 100ms", f.sync)
	}
	return append(opts, pandostore.SyncEvery(d)), nil
}

// open opens all that arguments name.
func (s *serving) open(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return s.openTree("index")
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

// openTree makes an index in memory.
func (s *serving) openTree(name string) error {
	tree, err := pando.NewTree[string, []byte](s.tree...)
	if err != nil {
		return err
	}
	s.add(name, pandoserver.Tree(tree), tree, "an index in memory, which is gone at the end", tree.Close)
	return nil
}

// bare returns the name of a file or folder without its extension. A dot before it is none: it hides it.
func bare(base string) string {
	if name := strings.TrimSuffix(base, filepath.Ext(base)); name != "" {
		return name
	}
	return base
}

// named returns the name of what is at a path, and whether that is a store. What is not there and is not called as files
// are becomes one.
func named(path string) (name string, store bool, err error) {
	if path == "" {
		return "", false, usagef("an index has no path; name a file or a folder")
	}
	base := filepath.Base(path)
	fi, err := os.Stat(path)
	store = err == nil && fi.IsDir() || errors.Is(err, fs.ErrNotExist) && bare(base) == base
	if base == "." || base == ".." {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", false, err
		}
		base = filepath.Base(abs)
	}
	return bare(base), store, nil
}

// openOne opens a store or a file.
func (s *serving) openOne(path string) error {
	name, store, err := named(path)
	switch {
	case err != nil:
		return err
	case store:
		return s.openStore(path, name)
	}
	ix, err := s.flags.place.openIndex(path)
	if err != nil {
		return err
	}
	s.add(name, fileSource(ix, path), ix, fmt.Sprintf("%s: %d entries of a file, only read, on %v", path, ix.Len(), ix.Stats().Device), ix.Close)
	return nil
}

func (s *serving) openStore(path, name string) error {
	st, err := pandostore.Open[string, []byte](path, s.store...)
	switch {
	case errors.Is(err, pando.ErrType):
		return fmt.Errorf("%w; a store that is served has keys and values of bytes, as pando serve makes it", err)
	case err != nil:
		return err
	}
	s.add(name, pandoserver.Store(st), st, fmt.Sprintf("%s: %d entries of a store", path, st.Len()), st.Close)
	return nil
}

// canOpen looks whether a path has an index that can be opened, or room for a store.
func canOpen(path string, store bool) error {
	if store {
		_, _, err := hasStore(path)
		return err
	}
	ix, err := anywhere.openIndex(path)
	if err != nil {
		return err
	}
	return ix.Close()
}

// check looks whether all is right that can be known without listening or changing anything. It makes the servers as serve
// does, of indexes in memory in the place of those that are named.
func (s *serving) check(cmd *cobra.Command, args []string) (err error) {
	for _, p := range s.ports {
		a, err := net.ResolveTCPAddr("tcp", p.address)
		if err == nil {
			err = pandoserver.Admits(a, s.protection(p.local)...)
		}
		if err != nil {
			return p.refused(err)
		}
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, path := range args {
		name, store, err := named(path)
		if err != nil {
			return err
		}
		if err := canOpen(path, store); err != nil {
			return err
		}
		if err := s.openTree(name); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		if err := s.open(cmd.Context(), nil); err != nil {
			return err
		}
	}
	srv, err := s.server()
	if err != nil {
		return err
	}
	if err := s.show(srv); err != nil {
		return err
	}
	for _, text := range s.looseFiles() {
		fmt.Fprintln(cmd.ErrOrStderr(), "Take care:", text)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "The configuration is right.")
	return err
}
