//go:build unix

package pandostore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
// lost, and no batch is there by half. Several live beside each other, since each waits for
// the disk most of the time.
func TestKill(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the process that is killed takes long to start")
	}
	const lanes = 4
	first, times := seed.Of(t), seed.Times(8, 500)
	var updates atomic.Uint64
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			v := victimOf{dir: t.TempDir()}
			rng := rand.New(rand.NewPCG(first, uint64(lane)))
			for i := lane; i < times && !t.Failed(); i += lanes {
				if err := v.killOne(rng); err != nil {
					t.Errorf("kill %d: %v", i, err)
				}
			}
			updates.Add(v.sums)
		})
	}
	wg.Wait()
	t.Logf("%d kills, %d updates", times, updates.Load())
}

// victimOf is what is known of a store whose processes are killed: what they have begun, and
// what was acknowledged.
type victimOf struct {
	dir         string
	done, begun [victimWriters]uint64
	sums        uint64
}

// killOne starts a process, kills it after a while, and compares what it leaves with what it
// has said.
func (v *victimOf) killOne(rng *rand.Rand) error {
	if err := v.listen(rng); err != nil {
		return err
	}
	s, err := Open[string, uint64](v.dir)
	if err != nil {
		return err
	}
	var errs []error
	for g := range victimWriters {
		first, _ := s.Get(ownKey(g, 0))
		for k := range ownKeys {
			if n, _ := s.Get(ownKey(g, k)); n != first {
				errs = append(errs, fmt.Errorf("writer %d: half of a batch: %d and %d", g, first, n))
			}
		}
		if first < v.done[g] || first > v.begun[g] {
			errs = append(errs, fmt.Errorf("writer %d: %d, acknowledged %d, begun %d", g, first, v.done[g], v.begun[g]))
		}
		v.done[g], v.begun[g] = first, first
	}
	n, _ := s.Get("sum")
	if n < v.sums || n > v.sums+victimWriters {
		errs = append(errs, fmt.Errorf("a sum of %d, acknowledged %d", n, v.sums))
	}
	v.sums = n
	return errors.Join(append(errs, s.Close())...)
}

// listen starts a process, kills it after a while, and notes what it says.
func (v *victimOf) listen(rng *rand.Rand) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+v.dir)
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
			v.sums++
			continue
		}
		if len(words) != 3 {
			return fmt.Errorf("it says %q", line)
		}
		g, _ := strconv.Atoi(words[1])
		n, _ := strconv.ParseUint(words[2], 10, 64)
		if words[0] == "done" {
			v.done[g] = n
		} else {
			v.begun[g] = n
		}
	}
	cmd.Wait()
	return nil
}
