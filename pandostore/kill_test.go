//go:build unix

package pandostore

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// victim is the variable that makes this program one that is killed: it names the folder.
const victim = "PANDO_STORE_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victim); dir != "" {
		if err := suffer(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	victimWriters = 6
	ownKeys       = 50 // of each writer
)

// suffer changes a store until it is killed. Each writer counts, and writes the count to
// all of its keys, one by one or as a batch; it says what it begins and what is
// acknowledged.
func suffer(dir string) error {
	s, err := Open[string, uint64](dir, CheckpointAfter(100<<10), func(c *config) { c.segment, c.frame = 256<<10, 300 })
	if err != nil {
		return err
	}
	fmt.Println("open")
	var wg sync.WaitGroup
	errs := make(chan error, victimWriters)
	for g := range victimWriters {
		wg.Go(func() { errs <- count(s, g) })
	}
	return <-errs
}

func ownKey(g, i int) string { return fmt.Sprintf("%d/%02d", g, i) }

func count(s *Store[string, uint64], g int) error {
	keys, vals := make([]string, ownKeys), make([]uint64, ownKeys)
	for i := range keys {
		keys[i] = ownKey(g, i)
	}
	n, _ := s.Get(keys[0])
	for {
		n++
		fmt.Printf("begin %d %d\n", g, n)
		for i := range vals {
			vals[i] = n
		}
		if err := s.SetBatch(keys, vals); err != nil {
			return err
		}
		fmt.Printf("done %d %d\n", g, n)
		for range 5 {
			if err := s.Update("sum", func(old uint64, _ bool) (uint64, bool) { return old + 1, true }); err != nil {
				return err
			}
			fmt.Println("sum")
		}
	}
}

// Processes are killed at random under load, on a real disk: no acknowledged change is
// lost, and no batch is there by half.
func TestKill(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the process that is killed takes long to start")
	}
	rng := seed.Rand(t)
	dir := t.TempDir()
	var done, begun [victimWriters]uint64
	sums, times := uint64(0), seed.Times(6, 500)
	for i := range times {
		before := sums
		if err := killOne(dir, rng, &done, &begun, &sums); err != nil {
			t.Fatal(i, err)
		}
		s, err := Open[string, uint64](dir)
		if err != nil {
			t.Fatal(i, err)
		}
		for g := range victimWriters {
			first, _ := s.Get(ownKey(g, 0))
			for k := range ownKeys {
				if v, _ := s.Get(ownKey(g, k)); v != first {
					t.Errorf("kill %d: writer %d: half of a batch: %d and %d", i, g, first, v)
				}
			}
			if first < done[g] || first > begun[g] {
				t.Errorf("kill %d: writer %d: %d, acknowledged %d, begun %d", i, g, first, done[g], begun[g])
			}
			done[g], begun[g] = first, first
		}
		if n, _ := s.Get("sum"); n < sums || n > sums+victimWriters {
			t.Errorf("kill %d: a sum of %d, acknowledged %d (%d before)", i, n, sums, before)
		} else {
			sums = n
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills, %d updates", times, sums)
}

// killOne starts a process, kills it after a while, and notes what it has said.
func killOne(dir string, rng *rand.Rand, done, begun *[victimWriters]uint64, sums *uint64) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewReader(out)
	line, err := in.ReadString('\n')
	if err != nil || line != "open\n" {
		rest, _ := io.ReadAll(in)
		cmd.Wait()
		return fmt.Errorf("it begins with %q%s, %v", line, rest, err)
	}
	time.AfterFunc(time.Duration(rng.IntN(40))*time.Millisecond, func() { cmd.Process.Kill() })
	for {
		line, err := in.ReadString('\n')
		if err != nil { // the last line may be half
			break
		}
		words := strings.Fields(line)
		if words[0] == "sum" {
			*sums++
			continue
		}
		if len(words) != 3 {
			return fmt.Errorf("it says %q", line)
		}
		g, _ := strconv.Atoi(words[1])
		n, _ := strconv.ParseUint(words[2], 10, 64)
		if words[0] == "done" {
			done[g] = n
		} else {
			begun[g] = n
		}
	}
	cmd.Wait()
	return nil
}
