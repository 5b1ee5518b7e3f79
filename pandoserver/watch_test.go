package pandoserver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tallyCases are commands that both servers count alike: calls, those that are refused, and those that fail.
var tallyCases = []string{
	"SET a 1", "GET a", "GET", "GET a b", "MGET a b", "INCR a", "INCR a", "SET text x", "INCR text", "INCR text",
	"DEL a b", "SETNX a 1", "SETNX a 2", "SET a 1 NX XX", "SET a 2 NX", "APPEND a 1", "NOSUCH a", "MULTI", "SET a 1", "INCR text", "GET a", "EXEC",
	"MULTI", "GET", "EXEC", "EXEC", "MULTI", "PING", "DISCARD", "ACL WHOAMI", "CLIENT ID", "CLIENT NOSUCH", "SELECT 99", "SETRANGE a x 1", "GETRANGE a 0 y", "ZCARD",
	"SLOWLOG GET x", "SLOWLOG LEN", "SLOWLOG LEN 1", "ECHO a", "PING a b c",
}

// cmdstats returns what INFO tells of commands, without times.
func cmdstats(c *client) (lines []string) {
	for _, m := range regexp.MustCompile(`cmdstat_([^:]*:calls=\d+),.*(,rejected_calls=\d+,failed_calls=\d+)`).FindAllStringSubmatch(c.do("INFO", "commandstats"), -1) {
		if !strings.HasPrefix(m[1], "info:") && !strings.HasPrefix(m[1], "hello:") {
			lines = append(lines, m[1]+m[2])
		}
	}
	slices.Sort(lines)
	return lines
}

// Calls are counted as redis counts them, one by one and in pipelines.
func TestTalliesBesideRedis(t *testing.T) {
	for _, piped := range []bool{false, true} {
		theirs := redis(t)
		_, address := start(t, memory(t))
		ours := dial(t, "tcp", address)
		for _, c := range []*client{theirs, ours} {
			for _, line := range tallyCases {
				c.send(encode(strings.Fields(line)...))
				if !piped {
					c.reply()
				}
			}
			for range tallyCases {
				if piped {
					c.reply()
				}
			}
		}
		want, got := cmdstats(theirs), cmdstats(ours)
		if !slices.Equal(got, want) {
			for _, l := range got {
				if !slices.Contains(want, l) {
					t.Errorf("pipeline %v: %s", piped, l)
				}
			}
			for _, l := range want {
				if !slices.Contains(got, l) {
					t.Errorf("pipeline %v: redis has %s", piped, l)
				}
			}
		}
	}
}

// slowlog returns the arguments that SLOWLOG GET has of each command, the newest first.
func slowlog(c *client) (all []string) {
	reply := c.do("SLOWLOG", "GET", "-1")
	for _, entry := range regexp.MustCompile(`\*6\r\n:\d+\r\n:\d+\r\n:\d+\r\n`).Split(reply, -1)[1:] {
		lines := strings.Split(entry, "\r\n")
		n, _ := strconv.Atoi(lines[0][1:])
		var words []string
		for i := range n {
			words = append(words, lines[2+2*i])
		}
		all = append(all, strings.Join(words, " ")+" by "+lines[4+2*n])
	}
	return all
}

