package pandoserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandostore"
)

// victimDir is the variable that makes TestVictim serve the store in a folder, until it is killed.
const victimDir = "PANDO_SERVER_VICTIM"

func TestVictim(t *testing.T) {
	dir := os.Getenv(victimDir)
	if dir == "" {
		t.Skip("it is started by TestKill")
	}
	s, err := pandostore.Open[string, []byte](dir, pandostore.CheckpointAfter(200<<10))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := New(Store(s))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("listens " + l.Addr().String())
	go func() { // it ends with whoever has started it, too
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	t.Fatal(srv.Serve(context.Background(), l))
}

// remembering is what a client knows of its keys: all of them have one number, but while a change is under way.
type remembering struct {
	id          int
	begun, done int // the number
	sum, sums   int // how often INCR was acknowledged, and begun
}

const ownKeys = 5

func (r *remembering) key(i int) string { return fmt.Sprintf("%d/%d", r.id, i) }

// change gives all keys the next number, by a command of one kind or another, until the connection breaks.
func (r *remembering) change(conn net.Conn, acknowledged *atomic.Int64) {
	in := bufio.NewReader(conn)
	for {
		r.begun++
		n := strconv.Itoa(r.begun)
		args, each := []string{"MSET"}, ""
		for i := range ownKeys {
			args, each = append(args, r.key(i), n), each+encode("SET", r.key(i), n)
		}
		text, replies := encode(args...), 1
		if r.begun%2 == 0 {
			text, replies = encode("MULTI")+each+encode("EXEC"), ownKeys+2
		}
		text, replies = text+strings.Repeat(encode("INCR", r.key(ownKeys)), 2), replies+2
		r.sums += 2
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		for i := range replies {
			reply, err := readReply(in)
			if err != nil {
				return
			}
			switch {
			case i == replies-3:
				r.done = r.begun
			case i >= replies-2:
				r.sum++
			}
			if reply[0] == '-' {
				panic(reply) // which no test expects
			}
		}
		acknowledged.Add(1)
	}
}

// check compares a store with what a client knows, which then knows what is there.
func (r *remembering) check(s *pandostore.Store[string, []byte]) error {
	number := func(i int) int {
		val, _ := s.Get(r.key(i))
		n, _ := strconv.Atoi(string(val))
		return n
	}
	n := number(0)
	for i := range ownKeys {
		if number(i) != n {
			return fmt.Errorf("client %d: half of a change: %d and %d", r.id, n, number(i))
		}
	}
	if n < r.done || n > r.begun {
		return fmt.Errorf("client %d: %d, acknowledged %d, begun %d", r.id, n, r.done, r.begun)
	}
	sum := number(ownKeys)
	if sum < r.sum || sum > r.sums {
		return fmt.Errorf("client %d: a sum of %d, acknowledged %d, begun %d", r.id, sum, r.sum, r.sums)
	}
	r.begun, r.done, r.sum, r.sums = n, n, sum, sum
	return nil
}

// A server is killed under load, again and again: nothing that a client was told to be done is missing, and no transaction
// is there by half.
func TestKill(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the process that is killed takes long to start")
	}
	rng, dir := seed.Rand(t), t.TempDir()
	clients := make([]*remembering, 5)
	for i := range clients {
		clients[i] = &remembering{id: i}
	}
	changes := int64(0)
	for kill := range seed.Times(4, 100) {
		n, err := killOne(dir, clients, rng)
		if err == nil {
			err = checkAll(dir, clients)
		}
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		changes += n
	}
	t.Logf("%d changes were acknowledged", changes)
}

func checkAll(dir string, clients []*remembering) error {
	s, err := pandostore.Open[string, []byte](dir)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, r := range clients {
		if err := r.check(s); err != nil {
			return err
		}
	}
	return nil
}

// killOne starts a server, and kills it after some changes.
func killOne(dir string, clients []*remembering, rng *rand.Rand) (changes int64, err error) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestVictim$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listens ")
	if !ok {
		return 0, fmt.Errorf("the server does not begin: %q, %v", line, err)
	}
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	for _, r := range clients {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		wg.Go(func() { r.change(conn, &acknowledged) })
	}
	for until := 1 + rng.Int64N(60); acknowledged.Load() < until && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	err = cmd.Process.Kill()
	wg.Wait()
	return acknowledged.Load(), err
}
