package pandoserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/password"
)

// rules are what a user may do. Once they are a user's, they do not change.
type rules struct {
	on, nopass bool
	hashes     []password.Hash
	patterns   []string // of keys, as they were said
	spans      []Bounds // the same as ranges: sorted and apart, each without its upper end
	said       []string // rules about commands, in their order
	channels   bool     // is said to have all channels, of which there are none
	commands   map[*command]bool
}

// newRules returns those of a user that was just made.
func newRules() *rules { return &rules{said: []string{"-@all"}, commands: map[*command]bool{}} }

func (r *rules) clone() *rules {
	c := *r
	c.hashes, c.patterns, c.spans, c.said = slices.Clone(r.hashes), slices.Clone(r.patterns), slices.Clone(r.spans), slices.Clone(r.said)
	c.commands = maps.Clone(r.commands)
	return &c
}

// free reports whether all keys are the user's.
func (r *rules) free() bool {
	return len(r.spans) == 1 && r.spans[0].Lo == "" && r.spans[0].To == Open
}

// saying is an error in redis' words, which begin with a capital letter.
type saying string

func (s saying) Error() string { return string(s) }

const (
	errRule     = saying("Syntax error")
	errRuleName = saying("Unknown command or category name in ACL")
	errRuleHash = saying("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters, or be one that begins with $scrypt$")
	errRuleGone = saying("The password you are trying to remove from the user does not exist")
	errRuleKeys = saying("Keys are given by what they begin with, as in ~prefix*, or as one key")
	errRuleMany = saying("There are too many rules")
)

// add adds a rule. Its error names the rule, in redis' words.
func (r *rules) add(rule string) error {
	if err := r.addOne(rule); err != nil {
		if strings.HasPrefix(rule, ">") || strings.HasPrefix(rule, "<") {
			rule = rule[:1] + "…"
		}
		return saying(fmt.Sprintf("Error in ACL SETUSER modifier '%s': %s", rule, err))
	}
	if len(r.said)+len(r.patterns)+len(r.hashes) > mostOfAUser || len(r.hashes) > mostPasswords {
		return saying(fmt.Sprintf("Error in ACL SETUSER modifier '%s': %s", rule, errRuleMany))
	}
	return nil
}

func (r *rules) addOne(rule string) error {
	switch strings.ToLower(rule) {
	case "on":
		r.on = true
		return nil
	case "off":
		r.on = false
		return nil
	case "nopass":
		r.nopass, r.hashes = true, nil
		return nil
	case "resetpass":
		r.nopass, r.hashes = false, nil
		return nil
	case "allkeys":
		return r.addOne("~*")
	case "resetkeys":
		r.patterns, r.spans = nil, nil
		return nil
	case "allchannels", "&*":
		r.channels = true
		return nil
	case "resetchannels":
		r.channels = false
		return nil
	case "allcommands":
		return r.addOne("+@all")
	case "nocommands":
		return r.addOne("-@all")
	case "sanitize-payload", "skip-sanitize-payload", "clearselectors": // there are none of these
		return nil
	case "reset":
		*r = *newRules()
		return nil
	}
	if rule == "" {
		return errRule
	}
	switch rest := rule[1:]; rule[0] {
	case '>':
		r.nopass = false
		if !slices.ContainsFunc(r.hashes, func(h password.Hash) bool { return h.Is([]byte(rest)) }) {
			r.hashes = append(r.hashes, password.New([]byte(rest)))
		}
	case '<':
		return r.drop(func(h *password.Hash) bool { return h.Is([]byte(rest)) })
	case '#':
		if slices.ContainsFunc(r.hashes, func(h password.Hash) bool { return h.IsSHA256(rest) }) {
			r.nopass = false
			return nil
		}
		h, err := hashOf(rest)
		if err != nil {
			return err
		}
		r.nopass = false
		if !slices.Contains(r.hashes, h) {
			r.hashes = append(r.hashes, h)
		}
	case '!':
		return r.drop(func(h *password.Hash) bool { return h.String() == rest })
	case '~':
		return r.addKeys(rest)
	case '+', '-':
		return r.addCommands(rule)
	default:
		return errRule
	}
	return nil
}

// hashOf returns a hash of ours, or one of a hash of redis'.
func hashOf(s string) (password.Hash, error) {
	if h, ok := password.FromSHA256(s); ok {
		return h, nil
	}
	h, err := password.Parse(s)
	if err != nil {
		return h, errRuleHash
	}
	return h, nil
}

// drop forgets the passwords for which gone returns true.
func (r *rules) drop(gone func(*password.Hash) bool) error {
	n := len(r.hashes)
	if r.hashes = slices.DeleteFunc(r.hashes, func(h password.Hash) bool { return gone(&h) }); len(r.hashes) == n {
		return errRuleGone
	}
	return nil
}

