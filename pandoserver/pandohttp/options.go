package pandohttp

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/pandoserver"
)

// Option changes what a server serves, and its limits.
type Option func(*config)

type config struct {
	hosts []string
	users *pandoserver.Users
	certs *pandoserver.Certificates
	ready func() error
	log   *slog.Logger

	requests, connections int
	body, buffers         int64
	stall, longest, grace time.Duration
}

// Hosts allows requests that name other hosts than those of the loopback address: the names by which other machines
// reach the server, or its addresses, without a port.
func Hosts(names ...string) Option {
	return func(c *config) { c.hosts = append(c.hosts, origin.Hosts(names)...) }
}

// Restrict sets who may use the server: users as pandoserver has them, who send their name and password with each request
// (basic authentication). What a route needs is the right to the command that does the same. By default these are the
// users of the indexes' server.
func Restrict(u *pandoserver.Users) Option { return func(c *config) { c.users = u } }

// Secure makes Serve speak TLS alone.
func Secure(c *pandoserver.Certificates) Option { return func(cfg *config) { cfg.certs = c } }

// Ready sets what /readyz asks. It returns why the server should get no requests, or nil. The page is open to everybody, and
// says why to those alone who may ask for /metrics.
func Ready(f func() error) Option { return func(c *config) { c.ready = f } }

// MaxRequests sets how many requests may be under way. The default is 64.
func MaxRequests(n int) Option { return func(c *config) { c.requests = n } }

// MaxConnections sets how many connections Serve takes at once. The default is 1024. Where there are more, the host that
// has most loses one for each that comes from others.
func MaxConnections(n int) Option { return func(c *config) { c.connections = n } }

// BodyLimit sets how many bytes the body of a request may have, when it is unpacked, too. The default
// is 64 MiB.
func BodyLimit(bytes int64) Option { return func(c *config) { c.body = bytes } }

// BufferLimit sets how many bytes of bodies, and of long values on their way, may be in memory for all
// requests together. The default is 512 MiB.
func BufferLimit(bytes int64) Option { return func(c *config) { c.buffers = bytes } }

// StallTimeout sets for how long a client may leave 64 KiB of an answer untaken, or take to send that much of a
// body. Then it is dropped. The default is 30 seconds.
func StallTimeout(d time.Duration) Option { return func(c *config) { c.stall = d } }

// MaxDuration sets for how long a request may be under way altogether. The default is an hour.
func MaxDuration(d time.Duration) Option { return func(c *config) { c.longest = d } }

// Grace sets how long Serve waits for requests under way when it is told to end. The default is 5
// seconds.
func Grace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// Logger sets where the server writes what happens. By default that is nowhere.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

func configure(opts []Option) (config, error) {
	c := config{
		log: slog.New(slog.DiscardHandler), requests: 64, connections: 1024, body: 64 << 20, buffers: 512 << 20,
		stall: 30 * time.Second, longest: time.Hour, grace: 5 * time.Second,
	}
	for _, o := range opts {
		o(&c)
	}
	switch {
	case c.requests < 1 || c.connections < 1:
		return c, fmt.Errorf("pandohttp: MaxRequests(%d), MaxConnections(%d); take 1 or more", c.requests, c.connections)
	case c.body < 1<<10 || c.buffers < 2*c.body:
		return c, fmt.Errorf("pandohttp: BodyLimit(%d), BufferLimit(%d); take 1024 or more for a body, and twice as much for all", c.body, c.buffers)
	case c.stall <= 0 || c.longest <= 0 || c.grace < 0:
		return c, fmt.Errorf("pandohttp: StallTimeout(%v), MaxDuration(%v), Grace(%v); take times above zero, or no Grace", c.stall, c.longest, c.grace)
	case c.log == nil:
		return c, errors.New("pandohttp: Logger(nil); leave it out instead")
	}
	if err := origin.Check(c.hosts); err != nil {
		return c, fmt.Errorf("pandohttp: Hosts: %w", err)
	}
	return c, nil
}

// protection returns the options of pandoserver that tell who may reach a server.
func (c *config) protection() (opts []pandoserver.Option) {
	if c.users != nil {
		opts = append(opts, pandoserver.Restrict(c.users))
	}
	if c.certs != nil {
		opts = append(opts, pandoserver.Secure(c.certs))
	}
	return opts
}
