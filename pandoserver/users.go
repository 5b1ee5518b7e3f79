package pandoserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/password"
)

// ErrDenied says that a user may not do something.
var ErrDenied = errors.New("pandoserver: the user may not do that")

// Users are those who may use a server. They are written as redis writes them:
//
//	user alice on >secret +@all ~*
//	user reader on #$scrypt$… +@read +@connection ~public:*
//
// Its methods may be called from any goroutine at any time.
type Users struct {
	mu     sync.Mutex // held by whoever changes them
	all    atomic.Pointer[map[string]*User]
	logins logins
	path   string // of the file that they are read from, or ""
	strict bool   // everybody needs a password
	nobody *User  // is asked for the password of users that are not there, which takes as long
}

// User is somebody who may use a server. What he may do changes under him.
type User struct {
	name  string
	rules atomic.Pointer[rules]
	right atomic.Pointer[remembered] // a password that was
}

// usualUser is the name of the user that clients are until they say another.
const usualUser = "default"

// noUser is what clients are called that are nobody.
const noUser = "(none)"

// NewUsers returns users of whom there is one, called default, who may do everything without a
// password.
func NewUsers() *Users {
	u := &Users{nobody: &User{}}
	u.logins.init()
	u.nobody.rules.Store(&rules{hashes: []password.Hash{password.Impossible}})
	free := newRules()
	for _, r := range []string{"on", "nopass", "+@all", "~*", "&*"} {
		if err := free.add(r); err != nil {
			panic(err)
		}
	}
	first := &User{name: usualUser}
	first.rules.Store(free)
	u.all.Store(&map[string]*User{usualUser: first})
	return u
}

// ReadUsers reads users, one a line. Empty lines, and those that begin with #, are none. The user
// default is off unless it is one of them.
func ReadUsers(r io.Reader) (*Users, error) {
	u := NewUsers()
	if err := u.set(usualUser, []string{"reset"}); err != nil {
		return nil, err
	}
	lines, n, named := bufio.NewScanner(r), 0, map[string]bool{}
	for lines.Scan() {
		n++
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case len(words) < 2 || words[0] != "user":
			return nil, fmt.Errorf("pandoserver: line %d of the users: it begins with user and a name, as in user alice on >secret +@all ~*", n)
		case named[words[1]]:
			return nil, fmt.Errorf("pandoserver: line %d of the users: %s is there twice", n, words[1])
		}
		named[words[1]] = true
		if err := u.set(words[1], words[2:]); err != nil {
			return nil, fmt.Errorf("pandoserver: line %d of the users: %w", n, err)
		}
	}
	return u, lines.Err()
}

// OpenUsers reads users from a file, as ReadUsers does. ACL LOAD and Reload read it again.
func OpenUsers(path string) (*Users, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pandoserver: users: %w", err)
	}
	defer f.Close()
	u, err := ReadUsers(f)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	u.path = path
	return u, nil
}

var errNoUsersFile = errors.New("there is no file of users: pando serve --users FILE has one, and ACL SETUSER changes users until the server ends")

// Reload reads the file of users again. If something is wrong with it, users stay as they are.
func (u *Users) Reload() error {
	if u.path == "" {
		return errNoUsersFile
	}
	others, err := OpenUsers(u.path)
	if err != nil {
		return err
	}
	return u.become(others)
}

// become makes users those that others are. Who is no longer there may do nothing any more.
func (u *Users) become(others *Users) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.strict {
		if err := others.closed(); err != nil {
			return fmt.Errorf("other machines can reach this server, and %w", err)
		}
	}
	all := map[string]*User{}
	for name, other := range *others.all.Load() {
		mine := u.find(name)
		if mine == nil {
			mine = &User{name: name}
		}
		mine.rules.Store(other.rules.Load())
		all[name] = mine
	}
	for name, old := range *u.all.Load() {
		if all[name] == nil {
			old.rules.Store(newRules())
		}
	}
	u.all.Store(&all)
	return nil
}

func (u *Users) find(name string) *User { return (*u.all.Load())[name] }

// mostUsers bounds users, and how long the name of one may be.
const (
	mostUsers     = 10_000
	longestUser   = 256
	mostOfAUser   = 1_000 // rules
	mostPasswords = 16    // of a user: a wrong one is compared with all of them, each some 50 ms
	longestOfKey  = 64 << 10
)

