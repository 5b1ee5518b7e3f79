package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoview"
	"github.com/spf13/cobra"
)

const viewLong = `Show an index file in a browser: its levels, nodes and keys from far away to near,
the way of a search, inserts with their splits, batches and kernels step by step,
and what takes memory.

The page is served on this machine's loopback address until the command is
interrupted. It needs no network, and never changes the file: what it inserts, it
inserts into a small tree of its own made of keys of the file.

With --demo a tree in memory is shown instead, which a writer changes meanwhile.`

const viewExample = `  pando view people.pando          prints the address of the page
  pando view people.pando --open   and opens it in the browser
  pando view --demo --open         a tree that changes`

// demoEntries is how many entries the tree of a demonstration has.
const demoEntries = 500_000

func newView() *cobra.Command {
	demo, open, port, n := false, false, 0, count(demoEntries)
	cmd := &cobra.Command{
		Use:     "view FILE [flags]",
		Short:   "Show an index in a browser",
		Long:    viewLong,
		Example: viewExample,
		Args:    takes(0, 1, "an index file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case demo && len(args) > 0:
				return usagef("--demo shows a tree of its own: leave %s out, or --demo", args[0])
			case !demo && len(args) == 0:
				return usagef("needs an index file, or --demo")
			case port < 0 || port > 65535:
				return usagef("--port %d; take 0 to 65535", port)
			case n < 1 || n > 100_000_000:
				return usagef("-n %d; take 1 to 100M", n)
			}
			if demo {
				return viewDemo(cmd, int(n), port, open)
			}
			ix, err := anywhere.openIndex(args[0])
			if err != nil {
				return err
			}
			defer ix.Close()
			return serveView(cmd, pandoview.Handler(ix, pandoview.Name(filepath.Base(args[0]))), port, open)
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "show a tree in memory that a writer changes, instead of a file")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	cmd.Flags().IntVar(&port, "port", 0, "`PORT` to listen on; 0 is any that is free")
	cmd.Flags().VarP(&n, "n", "n", "entries of the tree that --demo shows")
	return cmd
}

// serveView serves a page on the loopback address until the command is
// interrupted.
func serveView(cmd *cobra.Command, h http.Handler, port int, open bool) error {
	ctx := cmd.Context()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("cannot listen: %w; is another program on port %d? --port 0 takes one that is free", err, port)
	}
	address := "http://" + l.Addr().String() + "/"
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", address); err != nil {
		l.Close()
		return err // nobody would know where to look
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Serving this machine alone until interrupted (Ctrl-C).\n")
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if open {
		if err := openBrowser(address); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "The browser cannot be opened (%v): open the address yourself.\n", err)
		}
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// openBrowser opens an address in the browser.
func openBrowser(address string) error {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	return exec.Command(name, args...).Start()
}

// viewDemo shows a tree that is changed meanwhile.
func viewDemo(cmd *cobra.Command, n, port int, open bool) error {
	t, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		return err
	}
	defer t.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	keys := make([]uint64, n)
	span := uint64(n) * 1000
	for i := range keys {
		keys[i] = rng.Uint64N(span)
	}
	if err := t.SetBatch(keys, keys); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		changeDemo(ctx, t, rng, span, n)
	}()
	defer func() { stop(); <-done }()
	return serveView(cmd, pandoview.Handler(t, pandoview.Name("a tree that changes")), port, open)
}

// changeDemo changes a tree of about n entries some thousand times a second, so that
// there is something to see and a core to spare.
func changeDemo(ctx context.Context, t *pando.Tree[uint64, uint64], rng *rand.Rand, span uint64, n int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if changeSome(t, rng, span, n) != nil {
			return
		}
	}
}

// changeSome sets some keys below span, here more and there less. It deletes as many
// as are above n, each entry as likely as any other: a random key is hardly ever
// there, and the one next to it lies mostly where entries are few, so that busy
// regions would stay crowded for ever. Nobody else may change the tree.
func changeSome(t *pando.Tree[uint64, uint64], rng *rand.Rand, span uint64, n int) error {
	busy := rng.Uint64N(span) // a region that is busier than others
	for range 100 {
		if err := t.Set(rng.Uint64N(span), 1); err != nil {
			return err
		}
		if err := t.Set((busy+rng.Uint64N(span/200+1))%span, 2); err != nil {
			return err
		}
		for t.Len() > n {
			key, _ := t.At(rng.IntN(t.Len()))
			t.Delete(key)
		}
	}
	return nil
}
