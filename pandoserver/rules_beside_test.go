package pandoserver

import (
	"fmt"
	"strings"
	"testing"
)

// rulesBeside are rules that both servers know, and commandsBeside what a user of each is tried on. Each is tried with
// each: docs/server.md has in words what is the same and what is not.
var (
	rulesBeside = []string{
		"+@all ~*", "+@all", "~*", "+get ~*", "+get ~a*", "+get +set ~a1", "+@read ~*", "+@read ~a*", "+@write ~*", "+@write ~a* ~b1", "+@string ~*",
		"+@keyspace ~*", "+@fast ~*", "+@slow ~*", "+@connection ~*", "+@transaction ~*", "+@sortedset ~*", "+@admin ~*", "+@dangerous ~*", "+@all -@dangerous ~*",
		"+@all -@write ~*", "+@all -get ~*", "-@all +client|id ~*", "+client ~*", "+client -client|kill ~*", "+@all -@admin ~a*", "+acl|whoami ~*", "+config|get ~*",
		"+@all ~* resetkeys", "+@all ~* nocommands", "allcommands allkeys", "+@all ~* reset on", "+@read +set -mget ~a* ~b*", `+get ~a\*`,
	}
	commandsBeside = []string{
		"GET a1", "GET b1", "GET a*", "SET a1 x", "SET b1 x", "MGET a1 a2", "MGET a1 b1", "MSET a1 x b1 y", "DEL a1", "DEL a1 c1", "EXISTS a1 b1", "INCR a1", "GETDEL b1", "TYPE a1",
		"STRLEN a1", "APPEND a1 x", "SETRANGE a1 0 x", "MSETNX a1 1 a2 2", "PING", "ECHO x", "SELECT 0", "CLIENT ID", "CLIENT LIST", "CLIENT KILL 1.2.3.4:5", "CLIENT SETNAME x",
		"MULTI", "EXEC", "DISCARD", "CONFIG GET x", "ACL WHOAMI", "ACL LIST", "ACL SETUSER x", "INFO", "SAVE", "BGSAVE", "LASTSAVE", "SLOWLOG GET", "COMMAND COUNT", "WAIT 0 0",
		"FLUSHALL", "FLUSHDB", "DBSIZE", "KEYS *", "SCAN 0", "RANDOMKEY", "AUTH x", "HELLO 3", "QUIT", "RESET",
	}
)

// aboutAll are commands that are about keys which they do not name: here a user needs them, by redis' rules none.
var aboutAll = map[string]bool{"FLUSHALL": true, "FLUSHDB": true, "DBSIZE": true, "KEYS": true, "SCAN": true, "RANDOMKEY": true}

// verdict returns what a reply to ACL DRYRUN says: redis names the key, or says that it is one of several.
func verdict(reply string) string {
	for _, v := range []string{"permissions to run the", "permissions to access", "+OK"} {
		if strings.Contains(reply, v) {
			return v
		}
	}
	return reply
}

// Both servers let users of the same rules do the same commands, one by one, but where docs/server.md says otherwise.
func TestRulesBesideRedis(t *testing.T) {
	theirs := redis(t)
	_, address := start(t, memory(t))
	ours := dial(t, "tcp", address)
	allowed, refused, stricter := 0, 0, 0
	for i, rules := range rulesBeside {
		name := fmt.Sprint("u", i)
		line := append([]string{"ACL", "SETUSER", name, "on", "nopass"}, strings.Fields(rules)...)
		if want, got := theirs.do(line...), ours.do(line...); got != want || got != "+OK\r\n" {
			t.Fatalf("%s: %q, redis: %q", rules, got, want)
		}
		for _, command := range commandsBeside {
			args := strings.Fields(command)
			line := append([]string{"ACL", "DRYRUN", name}, args...)
			want, got := verdict(theirs.do(line...)), verdict(ours.do(line...))
			switch {
			case got == want && got == "+OK":
				allowed++
			case got == want:
				refused++
			case aboutAll[args[0]] && want == "+OK" && got == "permissions to access":
				stricter++
			default:
				t.Errorf("%s: %s: %q, redis: %q", rules, command, got, want)
			}
		}
	}
	t.Logf("%d are allowed by both, %d refused by both, %d by us alone", allowed, refused, stricter)
	if allowed == 0 || refused == 0 || stricter == 0 {
		t.Error("the table says too little")
	}
}
