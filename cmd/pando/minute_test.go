package main

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/tool"
)

// A stranger's minute with pando serve: each line of the README does what is said behind it.
func TestServeMinute(t *testing.T) {
	tool.Path(t, "redis-cli", "redis-tools")
	tool.Path(t, "curl", "curl")
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Skip("the sources are not here: ", err)
	}
	_, block, found := strings.Cut(string(text), "```\npando serve ")
	block, _, ends := strings.Cut(block, "```")
	if !found || !ends {
		t.Fatal("the README has no block that begins with pando serve")
	}
	lines := strings.Split(strings.TrimSpace(block), "\n")
	served, _, _ := strings.Cut(lines[0], " ")
	out, stop := serveAnywhere(t, filepath.Join(t.TempDir(), served), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	address, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	web, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimSpace(address), ":")
	if len(lines) < 5 {
		t.Errorf("only %d lines", len(lines))
	}
	for _, line := range lines[1:] {
		command, want, said := strings.Cut(line, "# ")
		if !said {
			t.Errorf("the README does not say what %q prints", line)
			continue
		}
		command = strings.ReplaceAll(strings.ReplaceAll(command, "redis-cli ", "redis-cli -p "+port+" "), "localhost:6380", "localhost:"+web.Port())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		var errs bytes.Buffer
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stderr = &errs
		got, err := cmd.Output()
		cancel()
		if text := strings.Join(strings.Fields(string(got)), " "); err != nil || text != want {
			t.Errorf("%s: %q, %v %s, want %q", command, text, err, errs.Bytes(), want)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
