package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wire is a connection that sends lines and returns what comes back until nothing does.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func connect(t *testing.T, address string) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimSpace(address), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &wire{t, conn, bufio.NewReader(conn)}
}

// want sends a line, and fails if the reply is not of these words.
func (w *wire) want(line, words string) {
	w.t.Helper()
	const end = "the end"
	if _, err := io.WriteString(w.conn, line+"\r\nECHO \""+end+"\"\r\n"); err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for {
		text, err := w.r.ReadString('\n')
		if err != nil {
			w.t.Fatal(err)
		}
		text = strings.TrimSpace(text)
		if text == end {
			break
		}
		if !strings.HasPrefix(text, "$") || text == "$-1" {
			got = append(got, text)
		}
	}
	if got := strings.Join(got, " "); got != words {
		w.t.Errorf("%s: %q, want %q", line, got, words)
	}
}

// serveHere runs the command until stop is called, which returns its error.
func serveHere(t *testing.T, args ...string) (address string, stop func() error) {
	t.Helper()
	lines, stop := serveAnywhere(t, append(args, "--listen", "127.0.0.1:0", "--http", "off")...)
	address, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return address, stop
}

// serveAnywhere does so, and returns what it prints.
func serveAnywhere(t *testing.T, args ...string) (lines *bufio.Reader, stop func() error) {
	t.Helper()
	return serveTelling(t, io.Discard, args...)
}

// serveTelling does so, and writes what the command says to people to told.
func serveTelling(t *testing.T, told io.Writer, args ...string) (lines *bufio.Reader, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	cmd := newServe()
	cmd.SetArgs(args)
	cmd.SetOut(in)
	cmd.SetErr(told)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	done := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		in.CloseWithError(err)
		done <- err
	}()
	stop = func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("the command does not end")
			return nil
		}
	}
	t.Cleanup(cancel)
	return bufio.NewReader(out), stop
}

// A store keeps what clients were told is done.
func TestServeStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, want := range []string{":1", ":2"} {
		address, stop := serveHere(t, dir)
		c := connect(t, address)
		c.want("INCR n", want)
		c.want("ZRANGE data - + BYLEX", "*1 n")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder whose name begins with a dot is a store of that name, whether it is there or not.
func TestServeHidden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".data")
	for _, want := range []string{":1", ":2"} {
		address, stop := serveHere(t, dir)
		c := connect(t, address)
		c.want("INCR n", want)
		c.want("ZCARD .data", ":1")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Files of numbers, of texts and of dates are served by name, in the order of their keys.
func TestServeFiles(t *testing.T) {
	dir := t.TempDir()
	make := func(name, table string) string {
		csv, file := filepath.Join(dir, name+".csv"), filepath.Join(dir, name+".pando")
		if err := os.WriteFile(csv, []byte(table), 0o666); err != nil {
			t.Fatal(err)
		}
		if code := run([]string{"build", csv, "-o", file, "--key", "key", "--value", "value", "-q"}, io.Discard, os.Stderr); code != 0 {
			t.Fatal(code)
		}
		return file
	}
	numbers := make("numbers", "key,value\n-5,1.5\n10,2\n9,3\n100,4\n")
	texts := make("texts", "key,value\nb,x\na,y\nba,z\n")
	dates := make("dates", "key,value\n2026-11-17,1\n2026-02-03,2\n")
	address, stop := serveHere(t, numbers, texts, dates)
	c := connect(t, address)
	c.want("GET 10", "2")
	c.want("MGET 9 x 11 -5", "*4 3 $-1 $-1 1.5")
	c.want("DBSIZE", ":4")
	c.want("SET 10 3", "-READONLY You can't write against a read only index")
	c.want("PANDO.RANGE 9 100", "*6 9 3 10 2 100 4")
	c.want("PANDO.RANGE (9 + KEYS REV", "*2 100 10")
	c.want("PANDO.RANGE - (9 KEYS", "*1 -5")
	c.want("PANDO.COUNT -100 9", ":2")
	c.want("PANDO.RANK 10", ":2")
	c.want("PANDO.FLOOR 50", "*2 10 2")
	c.want("PANDO.AGG - +", "*10 count :4 sum 10.5 min 1.5 max 4 mean 2.625")
	c.want("PANDO.RANGE a b", `-ERR "a" is no int64`)
	c.want("PANDO.PREFIX 1", "-ERR keys that are numbers have no prefixes")
	c.want("SCAN 0 COUNT 3", "*2 3 *3 -5 9 10")
	c.want("SCAN 3", "*2 0 *1 100")
	c.want("SCAN 99", "*2 0 *4 -5 9 10 100")
	c.want("KEYS 1*", "*2 10 100")
	c.want("ZRANGE numbers [9 + BYLEX LIMIT 1 1", "*1 10")
	c.want("SELECT texts", "+OK")
	c.want("PANDO.PREFIX b", "*4 b x ba z")
	c.want("SCAN 0", "*2 0 *3 a b ba")
	c.want("SELECT 2", "+OK")
	c.want("GET 2026-02-03", "2")
	c.want("PANDO.CEIL 2026-03-01", "*2 2026-11-17 1")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// A signal ends the command in good order.
func TestServeSignal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to send")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "serve", "--listen", "127.0.0.1:0", "--http", "off")
	cmd.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, address)
	c.want("SET a b", "+OK")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
