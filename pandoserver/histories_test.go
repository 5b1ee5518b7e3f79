package pandoserver

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando/internal/seed"
)

// historyKeys is the number of keys that a history is about.
const historyKeys = 4

// part is what a command does to one key. Values are numbers, and 0 is none.
type part struct {
	kind byte // g: GET, s: SET, x: GETSET, i: INCR, d: GETDEL
	key  int
	val  int // to be set
}

// change does a part, and returns the value that it returns.
func (p part) change(vals *[historyKeys]int) (got int) {
	was := vals[p.key]
	switch p.kind {
	case 'g':
		return was
	case 's':
		vals[p.key] = p.val
		return 0
	case 'x':
		vals[p.key] = p.val
		return was
	case 'i':
		vals[p.key]++
		return vals[p.key]
	}
	vals[p.key] = 0 // d
	return was
}

func (p part) String() string { return fmt.Sprintf("%c %d %d", p.kind, p.key, p.val) }

// command returns a part as a client sends it.
func (p part) command() string {
	key := "k" + strconv.Itoa(p.key)
	switch p.kind {
	case 'g':
		return encode("GET", key)
	case 's':
		return encode("SET", key, strconv.Itoa(p.val))
	case 'x':
		return encode("GETSET", key, strconv.Itoa(p.val))
	case 'i':
		return encode("INCR", key)
	}
	return encode("GETDEL", key)
}

// value reads the reply to a part.
func (p part) value(reply string) (int, error) {
	lines := strings.Split(reply, "\r\n")
	switch {
	case p.kind == 's' && reply == "+OK\r\n", reply == "$-1\r\n":
		return 0, nil
	case p.kind == 'i' && reply[0] == ':':
		return strconv.Atoi(lines[0][1:])
	case reply[0] == '$':
		return strconv.Atoi(lines[1])
	}
	return 0, fmt.Errorf("%v: %q", p, reply)
}

// historyModel is keys and what commands do to them. Each operation is the parts of one command, or one transaction, done
// as one; its output is what they return. Where operations are about one key each, keys are looked at by themselves.
func historyModel(byKey bool) porcupine.Model {
	m := porcupine.Model{
		Init: func() any { return [historyKeys]int{} },
		Step: func(at, in, out any) (bool, any) {
			vals, ok := at.([historyKeys]int), true
			for i, p := range in.([]part) {
				ok = p.change(&vals) == out.([]int)[i] && ok
			}
			return ok, vals
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v → %v", in, out) },
	}
	if byKey {
		m.Partition = func(history []porcupine.Operation) [][]porcupine.Operation {
			all := make([][]porcupine.Operation, historyKeys)
			for _, op := range history {
				k := op.Input.([]part)[0].key
				all[k] = append(all[k], op)
			}
			return all
		}
	}
	return m
}

// historian does commands on a connection, and notes them.
type historian struct {
	*client
	id      int
	rng     *rand.Rand
	last    int // value that it has set
	reading bool
	ops     []porcupine.Operation
}

func (h *historian) part(kinds string) part {
	h.last++
	return part{kinds[h.rng.IntN(len(kinds))], h.rng.IntN(historyKeys), 1_000_000*(h.id+1) + 1000*h.last}
}

// note notes parts that are done as one from begin on. If keys are looked at by themselves these are one operation each.
func (h *historian) note(began int64, parts []part, got []int) {
	ended := int64(time.Since(epoch))
	if !h.reading {
		h.ops = append(h.ops, porcupine.Operation{ClientId: h.id, Input: parts, Call: began, Output: got, Return: ended})
		return
	}
	for key := range historyKeys {
		var mine []part
		var its []int
		for i, p := range parts {
			if p.key == key {
				mine, its = append(mine, p), append(its, got[i])
			}
		}
		if mine != nil {
			h.ops = append(h.ops, porcupine.Operation{ClientId: h.id, Input: mine, Call: began, Output: its, Return: ended})
		}
	}
}

var epoch = time.Now()

// step does one command, or one transaction.
func (h *historian) step() error {
	single, several := "sxid", "gsxid"
	if h.reading {
		single = several
	}
	parts, text, skip := []part{h.part(single)}, "", 0
	switch h.rng.IntN(3) {
	case 0:
		text = parts[0].command()
	case 1: // MSET
		args := []string{"MSET"}
		parts = parts[:0]
		for range 1 + h.rng.IntN(3) {
			p := h.part("s")
			parts, args = append(parts, p), append(args, "k"+strconv.Itoa(p.key), strconv.Itoa(p.val))
		}
		text = encode(args...)
	case 2:
		for range h.rng.IntN(4) {
			parts = append(parts, h.part(several))
		}
		text, skip = encode("MULTI"), 1+len(parts)
		for _, p := range parts {
			text += p.command()
		}
		text += encode("EXEC")
	}
	began := int64(time.Since(epoch))
	h.send(text)
	for range skip {
		h.reply()
	}
	got := make([]int, len(parts))
	switch {
	case skip > 0:
		if line, err := h.r.ReadString('\n'); err != nil || line != fmt.Sprintf("*%d\r\n", len(parts)) {
			return fmt.Errorf("EXEC: %q, %v", line, err)
		}
		fallthrough
	case !strings.Contains(text, "\r\nMSET\r\n"):
		for i, p := range parts {
			reply, err := readReply(h.r)
			if err == nil {
				got[i], err = p.value(reply)
			}
			if err != nil {
				return err
			}
		}
	default:
		if reply, err := readReply(h.r); err != nil || reply != "+OK\r\n" {
			return fmt.Errorf("MSET: %q, %v", reply, err)
		}
	}
	h.note(began, parts, got)
	return nil
}

// What clients see through their sockets is as if commands, and transactions, had been done one behind the other: changes and
// transactions all keys together, and with reads beside them each key by itself.
func TestHistories(t *testing.T) {
	for name, source := range sources {
		for _, reading := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reads=%v", name, reading), func(t *testing.T) {
				rng := seed.Rand(t)
				for i := range seed.Times(4, 300) { // each with a server that ends with it
					t.Run(strconv.Itoa(i), func(t *testing.T) { oneHistory(t, source(t), rng, reading) })
				}
			})
		}
	}
}

func oneHistory(t *testing.T, src Changer, rng *rand.Rand, reading bool) {
	_, address := start(t, src)
	all := make([]*historian, 4)
	var wg sync.WaitGroup
	for i := range all {
		h := &historian{client: dial(t, "tcp", address), id: i, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), reading: reading}
		all[i] = h
		wg.Go(func() {
			for range 40 {
				if err := h.step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	var history []porcupine.Operation
	for _, h := range all {
		h.conn.Close()
		history = append(history, h.ops...)
	}
	if t.Failed() {
		return
	}
	if porcupine.CheckOperationsTimeout(historyModel(reading), history, time.Minute) == porcupine.Illegal {
		for _, op := range history {
			t.Logf("%d: %v → %v, %d to %d", op.ClientId, op.Input, op.Output, op.Call, op.Return)
		}
		t.Error("no order of these operations has these results")
	}
}
