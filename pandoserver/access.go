package pandoserver

import "strings"

// This file says what a client may do: who it is, and which keys a command is about.

const (
	errNoCommand = "NOPERM this user has no permissions to run the '%s' command"
	errNoKeys    = "NOPERM this user has no permissions to access one of the keys used as arguments"
	errNoAuth    = "NOAUTH Authentication required."
	errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."
)

// known reports whether a client has said who it is, or need not.
func (s *session) known() bool { return s.user != nil && s.user.On() }

// forbids returns why a client may not do a command, or nothing.
func (s *session) forbids(cmd *command, args [][]byte) string {
	if cmd.flags&early != 0 {
		return ""
	}
	if s.user == nil {
		return errNoAuth
	}
	r := s.user.rules.Load()
	switch {
	case !r.on:
		return errNoAuth
	case len(r.commands) < len(fullNames) && !r.commands[cmd]:
		return strings.Replace(errNoCommand, "%s", fullNames[cmd], 1)
	case !r.free() && !s.hasKeys(r, cmd, args):
		return errNoKeys
	}
	return ""
}

// hasKeys reports whether all keys that a command is about are the user's. One that reads or changes
// entries, and does not say which keys these are, is about all keys.
func (s *session) hasKeys(r *rules, cmd *command, args [][]byte) bool {
	if cmd.flags&(reads|writes) == 0 {
		return true
	}
	db := s.db
	if cmd.flags&ordered != 0 {
		var ok bool
		if db, ok = s.srv.named(text(args[1])); !ok {
			return true // which is an error
		}
	}
	if _, numbers := db.src.(Numbers); numbers {
		return false // one number may be written in several ways, and its order is not that of texts
	}
	switch {
	case cmd.within != nil:
		return r.holds(cmd.within(args))
	case cmd.keys[0] == 0 || cmd.flags&ordered != 0:
		return false
	}
	all := true
	cmd.positions(args, func(key []byte) { all = all && r.has(text(key)) })
	return all
}

// Ranges that commands are about. Where arguments are wrong, which is an error later, they are of all keys.

// withinLex is that of two lexical ends.
func withinLex(lo, hi int) func(args [][]byte) Bounds {
	return func(args [][]byte) (b Bounds) {
		b.lex(args[lo], false)
		b.lex(args[hi], true)
		return b
	}
}

// withinZRange is that of ZRANGE, which has its ends the other way round with REV, and places without BYLEX.
func withinZRange(args [][]byte) Bounds {
	byLex, lo, hi := false, 2, 3
	for _, a := range args[4:] {
		byLex = byLex || is(a, "bylex")
		if is(a, "rev") {
			lo, hi = 3, 2
		}
	}
	if !byLex {
		return Bounds{}
	}
	return withinLex(lo, hi)(args)
}

// withinEnds is that of the two ends of a command of ours.
func withinEnds(args [][]byte) Bounds {
	b, _ := rangeOf(args[1], args[2])
	return b
}

// withinBelow is all up to a key.
func withinBelow(at int) func(args [][]byte) Bounds {
	return func(args [][]byte) Bounds { return Bounds{Hi: text(args[at]), To: With} }
}

// withinMatch is what all keys begin with that match a pattern: MATCH of SCAN.
func withinMatch(args [][]byte) Bounds {
	s := scanning{}
	for i := 2; i+1 < len(args); i += 2 {
		if is(args[i], "match") {
			s.pattern, s.matches = text(args[i+1]), string(args[i+1]) != "*"
		}
	}
	return Prefix(s.literal())
}
