package pandoserver

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/pace"
)

// blocked begins looks at n other passwords of a user, each from elsewhere, which do not end before the test does.
func blocked(t *testing.T, u *Users, user *User, n int) {
	t.Helper()
	var all sync.WaitGroup
	block, begun := make(chan struct{}), make(chan struct{})
	for i := range n {
		all.Go(func() {
			g := guess{user: user, of: user.rules.Load(), sum: [32]byte{1, byte(i >> 8), byte(i)}}
			_ = u.logins.try(g, pace.Origin{Host: fmt.Sprint("elsewhere", i)}, func() bool {
				begun <- struct{}{}
				<-block
				return false
			})
		})
	}
	for range n {
		<-begun
	}
	t.Cleanup(func() {
		close(block)
		all.Wait()
	})
}

// A password that was right is recognised while others are looked at, also when these are as many as there may be. A new one
// is refused then, and not counted.
func TestLoginsBesideLooks(t *testing.T) {
	u := people(t, "user alice on "+hashed("secret")+" "+hashed("another")+" +@all ~*")
	login := func(secret string) error {
		_, err := u.Login("192.0.2.1:5", "alice", []byte(secret))
		return err
	}
	if err := login("secret"); err != nil {
		t.Fatal(err)
	}
	blocked(t, u, u.find("alice"), mostLooks-1)
	if err := login("wrong"); !errors.Is(err, ErrPassword) {
		t.Errorf("%v", err)
	}
	if err := login("secret"); err != nil {
		t.Errorf("%v", err)
	}
	blocked(t, u, u.nobody, 1)
	for range 2 * guessesAtOnce {
		if err := login("another"); !errors.Is(err, ErrBusy) {
			t.Errorf("%v", err)
		}
	}
	if err := login("secret"); err != nil {
		t.Errorf("%v", err)
	}
}

// Many who say the same at the same time wait for one look, of one address as one guess; all are let in if it is right.
func TestLoginsOfTheSame(t *testing.T) {
	u := people(t, "user alice on "+hashed("secret")+" +@all ~*")
	alice := u.find("alice")
	for _, right := range []bool{true, false} {
		g := guess{user: alice, of: alice.rules.Load(), sum: [32]byte{2}}
		const n = 20 * guessesAtOnce
		var looks atomic.Int64
		var all sync.WaitGroup
		results, asked := make(chan error, n), make(chan struct{})
		begun := sync.OnceFunc(func() { close(asked) }) // a wrong one may be looked at again
		for i := range n {
			all.Go(func() {
				if i > 0 {
					<-asked
				}
				results <- u.logins.try(g, pace.Origin{Host: fmt.Sprint("host", i%2, right)}, func() bool {
					looks.Add(1)
					begun()
					for range 1000 { // until the others have come, mostly
						time.Sleep(time.Millisecond)
						u.logins.mu.Lock()
						both := len(u.logins.looks[g].from) > 1
						u.logins.mu.Unlock()
						if both {
							break
						}
					}
					return right
				})
			})
		}
		all.Wait()
		let := 0
		for range n {
			if err := <-results; err == nil {
				let++
			}
		}
		if right && (let != n || looks.Load() != 1) || !right && let > 0 {
			t.Errorf("%d of %d were let in after %d looks", let, n, looks.Load())
		}
		if !right {
			return
		}
		alice.right.Store(nil)
	}
}

// Of version 6, the networks that one site has are bounded together.
func TestLoginsOfASite(t *testing.T) {
	u := people(t, "user alice on "+hashed("secret")+" +@all ~*")
	tried := 0
	for i := range 3 * ofSite * guessesAtOnce {
		if _, err := u.Login(fmt.Sprintf("[2001:db8:1:%x::1]:5", i), "alice", []byte("wrong")); errors.Is(err, ErrPassword) {
			tried++
		}
	}
	if tried < ofSite*guessesAtOnce || tried > 2*ofSite*guessesAtOnce { // some more come with the time that it takes
		t.Errorf("%d passwords were looked at", tried)
	}
	if _, err := u.Login("[2001:db8:2::1]:5", "alice", []byte("secret")); err != nil {
		t.Errorf("another site: %v", err)
	}
}

// Wrong passwords fill neither the log nor SLOWLOG.
func TestWrongPasswordsAreToldOf(t *testing.T) {
	var log lines
	srv, address := start(t, memory(t), Restrict(people(t, "user alice on "+hashed("secret")+" +@all ~*")), Logger(slog.New(slog.NewTextHandler(&log, nil))), SlowerThan(0))
	c := dial(t, "tcp", address)
	const n = 1000
	c.send(strings.Repeat(encode("AUTH", "alice", "wrong")+encode("HELLO", "3", "AUTH", "alice", "wrong"), n/2))
	for range n {
		if got := c.reply(); got[0] != '-' {
			t.Fatalf("%q", got)
		}
	}
	if told := strings.Count(log.String(), "a client was not let in"); told == 0 || told > n/4 {
		t.Errorf("%d lines", told)
	}
	if denied := srv.stats.denied.Load(); denied != n {
		t.Errorf("%d are counted", denied)
	}
	c = dial(t, "tcp", address)
	const pace = "-ERR too many wrong passwords from this address: wait a second for each\r\n"
	for got := ""; got != pace; { // a guess is free each second: those before take it
		c.send(strings.Repeat(encode("AUTH", "alice", "wrong"), 20) + encode("AUTH", "alice", "secret"))
		for range 21 {
			got = c.reply()
		}
	}
	if all := srv.slow.newest(slowEntries); len(all) > 0 {
		t.Errorf("SLOWLOG has %v", all)
	}
}
