package pandoview_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoview"
)

// A radix tree shows its inner nodes by level and by type, and the way of a key,
// whether its keys are strings or numbers; its changes are shown on a small tree.
func TestRadix(t *testing.T) {
	texts, err := pando.NewTree[string, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer texts.Close()
	digits, err := pando.NewTree[uint32, uint64](pando.Layout(pando.Radix))
	if err != nil {
		t.Fatal(err)
	}
	defer digits.Close()
	const n = 5000
	for i := range uint64(n) {
		if err := texts.Set(fmt.Sprintf("https://example.org/%04x", i*7919%65536), i); err != nil {
			t.Fatal(err)
		}
		if err := digits.Set(uint32(i*2654435761), i); err != nil {
			t.Fatal(err)
		}
	}
	moment := digits.Snapshot()
	defer moment.Close()
	for _, c := range []struct {
		name, key string
		ix        pandoview.Index
		live      int
	}{
		{"strings", fmt.Sprintf("https://example.org/%04x", 777*7919%65536), texts, http.StatusOK},
		{"numbers", fmt.Sprint(uint32(777 * 2654435761 % (1 << 32))), digits, http.StatusOK},
		{"snapshot", fmt.Sprint(uint32(777 * 2654435761 % (1 << 32))), moment, http.StatusNotImplemented},
	} {
		h := pandoview.Handler(c.ix)
		d := get[struct {
			Entries         int
			Kernel, Changes bool
			Radix, Latched  bool
			Levels          []struct{ Nodes int }
			Types           []struct {
				Name              string
				Nodes, Used, Room int
			}
			Memory []struct{ Bytes int64 }
		}](t, h, "/api/index")
		if d.Entries != n || d.Kernel || d.Changes || !d.Radix || d.Latched != (c.name != "strings") || len(d.Types) < 2 || len(d.Levels) < 3 || len(d.Memory) < 2 || d.Levels[len(d.Levels)-1].Nodes != n {
			t.Errorf("%s: %+v", c.name, d)
		}
		f := get[struct {
			Found bool
			Value string
			Way   []struct {
				Level int
				Name  string
				Keys  []string
				Slot  int
				Here  bool
			}
		}](t, h, "/api/search?key="+c.key)
		last := f.Way[len(f.Way)-1]
		if !f.Found || f.Value != "777" || len(f.Way) < 2 || !strings.HasPrefix(f.Way[0].Name, "node ") || !last.Here || last.Keys[0] != c.key {
			t.Errorf("%s: %+v", c.name, f)
		}
		v := get[struct {
			Levels []struct{ Groups [][6]int }
		}](t, h, "/api/view?lo=10&hi=20")
		if len(v.Levels) != len(d.Levels) || len(v.Levels[len(d.Levels)-1].Groups) != 10 {
			t.Errorf("%s: %+v", c.name, v)
		}
		if status, _ := ask(t, h, "/api/live", nil); status != c.live {
			t.Errorf("%s: live answers %d", c.name, status)
		}
		for op, says := range map[string]string{"kernel": "no kernel searches", "watch": ""} {
			if status, body := ask(t, h, "/api/steps?op="+op, nil); status != http.StatusNotImplemented || !strings.Contains(string(body), says) {
				t.Errorf("%s, %s: %d %s", c.name, op, status, body)
			}
		}
		for op, want := range map[string][]string{
			"insert": {"way", "link", "grow"}, "delete": {"way", "unlink", "collapse"}, "beside": {"snapshot", "copy", "leaf"}, "batch": {"promise", "together", "link"},
		} {
			radixEvents(t, h, fmt.Sprintf("/api/steps?op=%s&n=200&key=%s", op, c.key), want)
		}
		for _, bad := range []string{"op=insert&n=301", "op=delete&n=0", "op=batch&seed=x"} {
			if status, body := ask(t, h, "/api/steps?"+bad, nil); status != http.StatusBadRequest {
				t.Errorf("%s, %s: %d %s", c.name, bad, status, body)
			}
		}
	}
}

// radixEvents asks for a recording and looks for steps in it.
func radixEvents(t *testing.T, h http.Handler, target string, want []string) {
	t.Helper()
	rec := get[struct {
		Events []struct {
			Step, Key, Byte string
			At              []uint32
			Nodes           []struct {
				ID     uint32
				Type   string
				Depth  int
				Prefix string
				Links  []struct {
					Byte string
					Leaf bool
				}
			}
		}
	}](t, h, target)
	met, known := map[string]bool{}, map[uint32]bool{}
	for _, e := range rec.Events {
		met[e.Step] = true
		for _, n := range e.Nodes {
			known[n.ID] = true
			if !strings.HasPrefix(n.Type, "node ") || len(n.Links) < 2 {
				t.Errorf("%s: %+v", target, n)
			}
		}
		for _, id := range e.At {
			if !known[id] {
				t.Errorf("%s: %s is about a node that was never seen", target, e.Step)
			}
		}
		if e.Step == "way" && e.Key == "" {
			t.Errorf("%s: the way of no key", target)
		}
	}
	for _, step := range append(want, "start", "finished") {
		if !met[step] {
			t.Errorf("%s: no step %q among %v", target, step, met)
		}
	}
}
