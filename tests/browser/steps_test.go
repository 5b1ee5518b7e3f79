package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pando-index/pando"
)

// record records an operation in the steps view.
func (p *page) record(op string, count int) {
	p.Helper()
	p.do(chromedp.Click("#tab-steps"))
	p.do(chromedp.Evaluate(fmt.Sprintf("op.value = %q; op.onchange(); document.getElementById('count').value = %d; delete document.getElementById('steps-panel').dataset.recorded", op, count), nil))
	p.do(chromedp.Click("#record-go"))
	p.until(fmt.Sprintf("document.getElementById('steps-panel').dataset.recorded == %q", op))
}

const (
	step = "document.querySelector('#stages section').dataset.step"
	says = "document.querySelector('.says').textContent"
)

// Inserts are stepped through: to the split, its side link, and the parent that
// learns of it; back again; and played.
func TestSplit(t *testing.T) {
	p := open(t, frozen(t, 200_000), "inserts")
	p.record("insert", 60)
	if p.eval(step) != "start" {
		t.Errorf("the first step is %s", p.eval(step))
	}
	p.do(chromedp.Focus("#next-split"))
	p.press("n")
	p.until(step + " == 'split'")
	p.shot("split")
	p.press(kb.ArrowLeft)
	p.until(step + " == 'fill'")
	p.shot("fill")
	p.press(kb.ArrowRight)
	p.press(kb.ArrowRight)
	p.until(step + " == 'parent'")
	p.press(kb.End)
	p.until(step + " == 'finished'")
	p.press(kb.Home)
	p.until(step + " == 'start'")
	p.do(chromedp.SetValue("#speed", "80", chromedp.ByQuery), chromedp.Click("#play"))
	p.until("Number(document.getElementById('steps-panel').dataset.step) > 3")
	p.do(chromedp.Click("#play"))
	at := p.eval("document.getElementById('steps-panel').dataset.step")
	p.do(chromedp.Sleep(300 * time.Millisecond))
	if now := p.eval("document.getElementById('steps-panel').dataset.step"); now != at {
		t.Errorf("it goes on after pause: %s, then %s", at, now)
	}
	p.record("batch", 3000)
	p.do(chromedp.Click("#next-split"))
	p.until(step + " == 'split'")
	p.shot("batch")
	p.record("search", 0)
	p.do(chromedp.Click("#last"))
	p.until(says + ".startsWith('Found')")
	p.do(chromedp.Click("#back"))
	p.shot("search-steps")
}

// Two seeds are shown side by side, and differ.
func TestSeedsSideBySide(t *testing.T) {
	p := open(t, frozen(t, 50_000), "kernels")
	p.record("kernel", 64)
	p.until("document.querySelectorAll('#stages section').length == 2")
	if a, b := p.eval("document.querySelector('[data-seed=\"1\"]').textContent"), p.eval("document.querySelector('[data-seed=\"2\"]').textContent"); a == b {
		t.Error("both seeds say the same")
	}
	p.do(chromedp.Evaluate("position.value = 60; position.oninput()", nil))
	p.until(step + " == 'node'")
	p.shot("kernel")
	p.do(chromedp.Click("#forth"))
	p.until("document.getElementById('steps-panel').dataset.step == '61'")
}

// Latches are shown under two seeds: who holds a node, what no parent has yet, and
// back again; and with holders that are stopped.
func TestLatches(t *testing.T) {
	p := open(t, frozen(t, 50_000), "latches")
	p.record("latched", 64)
	p.until("document.querySelectorAll('#stages section').length == 2")
	if p.eval(step) != "start" || p.eval(held) != "0" || p.eval(untold) != "0" {
		t.Errorf("the first step is %s, with %s nodes held and %s untold", p.eval(step), p.eval(held), p.eval(untold))
	}
	p.do(chromedp.Focus("#next-split"))
	p.press("n")
	p.until("[...document.querySelectorAll('#stages section')].some(s => s.dataset.step == 'split' && s.dataset.held == '2' && s.dataset.untold == '1')")
	p.shot("latches")
	for range 4 { // to the first that the left one shows
		if p.eval(step) != "split" {
			p.press("n")
		}
	}
	p.until(step + " == 'split' && " + says + ".includes('No parent has that yet')")
	p.press(kb.ArrowLeft)
	p.until(step + " != 'split'")
	p.press(kb.End)
	p.until(step + " == 'finished' && " + held + " == '0' && " + untold + " == '0'")
	p.do(chromedp.SetValue("#schedule", "frozen", chromedp.ByQuery))
	p.record("latched", 128)
	p.do(chromedp.Evaluate("position.value = 300; position.oninput()", nil))
	p.until("document.querySelector('#stages p').textContent.includes('often stopped')")
	p.shot("latches-frozen")
	p.do(chromedp.SetValue("#seed-b", "", chromedp.ByQuery))
	p.record("latched", 256)
	p.until("document.querySelectorAll('#stages section').length == 1")
	p.do(chromedp.Click("#next-split"))
	p.shot("latches-one")
}

const (
	held   = "document.querySelector('#stages section').dataset.held"
	untold = "document.querySelector('#stages section').dataset.untold"
)

// Changes of a radix tree are stepped through: nodes that grow, paths that are split,
// nodes that collapse, copies for a snapshot, a batch.
func TestRadixSteps(t *testing.T) {
	tree, err := pando.NewTree[string, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	for i := range uint64(5000) {
		if err := tree.Set(fmt.Sprintf("https://www.example.org/%c/%05d", 'a'+i%7, i*7919%100_000), i); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, tree, "addresses")
	for _, c := range []struct{ op, first, step string }{
		{"insert", "way", "grow"}, {"delete", "way", "collapse"}, {"beside", "snapshot", "copy"}, {"batch", "promise", "branch"},
	} {
		p.record(c.op, 120)
		if p.eval(step) != "start" {
			t.Errorf("%s begins with %s", c.op, p.eval(step))
		}
		p.do(chromedp.Focus("#next-split"))
		p.press(kb.ArrowRight)
		p.until(step + " == '" + c.first + "'")
		p.shot("radix-" + c.op + "-first")
		for range 40 {
			if p.eval(step) != c.step {
				p.press("n")
			}
		}
		p.until(step + " == '" + c.step + "'")
		p.shot("radix-" + c.op)
		p.press(kb.End)
		p.until(step + " == 'finished'")
	}
	numbers, err := pando.NewTree[uint32, uint64](pando.Layout(pando.Radix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { numbers.Close() })
	for i := range uint32(3000) {
		if err := numbers.Set(i*2654435761, 1); err != nil {
			t.Fatal(err)
		}
	}
	p = open(t, numbers, "numbers")
	p.record("insert", 100)
	p.press("n")
	p.until("['grow', 'branch'].includes(" + step + ")")
	p.shot("radix-numbers")
}
