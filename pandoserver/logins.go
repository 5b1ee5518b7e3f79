package pandoserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/pace"
)

// Errors of Login, to be told apart by errors.Is.
var (
	ErrPassword = errors.New("pandoserver: no such user, or another password")
	ErrPace     = errors.New("pandoserver: too many wrong passwords from there: wait a second for each")
	ErrBusy     = errors.New("pandoserver: too many passwords are being looked at: try again in a second")
)

// Wrong passwords of an address: some at once, and then one a second. Of version 6 an address is a network of 64 bits, and one
// of 48 bits, of which somebody may have all the others, has ten times as many.
const (
	guessesAtOnce = 10
	guessesEvery  = time.Second
	guessers      = 10_000
	ofSite        = 10
)

// mostLooks is how many different passwords wait to be looked at, which takes some 50 ms each.
const mostLooks = 64

// logins is the way in. A look at a password takes long on purpose, so nobody waits for one who need not: a
// password that was right is recognised at once, those who say the same at the same time wait for one look, and
// where very many others are looked at there is an error.
type logins struct {
	key          [sha256.Size]byte // of this process: passwords that were right are remembered under it
	hosts, sites *pace.Limiter

	mu    sync.Mutex
	looks map[guess]*look
}

// guess is a password that somebody has said, under the key of the process, for the rules that the user has.
type guess struct {
	user *User
	of   *rules
	sum  [sha256.Size]byte
}

// look is a guess that is being looked at.
type look struct {
	from map[pace.Origin]bool // those who say it, each of whom it counts for
	done chan struct{}
	err  error
}

// remembered is a password that was right for rules, under the key of the process.
type remembered struct {
	of  *rules
	sum [sha256.Size]byte
}

func (l *logins) init() {
	_, _ = rand.Read(l.key[:]) // which never fails
	l.hosts = pace.New(guessesAtOnce, guessesEvery, guessers)
	l.sites = pace.New(ofSite*guessesAtOnce, guessesEvery/ofSite, guessers)
	l.looks = map[guess]*look{}
}

// Login returns the user of a name, if the password is right. from is the address that asks: of wrong passwords
// from one there may be some at once, and then one a second.
func (u *Users) Login(from, name string, secret []byte) (*User, error) {
	user := u.find(name)
	if user == nil {
		user = u.nobody
	}
	mac := hmac.New(sha256.New, u.logins.key[:])
	mac.Write(secret)
	g := guess{user: user, of: user.rules.Load(), sum: [sha256.Size]byte(mac.Sum(nil))}
	if err := u.logins.try(g, pace.OriginOf(from), func() bool { return u.right(g.of, secret) }); err != nil {
		return nil, err
	}
	return user, nil
}

// right looks at a password.
func (u *Users) right(r *rules, secret []byte) bool {
	hashes := r.hashes
	if !r.on || len(hashes) == 0 {
		hashes = u.nobody.rules.Load().hashes
	}
	found := false
	for i := range hashes {
		found = hashes[i].Is(secret) || found
	}
	return found && r.on
}

// try returns nil if a guess is right, which slowly looks at where it must be.
func (l *logins) try(g guess, from pace.Origin, slowly func() bool) error {
	now, leads, err := l.begin(g, from)
	switch {
	case err != nil || now == nil:
		return err
	case !leads:
		<-now.done
		return now.err
	}
	now.err = ErrPassword
	defer func() { l.end(g, now) }()
	if slowly() {
		now.err = nil
	}
	return now.err
}

// begin returns the look at a guess, and whether the caller is to do it; or none where it is known to be right.
func (l *logins) begin(g guess, from pace.Origin) (now *look, leads bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now = l.looks[g]; now != nil {
		if !now.from[from] && !l.take(from) {
			return nil, false, ErrPace
		}
		now.from[from] = true
		return now, false, nil
	}
	if !l.take(from) {
		return nil, false, ErrPace
	}
	old := g.user.right.Load()
	switch {
	case g.of.on && g.of.nopass, g.of.on && old != nil && old.of == g.of && hmac.Equal(old.sum[:], g.sum[:]):
		l.give(from)
		return nil, false, nil
	case len(l.looks) >= mostLooks && !(mutant.On && mutant.Is("server: logins are bounded")):
		l.give(from) // nothing was learned
		return nil, false, ErrBusy
	}
	now = &look{from: map[pace.Origin]bool{from: true}, done: make(chan struct{})}
	l.looks[g] = now
	return now, true, nil
}

// end tells those who wait what has come out.
func (l *logins) end(g guess, now *look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.looks, g)
	if now.err == nil {
		g.user.right.Store(&remembered{g.of, g.sum})
		for from := range now.from {
			l.give(from)
		}
	}
	close(now.done)
}

func (l *logins) take(from pace.Origin) bool {
	now := time.Now()
	if !l.hosts.Take(from.Host, now) {
		return false
	}
	if from.Site != "" && !l.sites.Take(from.Site, now) {
		l.hosts.Give(from.Host)
		return false
	}
	return true
}

func (l *logins) give(from pace.Origin) {
	l.hosts.Give(from.Host)
	if from.Site != "" {
		l.sites.Give(from.Site)
	}
}
