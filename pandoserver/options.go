package pandoserver

import (
	"fmt"
	"log/slog"
	"time"
)

// Option changes what a server serves, and its limits.
type Option func(*config)

type config struct {
	name         string
	more         []*served
	clients      int
	idle         time.Duration
	partial      time.Duration
	write        time.Duration
	grace        time.Duration
	reply        int
	transactions int
	steps        int
	log          *slog.Logger
	users        *Users
	certs        *Certificates
	stranger     time.Duration
	strangers    int
	slow         time.Duration
}

// Name sets the name of the index, by which SELECT and the commands of sorted sets find it.
// The default is "index".
func Name(name string) Option { return func(c *config) { c.name = name } }

// And serves another index beside the first, under a name. SELECT takes the name, or its
// number: the first index is 0.
func And(name string, src Source) Option {
	return func(c *config) { c.more = append(c.more, &served{name: name, src: src}) }
}

// MaxClients sets how many connections there may be. The default is 10,000.
func MaxClients(n int) Option { return func(c *config) { c.clients = n } }

// IdleTimeout makes the server close connections on which nothing has come for d. By
// default it closes none.
func IdleTimeout(d time.Duration) Option { return func(c *config) { c.idle = d } }

// WriteTimeout makes the server close connections that have neither taken a reply for d nor
// sent anything. The default is 10 seconds.
func WriteTimeout(d time.Duration) Option { return func(c *config) { c.write = d } }

// ReplyLimit sets how many bytes the replies to one command, or one transaction, may have: a
// connection that asks for more is closed, and of a transaction that does nothing is done. As many bytes may wait for a client to take them:
// then nothing more is read from it. The default is 512 MiB.
func ReplyLimit(bytes int) Option { return func(c *config) { c.reply = bytes } }

// Grace sets how long Serve waits for commands under way when it is told to end. The
// default is 5 seconds.
func Grace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// Restrict sets who may use the server. By default everybody may who can reach it.
func Restrict(u *Users) Option { return func(c *config) { c.users = u } }

// Secure makes the server speak TLS.
func Secure(c *Certificates) Option { return func(cfg *config) { cfg.certs = c } }

// StrangerTimeout sets how long a client may take to say who it is, where it has to. The default is 30 seconds.
func StrangerTimeout(d time.Duration) Option { return func(c *config) { c.stranger = d } }

// MaxStrangers sets how many connections there may be whose clients have not said who they are, where they have
// to. Where there are more, one of them is closed. The default is 1,000.
func MaxStrangers(n int) Option { return func(c *config) { c.strangers = n } }

// SlowerThan sets how long a command takes that SLOWLOG remembers. The default is 10 milliseconds; below zero it
// remembers none.
func SlowerThan(d time.Duration) Option { return func(c *config) { c.slow = d } }

// Logger sets where the server writes what happens. By default that is nowhere.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

func configure(opts []Option) (config, error) {
	c := config{
		name: "index", clients: 10_000, partial: time.Minute, write: 10 * time.Second, grace: 5 * time.Second,
		reply: 512 << 20, transactions: 64 << 20, steps: mostSteps, log: slog.New(slog.DiscardHandler), users: NewUsers(), stranger: 30 * time.Second, strangers: 1_000,
		slow: usualSlow,
	}
	for _, o := range opts {
		o(&c)
	}
	switch {
	case c.clients < 1:
		return c, fmt.Errorf("pandoserver: MaxClients(%d); take 1 or more", c.clients)
	case c.idle < 0 || c.write <= 0 || c.grace < 0:
		return c, fmt.Errorf("pandoserver: time limits cannot be below zero, nor that of writing zero")
	case c.reply < 1<<10:
		return c, fmt.Errorf("pandoserver: ReplyLimit(%d); take 1024 or more", c.reply)
	case c.users == nil:
		return c, fmt.Errorf("pandoserver: Restrict(nil); leave it out instead")
	case c.stranger <= 0 || c.strangers < 1:
		return c, fmt.Errorf("pandoserver: StrangerTimeout(%v), MaxStrangers(%d); both are above zero", c.stranger, c.strangers)
	case c.log == nil:
		return c, fmt.Errorf("pandoserver: Logger(nil); leave it out instead")
	}
	return c, nil
}