// SLOWLOG has what redis' has: parts of long arguments, no passwords, the names of clients.
func TestSlowLogBesideRedis(t *testing.T) {
	theirs := redis(t)
	theirs.do("CONFIG", "SET", "slowlog-log-slower-than", "0")
	_, address := start(t, memory(t), SlowerThan(0))
	ours := dial(t, "tcp", address)
	var logs [2][]string
	var many []string
	for i := range 50 {
		many = append(many, "key"+strconv.Itoa(i))
	}
	for i, c := range []*client{theirs, ours} {
		c.do("SLOWLOG", "RESET")
		c.do("CLIENT", "SETNAME", "me")
		c.do("SET", "a", strings.Repeat("x", 300))
		c.do(append([]string{"MGET"}, many...)...)
		c.do("AUTH", "alice", "secret")
		c.do("ACL", "SETUSER", "alice", "on", ">secret", "+get")
		c.do("INCR", "a")
		logs[i] = slowlog(c)
		if reply := c.do("SLOWLOG", "GET", "2"); !strings.HasPrefix(reply, "*2\r\n*6\r\n") {
			t.Errorf("%q", reply)
		}
		if reply := c.do("SLOWLOG", "GET", "0"); reply != "*0\r\n" {
			t.Errorf("%q", reply)
		}
	}
	if !slices.Equal(logs[1], logs[0]) {
		t.Errorf("%q, redis: %q", logs[1], logs[0])
	}
	for _, line := range []string{"SLOWLOG GET x", "SLOWLOG GET -2", "SLOWLOG GET 1 2", "SLOWLOG LEN 1", "SLOWLOG", "SLOWLOG NOSUCH", "SLOWLOG RESET"} {
		args := strings.Fields(line)
		if want, got := theirs.do(args...), ours.do(args...); got != want {
			t.Errorf("%s: %q, redis: %q", line, got, want)
		}
	}
	// What is remembered is bounded, and a batch is one entry.
	ours.send(strings.Repeat(encode("PING"), 3*slowEntries))
	for range 3 * slowEntries {
		ours.reply()
	}
	ours.want("SLOWLOG LEN", ":128\r\n")
	ours.send(strings.Repeat(encode("GET", "b"), 3))
	for range 3 {
		ours.reply()
	}
	if got := slowlog(ours)[0]; got != "GET b ... (2 more commands, done together) by me" {
		t.Errorf("%s", got)
	}
	_, quick := start(t, memory(t))
	c := dial(t, "tcp", quick)
	c.want("PING", "+PONG\r\n")
	c.want("CONFIG GET slowlog-log-slower-than", "*2\r\n$23\r\nslowlog-log-slower-than\r\n$5\r\n10000\r\n")
	_, never := start(t, memory(t), SlowerThan(-time.Second))
	c = dial(t, "tcp", never)
	c.want("CONFIG GET slowlog-log-slower-than", "*2\r\n$23\r\nslowlog-log-slower-than\r\n$2\r\n-1\r\n")
	c.want("SLOWLOG LEN", ":0\r\n")
}

