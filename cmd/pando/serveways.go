package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"time"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/pandoserver"
	"github.com/pando-index/pando/pandoserver/pandohttp"
	"github.com/pando-index/pando/pandoview"
	"github.com/spf13/cobra"
)

// protect reads users and certificates.
func (s *serving) protect() (err error) {
	f := s.flags
	if f.users != "" {
		if s.users, err = pandoserver.OpenUsers(f.users); err != nil {
			return err
		}
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return usagef("--tls-cert and --tls-key go together: give both, or none")
	case f.cert == "" && f.clients != "":
		return usagef("--tls-clients needs --tls-cert and --tls-key, too")
	case f.cert != "":
		s.certs, err = pandoserver.OpenCertificates(f.cert, f.key, f.clients)
	}
	return err
}

// looseFiles returns a sentence for each file of secrets that other users of this machine may read or change.
func (s *serving) looseFiles() (all []string) {
	if runtime.GOOS == "windows" { // whose files have no such modes
		return nil
	}
	for _, f := range []struct{ flag, path string }{{"users", s.flags.users}, {"tls-key", s.flags.key}} {
		if f.path == "" {
			continue
		}
		if fi, err := os.Stat(f.path); err == nil && fi.Mode().Perm()&0o007 != 0 {
			all = append(all, fmt.Sprintf("other users of this machine may use the file of --%s, %s, which has mode %04o; chmod 600 it", f.flag, f.path, fi.Mode().Perm()))
		}
	}
	return all
}

// protection returns the options that tell who may reach a server: nobody from another machine if it is local.
func (s *serving) protection(local bool) (opts []pandoserver.Option) {
	if s.users != nil && !local {
		opts = append(opts, pandoserver.Restrict(s.users))
	}
	if s.certs != nil && !local {
		opts = append(opts, pandoserver.Secure(s.certs))
	}
	return opts
}

// ways are the listeners of the command: nil where there is none.
type ways struct{ redis, http, pprof net.Listener }

func (w *ways) close() {
	for _, l := range []net.Listener{w.redis, w.http, w.pprof} {
		if l != nil {
			l.Close()
		}
	}
}

// port is an address where the command listens.
type port struct {
	name, address string // of the flag, and what it says
	other         string // what may be done where another program is there
	local         bool   // it is for this machine alone, without users
	to            func(w *ways) *net.Listener
}

// refused returns the error of an address that cannot be taken.
func (p port) refused(err error) error { return usagef("--%s %s: %w", p.name, p.address, err) }

// addresses returns where the command listens.
func (f *serveFlags) addresses() (all []port, err error) {
	if f.listen == off && f.http == off {
		return nil, usagef("--listen and --http are both off: nobody could ask")
	}
	for _, p := range []port{
		{"listen", f.listen, "redis-server perhaps? --listen 127.0.0.1:0 takes a port that is free", false, func(w *ways) *net.Listener { return &w.redis }},
		{"http", f.http, "another pando serve perhaps? --http 127.0.0.1:0 takes a port that is free, --http off none", false, func(w *ways) *net.Listener { return &w.http }},
		{"pprof", f.pprof, "--pprof 127.0.0.1:0 takes a port that is free", true, func(w *ways) *net.Listener { return &w.pprof }},
	} {
		if p.address != off {
			all = append(all, p)
		}
	}
	return all, nil
}

// listen listens, before indexes are opened, which may take a while.
func (s *serving) listen() (w *ways, err error) {
	w = new(ways)
	for _, p := range s.ports {
		got, err := pandoserver.Listen(p.address, s.protection(p.local)...)
		if err != nil {
			w.close()
			if errors.Is(err, pandoserver.ErrExposed) {
				return nil, p.refused(err)
			}
			return nil, fmt.Errorf("cannot listen: %w; is another program there, %s", err, p.other)
		}
		*p.to(w) = got
	}
	return w, nil
}