// addKeys adds the keys of a pattern: a prefix and a star, or one key. A backslash makes the next byte mean itself.
func (r *rules) addKeys(pattern string) error {
	var key []byte
	prefix := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*' && i == len(pattern)-1:
			prefix = true
		case c == '*' || c == '?' || c == '[':
			return errRuleKeys
		case c == '\\' && i+1 < len(pattern):
			i++
			key = append(key, pattern[i])
		default:
			key = append(key, c)
		}
	}
	if len(key) > longestOfKey {
		return errRuleKeys
	}
	b := Prefix(string(key))
	if !prefix {
		b = Bounds{Lo: string(key), From: With, Hi: string(key) + "\x00", To: Without}
	}
	if slices.Contains(r.patterns, pattern) {
		return nil
	}
	r.patterns = append(r.patterns, pattern)
	r.spans = merged(append(r.spans, b))
	return nil
}

// merged returns ranges, each with its lower end and without its upper one, sorted and apart.
func merged(all []Bounds) (out []Bounds) {
	slices.SortFunc(all, func(a, b Bounds) int { return cmp.Compare(a.Lo, b.Lo) })
	for _, b := range all {
		if n := len(out); n > 0 && (out[n-1].To == Open || b.Lo <= out[n-1].Hi) {
			if last := &out[n-1]; last.To != Open && (b.To == Open || b.Hi > last.Hi) {
				last.Hi, last.To = b.Hi, b.To
			}
			continue
		}
		out = append(out, b)
	}
	return out
}

// span returns the range of the user's that begins last up to a key, or nil.
func (r *rules) span(key string) *Bounds {
	n, found := slices.BinarySearchFunc(r.spans, key, func(b Bounds, key string) int { return cmp.Compare(b.Lo, key) })
	if found {
		return &r.spans[n]
	}
	if n == 0 {
		return nil
	}
	return &r.spans[n-1]
}

// has reports whether a key is the user's.
func (r *rules) has(key string) bool {
	s := r.span(key)
	return s != nil && s.contains(key)
}

// holds reports whether all keys that there could be within bounds are the user's.
func (r *rules) holds(b Bounds) bool {
	lo := b.Lo
	if b.From == Open {
		lo = ""
	}
	if mutant.On && mutant.Is("server: both ends of a range") {
		return r.has(lo)
	}
	s := r.span(lo)
	switch {
	case s == nil || !s.contains(lo):
		return false
	case s.To == Open:
		return true
	case b.To == Without:
		return b.Hi <= s.Hi
	case b.To == With:
		return b.Hi < s.Hi
	}
	return false
}

// categoriesOfRedis are those of which this server may have no command. They are taken, since clients name them.
var categoriesOfRedis = []string{"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo",
	"stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting"}

// addCommands adds or takes away commands: +name, +family|name, +@category, and the same with a minus.
func (r *rules) addCommands(rule string) error {
	rule = strings.ToLower(rule)
	name := rule[1:]
	var all []*command
	switch category, isCategory := strings.CutPrefix(name, "@"); {
	case name == "@all":
		for c := range fullNames {
			all = append(all, c)
		}
		r.said = nil
	case isCategory:
		for c := range fullNames {
			if slices.Contains(c.categories(), category) {
				all = append(all, c)
			}
		}
		if len(all) == 0 && !slices.Contains(categoriesOfRedis, category) {
			return errRuleName
		}
	default:
		c := namedCommand(name)
		if c == nil {
			return errRuleName
		}
		all = append(all, c)
		if c.subs != nil {
			all = append(all, c.subs.all...)
		}
	}
	for _, c := range all {
		if rule[0] == '+' {
			r.commands[c] = true
		} else {
			delete(r.commands, c)
		}
	}
	r.said = slices.DeleteFunc(r.said, func(s string) bool { return s[1:] == name })
	r.said = append(r.said, rule)
	return nil
}

// namedCommand returns the command of a name, or family|name, in any case of letters; nil if there is none.
func namedCommand(name string) *command {
	all := namedCommands([][]byte{[]byte(name)})
	return all[0]
}

// String returns rules as ACL LIST has them.
func (r *rules) String() string {
	all := []string{"off"}
	if r.on {
		all[0] = "on"
	}
	if r.nopass {
		all = append(all, "nopass")
	}
	for _, h := range r.hashes {
		all = append(all, "#"+h.String())
	}
	for _, p := range r.patterns {
		all = append(all, "~"+p)
	}
	if r.channels {
		all = append(all, "&*")
	} else {
		all = append(all, "resetchannels")
	}
	return strings.Join(append(all, r.said...), " ")
}