// CLIENT LIST has the fields that clients of redis look at, and they are right.
func TestClientFields(t *testing.T) {
	_, address := start(t, memory(t))
	watcher, c := dial(t, "tcp", address), dial(t, "tcp", address)
	field := func(name string) string {
		for _, line := range strings.Split(watcher.do("CLIENT", "LIST"), "\n") {
			if strings.Contains(line, " addr="+c.conn.LocalAddr().String()+" ") {
				if m := regexp.MustCompile(` ` + name + `=(\S*)`).FindStringSubmatch(line); m != nil {
					return m[1]
				}
			}
		}
		return "no " + name
	}
	until := func(name, want string) {
		t.Helper()
		got := ""
		for range 1000 {
			if got = field(name); got == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s=%s, want %s", name, got, want)
	}
	until("cmd", "NULL")
	if idle := field("idle"); !regexp.MustCompile(`^\d+$`).MatchString(idle) { // it grows
		t.Errorf("idle=%s", idle)
	}
	until("multi", "-1")
	c.want("CLIENT SETNAME me", "+OK\r\n")
	until("name", "me")
	c.want("PING", "+PONG\r\n")
	until("tot-cmds", "2")
	until("tot-net-out", strconv.Itoa(len("+OK\r\n+PONG\r\n")))
	until("tot-net-in", strconv.Itoa(len(encode("CLIENT", "SETNAME", "me")+encode("PING"))))
	c.want("MULTI", "+OK\r\n")
	until("multi", "0")
	until("flags", "x")
	c.want("SET a 1", "+QUEUED\r\n")
	until("multi", "1")
	c.want("DISCARD", "+OK\r\n")
	until("multi-mem", "0")
	until("flags", "N")
	c.send("*2\r\n$3\r\nGET\r\n")
	until("qbuf", strconv.Itoa(len("*2\r\n$3\r\nGET\r\n")))
	c.send("$1\r\na\r\n")
	c.reply()
	until("qbuf", "0")
	until("omem", "0")
	until("events", "r")
	c.do("SET", "big", strings.Repeat("x", 1<<20))
	c.send(strings.Repeat(encode("GET", "big"), 20)) // more than sockets hold
	until("events", "rw")
	for range 20 {
		c.reply()
	}
	until("events", "r")
	redis7 := regexp.MustCompile(`(\S+)=`)
	theirs := redis(t)
	for _, m := range redis7.FindAllStringSubmatch(theirs.do("CLIENT", "INFO"), -1) {
		switch name := m[1]; name {
		case "fd", "argv-mem", "rbs", "rbp", "obl", "oll": // of how redis is made
		default:
			if got := field(name); name != "id" && got == "no "+name {
				t.Errorf("there is no field %s", name)
			}
		}
	}
}

// INFO has the fields that tools of redis look at, and what is counted is right.
func TestInfo(t *testing.T) {
	_, address := start(t, store(t))
	c := dial(t, "tcp", address)
	c.do("SET", "a", "1")
	c.do("MGET", "a", "b")
	c.do("INCR", "a")
	c.do("SAVE")
	c.do("NOSUCH")
	info := c.do("INFO")
	for _, want := range []string{
		"redis_version:7.0.15", "connected_clients:1", "blocked_clients:0", "used_memory:", "used_memory_human:", "used_memory_device:0", "loading:0", "aof_enabled:1",
		"rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:ok", "aof_last_write_status:ok", "log_db0_operations:2", "log_db0_checkpoints:1", "log_db0_status:ok",
		"total_commands_processed:5", "total_connections_received:1", "keyspace_hits:1", "keyspace_misses:1", "total_error_replies:1", "unknown_commands:1",
		"batches:3", "batched_commands:3", "batched_keys:3", "role:master", "cluster_enabled:0", "db0:device=cpu", "db0:keys=1",
	} {
		if !strings.Contains(info, "\n"+want) {
			t.Errorf("there is no %s in\n%s", want, info)
		}
	}
	if strings.Contains(info, "cmdstat_") || !strings.Contains(c.do("INFO", "all"), "cmdstat_set:calls=1,") || !strings.Contains(c.do("INFO", "latencystats"), "latency_percentiles_usec_set:p50=") {
		t.Error("INFO has sections that nobody asked for, or not those that somebody did")
	}
	if got := c.do("INFO", "nosuch"); got != "$0\r\n\r\n" {
		t.Errorf("%q", got)
	}
}

// Metrics are as Prometheus reads them, and what is counted is right.
func TestMetrics(t *testing.T) {
	srv, address := start(t, store(t), And("other", memory(t)))
	c := dial(t, "tcp", address)
	c.send(strings.Repeat(encode("SET", "a", "1"), 5))
	for range 5 {
		c.reply()
	}
	c.do("GET")
	c.do("INCR", "a")
	c.do("SAVE")
	var b strings.Builder
	if err := srv.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	kinds := map[string]string{}
	name := ""
	sample := regexp.MustCompile(`^([a-z_]+?)(_bucket|_sum|_count)?(\{([a-z]+="[^"]*",?)+\})? (\+Inf|[0-9.e+-]+)$`)
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if f := strings.Fields(line); f[0] == "#" {
			if name = f[2]; f[1] == "TYPE" {
				if kinds[name] != "" {
					t.Errorf("%s comes twice", name)
				}
				kinds[name] = f[3]
			}
			continue
		}
		m := sample.FindStringSubmatch(strings.ReplaceAll(line, `arch_bits`, "bits"))
		if m == nil || m[1] != name && m[1]+m[2] != name || (m[2] != "" && m[1] == name) != (kinds[name] == "histogram") {
			t.Errorf("of %s (%s): %s", name, kinds[name], line)
		}
	}
	for _, want := range []string{
		`pando_command_duration_seconds_count{command="set"} 5`, `pando_command_duration_seconds_bucket{command="set",le="+Inf"} 5`, `pando_commands_refused_total{command="get"} 1`,
		`pando_batch_commands_sum 6`, `pando_batch_keys_sum 5`, `pando_connections 1`, `pando_entries{index="index"} 1`, `pando_entries{index="other"} 0`, `pando_checkpoints_total{index="index"} 1`,
		`pando_log_operations_total{index="index"} 6`, `pando_read_only{index="index"} 0`, `pando_index_bytes{index="other",where="device"} 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `pando_log_bytes{index="other"}`) {
		t.Error("a tree in memory has a log")
	}
}
