package pandohttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/pace"
	"github.com/pando-index/pando/pandoserver"
)

// Server serves indexes by HTTP. Make one with New.
type Server struct {
	cfg     config
	heard   *slog.Logger // where what clients can cause is written, of which there may be much
	srv     atomic.Pointer[pandoserver.Server]
	indexes atomic.Pointer[[]pandoserver.Served]
	views   atomic.Pointer[[]view]
	tallies []tally       // of allRoutes
	others  tally         // of pages, and of what is not there
	slots   chan struct{} // requests under way
	held    atomic.Int64  // bytes of buffers
}

// Bounds on what a client sends before it is known what it wants.
const (
	mostHeader = 32 << 10
	mostURL    = 16 << 10
)

// New makes a server of the indexes of srv. While these are not open yet, srv may be nil: the server says that it is not
// ready, until Use.
func New(srv *pandoserver.Server, opts ...Option) (*Server, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, heard: slog.New(pace.Quiet(cfg.log.Handler(), 10, time.Second)), slots: make(chan struct{}, cfg.requests), tallies: make([]tally, len(allRoutes))}
	if srv != nil {
		s.Use(srv)
	}
	return s, nil
}

// Use makes the indexes of srv those that are served. It may be called while the server serves.
func (s *Server) Use(srv *pandoserver.Server) {
	all := srv.Indexes()
	s.srv.Store(srv)
	s.indexes.Store(&all)
}

// view is a page that shows an index.
type view struct {
	name string
	page http.Handler
}

// View shows an index at /view/NAME/, by a handler of package pandoview, which must allow the same hosts. Users
// need the right to all its keys, so it answers once Use has set who they are. It may be called while the server serves.
func (s *Server) View(name string, page http.Handler) error {
	if page == nil || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("pandohttp: View(%q) has no page, or a name that no address can have", name)
	}
	for {
		old := s.views.Load()
		all := []view{{name, page}}
		if old != nil {
			all = append(slices.Clone(*old), all...)
		}
		if s.views.CompareAndSwap(old, &all) {
			return nil
		}
	}
}

// Serve answers connections until ctx is done. Then it takes no more of them, finishes the requests under way, and
// returns nil. It ends those that have not finished in the time that Grace sets, and the listener in any case.
//
// It returns pandoserver.ErrExposed for a listener that other machines can reach, unless Secure and Restrict are set.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer l.Close()
	if err := pandoserver.Admits(l.Addr(), s.cfg.protection()...); err != nil {
		return err
	}
	under, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: s.cfg.stall, WriteTimeout: s.cfg.stall, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: mostHeader, BaseContext: func(net.Listener) context.Context { return under },
		ErrorLog: log.New(told{s.heard}, "", 0), Protocols: new(http.Protocols),
	}
	srv.Protocols.SetHTTP1(true) // a connection is a request at most, so that limits count both
	bounded := newFew(l, s.cfg.connections)
	l, srv.ConnState = bounded, bounded.see
	if s.cfg.certs != nil {
		l = tls.NewListener(l, s.cfg.certs.Config("http/1.1"))
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, done := context.WithTimeout(context.Background(), s.cfg.grace)
		defer done()
		err := srv.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			cancel()
			err = srv.Close()
		}
		ended <- err
	})
	err := srv.Serve(l)
	if stop() { // nobody has told it to end
		return fmt.Errorf("pandohttp: %w", err)
	}
	return <-ended
}

// told writes what net/http says, which is about single connections, as one message.
type told struct{ to *slog.Logger }

func (t told) Write(text []byte) (int, error) {
	t.to.Info("a connection has failed", "error", strings.TrimSpace(string(text)))
	return len(text), nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a mapped file may be cut short
	out := &watched{ResponseWriter: w}
	rt, methods := find(r.URL.Path, r.Method)
	began := time.Now()
	defer func() { s.did(rt, out, r, began) }()
	defer func() {
		v := recover()
		switch {
		case v == nil:
		case v == http.ErrAbortHandler:
			out.cut = true
			panic(v)
		default:
			p := panicked(v)
			s.cfg.log.Error("a request has panicked", "url", origin.Clip(r.URL.Path), "panic", v, "stack", string(debug.Stack()))
			if out.begun {
				out.cut = true
				panic(http.ErrAbortHandler)
			}
			refuse(out, p)
		}
	}()
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := s.serve(out, r, rt, methods); err != nil {
		if out.begun {
			s.heard.Info("an answer was cut", "url", origin.Clip(r.URL.Path), "address", r.RemoteAddr, "error", err)
			panic(http.ErrAbortHandler) // so that the client sees that there should be more
		}
		p := problemOf(err)
		if p.status == http.StatusInternalServerError {
			s.cfg.log.Error("a request has failed", "url", origin.Clip(r.URL.Path), "error", err)
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.stall)) // a body that did not come has used up the time
		if r.ContentLength != 0 {
			h.Set("Connection", "close") // the rest of the body is of no use
		}
		refuse(out, p)
	}
}

// watched remembers whether an answer has begun, and what became of it.
type watched struct {
	http.ResponseWriter
	begun, cut bool
	status     int
	sent       int64
}

func (w *watched) begin(status int) {
	if !w.begun {
		w.begun, w.status = true, status
	}
}