// log returns where the server writes what happens.
func (f *serveFlags) log(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level.value)); err != nil {
		return nil, usagef("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	if f.format.value == "json" {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// serve serves until the command is interrupted.
func (s *serving) serve(cmd *cobra.Command, args []string, w *ways) error {
	for _, text := range s.looseFiles() {
		s.log.Warn(text)
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	ended, n := make(chan error, 3), 0
	run := func(serve func() error) {
		n++
		go func() {
			err := serve()
			stop() // one that cannot go on ends all
			ended <- err
		}()
	}
	wait := func() (err error) {
		for range n {
			err = errors.Join(err, <-ended)
		}
		return err
	}
	if w.http != nil { // it says that indexes are not open yet
		run(func() error { return s.web.Serve(ctx, w.http) })
	}
	if w.pprof != nil {
		run(func() error { return profile(ctx, w.pprof) })
	}
	err := s.open(ctx, args)
	var srv *pandoserver.Server
	if err == nil {
		srv, err = s.server()
	}
	if err != nil {
		stop()
		_ = wait()
		if cmd.Context().Err() != nil {
			return nil // it was told to end before it had begun
		}
		return err
	}
	if err := s.show(srv); err != nil {
		stop()
		return errors.Join(err, wait())
	}
	if err := s.tell(cmd, w); err != nil {
		stop()
		return errors.Join(err, wait())
	}
	if w.redis != nil {
		run(func() error { return srv.Serve(ctx, w.redis) })
	}
	return wait()
}

// server makes a server of the indexes that are open.
func (s *serving) server() (*pandoserver.Server, error) {
	f := s.flags
	opts := append(s.protection(false), pandoserver.Name(s.names[0]), pandoserver.Logger(s.log), pandoserver.MaxClients(f.maxClients),
		pandoserver.IdleTimeout(f.idle), pandoserver.WriteTimeout(f.write), pandoserver.Grace(f.grace), pandoserver.SlowerThan(f.slower))
	for i := 1; i < len(s.names); i++ {
		opts = append(opts, pandoserver.And(s.names[i], s.sources[i]))
	}
	srv, err := pandoserver.New(s.sources[0], opts...)
	if err != nil {
		return nil, usageError{err}
	}
	return srv, nil
}

// newWeb makes the server of HTTP, which has no indexes yet.
func (s *serving) newWeb() (*pandohttp.Server, error) {
	opts := []pandohttp.Option{pandohttp.Hosts(s.flags.hosts...), pandohttp.Logger(s.log), pandohttp.Grace(s.flags.grace), pandohttp.Ready(s.ready)}
	if s.users != nil {
		opts = append(opts, pandohttp.Restrict(s.users))
	}
	if s.certs != nil {
		opts = append(opts, pandohttp.Secure(s.certs))
	}
	web, err := pandohttp.New(nil, opts...)
	if err != nil {
		return nil, usageError{err}
	}
	return web, nil
}

// show gives the indexes to the server of HTTP, with a page for each.
func (s *serving) show(srv *pandoserver.Server) error {
	for i, name := range s.names {
		if s.views[i] == nil {
			continue
		}
		page := pandoview.Handler(s.views[i], pandoview.Name(name), pandoview.Hosts(s.flags.hosts...))
		if err := s.web.View(name, page); err != nil {
			return usageError{err}
		}
	}
	s.web.Use(srv)
	return nil
}

// ready returns why clients should go elsewhere.
func (s *serving) ready() error {
	for i, src := range s.sources {
		if l, ok := src.(pandoserver.Logged); ok {
			if err := l.Log().ReadOnly; err != nil {
				return fmt.Errorf("the store %s takes no changes any more: %w", s.names[i], err)
			}
		}
	}
	return nil
}

// tell says where the server listens, and what it serves.
func (s *serving) tell(cmd *cobra.Command, w *ways) error {
	scheme, who := "http", "this machine alone"
	if s.certs != nil {
		scheme, who = "https", "who has a password, by TLS"
		if s.users == nil {
			who = "this machine alone, by TLS"
		}
	}
	for i, what := range s.what {
		fmt.Fprintf(cmd.ErrOrStderr(), "%d %s  %s\n", i, s.names[i], what)
	}
	if w.redis != nil {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), w.redis.Addr()); err != nil {
			return err // nobody would know where to connect
		}
	}
	if w.http != nil {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s://%v/\n", scheme, w.http.Addr()); err != nil {
			return err
		}
	}
	if w.pprof != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "Profiles: go tool pprof http://%v/debug/pprof/profile\n", w.pprof.Addr())
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Serving %s until interrupted (Ctrl-C).\n", who)
	s.log.Debug("serving", "indexes", s.names)
	return nil
}

// profile answers go tool pprof.
func profile(ctx context.Context, l net.Listener) error {
	pages := http.NewServeMux()
	pages.HandleFunc("/debug/pprof/", pprof.Index)
	pages.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	pages.HandleFunc("/debug/pprof/profile", pprof.Profile)
	pages.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	pages.HandleFunc("/debug/pprof/trace", pprof.Trace)
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 32 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := origin.Refuse(r, nil, false); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		pages.ServeHTTP(w, r)
	})}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
