package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// The tree of a demonstration stays as large as it is, whatever is written to it.
func TestViewDemoStaysAsLarge(t *testing.T) {
	const n, span = 2000, 2_000_000
	tree, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	rng := seed.Rand(t)
	for range 100 { // 20,000 sets: ten times as many as there are entries
		if err := changeSome(tree, rng, span, n); err != nil {
			t.Fatal(err)
		}
	}
	if got := tree.Len(); got < n*9/10 || got > n {
		t.Errorf("%d entries, want about %d", got, n)
	}
}

// A file and the demonstration are served on the loopback address until the
// command is interrupted, which is no failure.
func TestView(t *testing.T) {
	folder := t.TempDir()
	table, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	for _, args := range [][]string{{"gen", "-n", "1000", "-o", table}, {"build", table, "-o", file, "-k", "key", "--value", "value", "-q"}} {
		if code := run(args, io.Discard, io.Discard); code != 0 {
			t.Fatalf("%v: %d", args, code)
		}
	}
	for name, args := range map[string][]string{"t.pando": {file}, "a tree that changes": {"--demo", "-n", "1000"}} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			out, in := io.Pipe()
			cmd := newView()
			cmd.SetArgs(args)
			cmd.SetOut(in)
			cmd.SetErr(io.Discard)
			done := make(chan error, 1)
			go func() { done <- cmd.ExecuteContext(ctx) }()
			address, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || !strings.HasPrefix(address, "http://127.0.0.1:") {
				t.Fatalf("%q: %v", address, err)
			}
			answer, err := http.Get(strings.TrimSpace(address) + "api/index")
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"name":"`+name+`"`) {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
			stop()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on after an interrupt")
			}
		})
	}
}