func (w *watched) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ReadFrom keeps pages that copy files working.
func (w *watched) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// serve answers a request, or returns an error if it has written nothing, or not all.
func (s *Server) serve(w *watched, r *http.Request, rt *route, methods []string) error {
	viewing := strings.HasPrefix(r.URL.Path, "/view/")
	if rt != nil && rt.open { // it tells nothing, and is asked by any name
		return s.answerRoute(w, r, rt, nil)
	}
	if why := origin.Refuse(r, s.cfg.hosts, viewing); why != "" {
		return wrong(http.StatusForbidden, "%s; ask by a name of this machine, such as localhost, or have the server allow others (pandohttp.Hosts, --http-host of pando serve)", why)
	}
	if n := len(r.URL.Path) + len(r.URL.RawQuery); n > mostURL {
		return wrong(http.StatusRequestURITooLong, "the address has %d bytes, and %d are the most; POST /v1/get takes keys as a body", n, mostURL)
	}
	user, err := s.userOf(w, r)
	if err != nil {
		return err
	}
	switch {
	case viewing:
		return s.view(w, r, user)
	case rt != nil:
		return s.answerRoute(w, r, rt, user)
	case methods != nil:
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return wrong(http.StatusMethodNotAllowed, "%s is not answered with %s; take %s", r.URL.Path, origin.Clip(r.Method), strings.Join(methods, ", "))
	}
	return wrong(http.StatusNotFound, "there is nothing at %q; /openapi.json says what there is", origin.Clip(r.URL.Path))
}

// users returns who may use the server: those of the indexes' server where Restrict has set no others, so that a
// password that is asked for on one way is asked for on the other. It returns nil while there are no indexes.
func (s *Server) users() *pandoserver.Users {
	if s.cfg.users == nil {
		if srv := s.srv.Load(); srv != nil {
			return srv.Users()
		}
	}
	return s.cfg.users
}

// userOf returns who makes a request, nil while there are no users: then there are no indexes either.
func (s *Server) userOf(w http.ResponseWriter, r *http.Request) (*pandoserver.User, error) {
	users := s.users()
	if users == nil {
		return nil, nil
	}
	name, secret, said := r.BasicAuth()
	if !said {
		if first := users.First(); first != nil {
			return first, nil
		}
	} else {
		user, err := users.Login(r.RemoteAddr, name, []byte(secret))
		switch {
		case err == nil:
			return user, nil
		case errors.Is(err, pandoserver.ErrPace):
			return nil, wrong(http.StatusTooManyRequests, "there were too many wrong passwords from there; wait a second for each")
		case errors.Is(err, pandoserver.ErrBusy):
			return nil, wrong(http.StatusServiceUnavailable, "too many passwords are being looked at; try again in a second")
		}
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="pando", charset="UTF-8"`)
	return nil, wrong(http.StatusUnauthorized, "no such user, or another password; send both with each request, as curl -u USER does")
}

var errNotReady = wrong(http.StatusServiceUnavailable, "the indexes are not open yet; ask again in a while")

// notReady returns an error while there are no indexes.
func (s *Server) notReady() error {
	if s.indexes.Load() == nil {
		return errNotReady
	}
	return nil
}

// view answers with a page that shows an index.
func (s *Server) view(w http.ResponseWriter, r *http.Request, user *pandoserver.User) error {
	if user == nil { // nobody has been asked for, so there were no indexes: there may be by now
		return errNotReady
	}
	if err := s.notReady(); err != nil {
		return err
	}
	rest := strings.TrimPrefix(r.URL.Path, "/view/")
	name, page, below := strings.Cut(rest, "/")
	var views []view
	if all := s.views.Load(); all != nil {
		views = *all
	}
	for _, v := range views {
		switch {
		case name == "" && !below && s.mayView(user, v.name) == nil, // the first that the user may see
			v.name == name && !below: // or one without the slash that its page counts on
			http.Redirect(w, r, "/view/"+url.PathEscape(v.name)+"/", http.StatusTemporaryRedirect)
			return nil
		case v.name != name:
			continue
		}
		if err := s.mayView(user, name); err != nil {
			return err
		}
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+page, ""
		v.page.ServeHTTP(w, inner)
		return nil
	}
	return wrong(http.StatusNotFound, "there is no page of %q; /view/ shows the first index that can be shown", origin.Clip(name))
}

// mayView returns an error if a user may not see all of an index.
func (s *Server) mayView(user *pandoserver.User, name string) error {
	for _, x := range *s.indexes.Load() {
		if x.Name() == name {
			return denied(user.AllowRange("pando.range", x.Source(), pandoserver.Bounds{}))
		}
	}
	return wrong(http.StatusNotFound, "no index is called %q; /v1/indexes lists them", origin.Clip(name))
}

// denied returns the problem of a user who may not do something.
func denied(err error) error {
	if err == nil {
		return nil
	}
	return &problem{http.StatusForbidden, err.Error(), "ask whoever keeps the users"}
}

// take counts bytes that are held in memory, until give. own is what the request holds already.
func (s *Server) take(n, own int64) error {
	if own+n > s.cfg.buffers/2 {
		return wrong(http.StatusRequestEntityTooLarge, "the request would hold more than %d bytes in memory; send it in parts", s.cfg.buffers/2)
	}
	if s.held.Add(n) > s.cfg.buffers {
		s.held.Add(-n)
		return wrong(http.StatusServiceUnavailable, "other requests fill the memory for buffers; try again in a second")
	}
	return nil
}

func (s *Server) give(n int64) { s.held.Add(-n) }
