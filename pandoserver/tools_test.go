package pandoserver

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/tool"
)

// ask runs a tool of redis' against a server, and returns what it prints.
func ask(t *testing.T, address, input, name string, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, tool.Path(t, name, "redis-tools"), append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// redis-cli works with its defaults, in both versions of the protocol.
func TestCommandLine(t *testing.T) {
	_, address := start(t, memory(t))
	for _, version := range []string{"-2", "-3"} {
		if got := ask(t, address, "set apple 3\nincr apple\npando.range a b keys\nscan 0\nmulti\nget apple\nexec\nflushdb\n", "redis-cli", version); got != "OK\n4\napple\n0\napple\nOK\nQUEUED\n4\nOK\n" {
			t.Errorf("%q", got)
		}
		for command, want := range map[string]string{
			"info server": "redis_version:", "client list": "cmd=client|list", "command docs get": "Returns the value of a key", "command info get": "readonly",
			"config get *": "maxclients", "acl list": "user default on", "acl cat pando": "pando.range", "client help": "SETNAME", "hello 3": "proto", "dbsize": "0",
		} {
			if got := ask(t, address, "", "redis-cli", append([]string{version}, strings.Fields(command)...)...); !strings.Contains(got, want) {
				t.Errorf("%s: %s", command, got)
			}
		}
	}
	var load strings.Builder
	for i := range 1000 {
		load.WriteString(encode("SET", "key:"+strings.Repeat("x", i%10)+string(rune('a'+i%26)), "value"))
	}
	if got := ask(t, address, load.String(), "redis-cli", "--pipe"); !strings.Contains(got, "errors: 0, replies: 1000") {
		t.Errorf("%s", got)
	}
	if got := ask(t, address, "", "redis-cli", "--scan", "--pattern", "key:*"); strings.Count(got, "\n") != 130 {
		t.Errorf("%d keys", strings.Count(got, "\n"))
	}
	if got := ask(t, address, "", "redis-cli", "--bigkeys"); !strings.Contains(got, "130 strings") {
		t.Errorf("%s", got)
	}
}

// redis-benchmark finds nothing to complain about.
func TestBenchmarkTool(t *testing.T) {
	_, address := start(t, memory(t))
	for _, depth := range []string{"1", "16"} {
		got := ask(t, address, "", "redis-benchmark", "-t", "ping,set,get,incr,mset", "-n", "2000", "-r", "1000", "-c", "10", "-P", depth, "--csv")
		if strings.Count(got, "\n") != 7 || strings.Contains(got, "rror") || strings.Contains(got, "WARNING") {
			t.Errorf("%s", got)
		}
	}
}