// set changes a user by rules, all of them or none. One that is not there is made: off, and not allowed
// to do anything.
func (u *Users) set(name string, changes []string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	user := u.find(name)
	r := newRules()
	switch {
	case user != nil:
		r = user.rules.Load().clone()
	case !goodName(name) || name == "" || len(name) > longestUser:
		return fmt.Errorf("usernames can't contain spaces or null characters, and have %d bytes at most", longestUser)
	case len(*u.all.Load()) >= mostUsers:
		return fmt.Errorf("there are %d users, the most that there may be", mostUsers)
	}
	for _, c := range changes {
		if err := r.add(c); err != nil {
			return err
		}
	}
	if u.strict && r.on && r.nopass {
		return errors.New("other machines can reach this server: a user who is on needs a password")
	}
	if user != nil {
		user.rules.Store(r)
		return nil
	}
	all := maps.Clone(*u.all.Load())
	user = &User{name: name}
	user.rules.Store(r)
	all[name] = user
	u.all.Store(&all)
	return nil
}

// remove removes a user, who may do nothing from now on. It reports whether there was one.
func (u *Users) remove(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	user := u.find(name)
	if user == nil {
		return false
	}
	all := maps.Clone(*u.all.Load())
	delete(all, name)
	u.all.Store(&all)
	user.rules.Store(newRules())
	return true
}

// names returns the names of all users in order.
func (u *Users) names() []string { return slices.Sorted(maps.Keys(*u.all.Load())) }

// close sees to it that nobody is ever let in without a password. It returns an error if somebody is, or if
// nobody is let in at all.
func (u *Users) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.closed()
	u.strict = u.strict || err == nil
	return err
}

func (u *Users) closed() error {
	some := false
	for _, name := range u.names() {
		r := u.find(name).rules.Load()
		switch {
		case !r.on:
		case r.nopass:
			return fmt.Errorf("the user %s needs no password", name)
		default:
			some = some || len(r.hashes) > 0
		}
	}
	if !some {
		return errors.New("there is no user with a password")
	}
	return nil
}

// open reports whether the user default needs no password, though it may be off.
func (u *Users) open() bool {
	user := u.find(usualUser)
	return user != nil && user.rules.Load().nopass
}

// First returns the user that a client is who has not said yet who it is, or nil.
func (u *Users) First() *User {
	user := u.find(usualUser)
	if user == nil {
		return nil
	}
	if r := user.rules.Load(); !r.on || !r.nopass {
		return nil
	}
	return user
}

// named returns a user's name, or that it is nobody's.
func (u *User) named() string {
	if u == nil {
		return noUser
	}
	return u.name
}

// Name returns a user's name.
func (u *User) Name() string { return u.name }

// On reports whether a user may still do something: he may have been removed.
func (u *User) On() bool { return u.rules.Load().on }

// Allow returns nil if a user may do a command of redis' or ours, get say, on keys of a source, and
// an error that wraps ErrDenied otherwise.
func (u *User) Allow(command string, src Source, keys ...string) error {
	return u.allow(command, src, func(r *rules) bool {
		for _, k := range keys {
			if !r.has(k) {
				return false
			}
		}
		return true
	})
}

// AllowRange is Allow for a command on a range of keys, pando.range say: all keys that there could be within bounds
// have to be the user's.
func (u *User) AllowRange(command string, src Source, b Bounds) error {
	return u.allow(command, src, func(r *rules) bool { return r.holds(b) })
}

func (u *User) allow(name string, src Source, keys func(r *rules) bool) error {
	r := u.rules.Load()
	cmd := namedCommand(name)
	_, numbers := src.(Numbers)
	switch {
	case cmd == nil:
		return fmt.Errorf("%w: there is no command %s", ErrDenied, name)
	case !r.on || !r.commands[cmd]:
		return fmt.Errorf("%w: the user %s has no command %s", ErrDenied, u.name, name)
	case r.free():
	case numbers || !keys(r):
		return fmt.Errorf("%w: the user %s does not have all of these keys", ErrDenied, u.name)
	}
	return nil
}
