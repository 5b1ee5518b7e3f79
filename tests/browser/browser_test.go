// Package browser_test tries package pandoview in a real browser: Debian's
// chromium, headless. Where there is none the tests are skipped.
package browser_test

import (
	"context"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/tool"
	"github.com/pando-index/pando/pandoview"
)

// browser returns the path of a browser: what PANDO_BROWSER names, or one that is there.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("PANDO_BROWSER"), "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return tool.Path(t, "chromium", "chromium")
}

// started returns the browser that all tests share; each has a tab of it.
func started(path string) context.Context {
	shared.Do(func() {
		opts := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1400, 900))
		alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
		// What this version of chromedp does not know of is not worth a line.
		ctx, end := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
		shared.ctx, shared.stop = ctx, func() { end(); stop() }
		if err := chromedp.Run(ctx); err != nil {
			panic(err)
		}
	})
	return shared.ctx
}

var shared struct {
	sync.Once
	ctx  context.Context
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// page is a page in a browser. Nothing that it writes to the console is left
// unseen.
type page struct {
	*testing.T
	ctx context.Context
}

// open shows an index in a browser.
func open(t *testing.T, ix pandoview.Index, name string) *page {
	t.Helper()
	path := browser(t)
	server := httptest.NewServer(pandoview.Handler(ix, pandoview.Name(name)))
	t.Cleanup(server.Close)
	ctx, stop := chromedp.NewContext(started(path)) // a tab of its own
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	p := &page{t, ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page fails: %v", e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				t.Errorf("the page complains: %s", e.Args[0].Value)
			}
		}
	})
	p.do(chromedp.EmulateViewport(1400, 900), chromedp.Navigate(server.URL), chromedp.WaitVisible("#tree[data-drawn]"))
	return p
}

func (p *page) do(actions ...chromedp.Action) {
	p.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval returns what an expression of the page is, as text.
func (p *page) eval(js string) (out string) {
	p.Helper()
	p.do(chromedp.Evaluate("String("+js+")", &out))
	return out
}

// until waits for an expression of the page to be true.
func (p *page) until(js string) {
	p.Helper()
	if err := chromedp.Run(p.ctx, chromedp.Poll("("+js+") ? 1 : 0", nil, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		p.Fatalf("waiting for %s: %v; the page says %q", js, err, p.eval("document.getElementById('trouble')?.textContent"))
	}
}

// press sends keys to the page.
func (p *page) press(keys string) {
	p.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// fill types into a field.
func (p *page) fill(sel, text string) {
	p.Helper()
	p.do(chromedp.SetValue(sel, text, chromedp.ByQuery))
}

// shot keeps a picture of the page where PANDO_SHOTS says, in both schemes.
func (p *page) shot(name string) {
	p.Helper()
	dir := os.Getenv("PANDO_SHOTS")
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		var picture []byte
		p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.Sleep(150*time.Millisecond), chromedp.CaptureScreenshot(&picture))
		if err := os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), picture, 0o644); err != nil {
			p.Fatal(err)
		}
	}
	p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}))
}

// frozen returns an index of n numbers, each so far from the next.
func frozen(t *testing.T, n int, opts ...pando.Option) *pando.Frozen[uint64, uint64] {
	t.Helper()
	keys, vals := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i)*10, uint64(i)
	}
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

const span = "(Number(tree.dataset.hi) - Number(tree.dataset.lo))"

// The page draws an index, zooms by mouse, buttons and keys, and finds a key.
func TestTree(t *testing.T) {
	p := open(t, frozen(t, 1_000_000), "a million")
	if got := p.eval("document.getElementById('summary').textContent"); !strings.Contains(got, "1,000,000 entries, uint64 → uint64") {
		t.Errorf("the page says %q", got)
	}
	if p.eval("tree.dataset.hi") != "250000" {
		t.Errorf("it shows leaves up to %s", p.eval("tree.dataset.hi"))
	}
	p.shot("frozen")
	p.do(chromedp.Click("#zoom-in"))
	p.until(span + " == 125000")
	p.do(chromedp.Focus("#tree"))
	p.press("+++")
	p.until(span + " < 16000")
	p.press("-")
	p.until(span + " > 30000")
	p.press("0")
	p.until(span + " == 250000")
	p.do(chromedp.Evaluate(`tree.dispatchEvent(new WheelEvent("wheel", {deltaY: -2000, clientX: 700, clientY: 300, bubbles: true, cancelable: true}))`, nil))
	p.until(span + " < 100000")
	p.search("5000000")
	p.until("document.getElementById('result').textContent.includes('500000')")
	if got := p.eval("document.getElementById('result').textContent"); !strings.Contains(got, "foundyes") {
		t.Errorf("the search says %q", got)
	}
	p.until("tree.dataset.picked && document.getElementById('details').textContent.includes('5000000')")
	p.until(span + " < 1000")
	p.shot("search")
	p.search("5000001")
	p.until("document.getElementById('result').textContent.includes('foundno')")
	p.search("nonsense")
	p.until("document.getElementById('trouble').textContent.includes('no key of type uint64')")
}

// What is under the mouse is named, the wheel zooms to it, and a double click goes to
// a node; what is at the mouse stays there.
func TestHoverAndZoom(t *testing.T) {
	p := open(t, frozen(t, 1_000_000), "a million")
	at := func(part string) float64 {
		x, err := strconv.ParseFloat(p.eval(part), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	box := "tree.getBoundingClientRect()"
	x, y := at(box+".left + "+box+".width * 0.25"), at(box+".bottom - 40")
	const tip = "document.getElementById('hover')"
	p.do(input.DispatchMouseEvent(input.MouseMoved, x, y))
	p.until("!" + tip + ".hidden && " + tip + ".textContent.includes('in a group of')")
	p.shot("hover")
	before := at("Number(tree.dataset.lo) + " + span + " * 0.25")
	for range 12 {
		p.do(input.DispatchMouseEvent(input.MouseWheel, x, y).WithDeltaX(0).WithDeltaY(-240))
	}
	p.until(span + " < 200")
	if after := at("Number(tree.dataset.lo) + " + span + " * 0.25"); math.Abs(after-before) > 5000 {
		t.Errorf("leaf %.0f was under the mouse, and now it is %.0f", before, after)
	}
	p.do(input.DispatchMouseEvent(input.MouseMoved, x+1, y))
	p.until(tip + ".textContent.includes('leaves · node ')")
	p.do(input.DispatchMouseEvent(input.MouseMoved, 5, 5))
	p.until(tip + ".hidden")
	was := p.eval(span)
	p.do(chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
	p.until(span + " < " + was + " && tree.dataset.picked")
	lo := at("tree.dataset.lo")
	p.do(input.DispatchMouseEvent(input.MousePressed, x, y).WithButton(input.Left).WithClickCount(1),
		input.DispatchMouseEvent(input.MouseMoved, x-300, y).WithButton(input.Left),
		input.DispatchMouseEvent(input.MouseReleased, x-300, y).WithButton(input.Left).WithClickCount(1))
	p.until(fmt.Sprintf("Number(tree.dataset.lo) >= %v && "+tip+".hidden", lo))
}

// A radix tree shows its types of nodes, the way of a key, and what others do.
func TestRadixTree(t *testing.T) {
	tree, err := pando.NewTree[string, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	for i := range uint64(30_000) {
		if err := tree.Set(fmt.Sprintf("https://www.example.org/%c/%05d", 'a'+i%7, i*7919%100_000), i); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, tree, "addresses")
	p.until("document.querySelectorAll('#types tr').length > 2")
	p.shot("radix")
	p.search("https://www.example.org/d/07919")
	p.until("document.getElementById('result').textContent.includes('found')")
	p.search(fmt.Sprintf("https://www.example.org/%c/%05d", 'a'+777%7, 777*7919%100_000))
	p.until("document.getElementById('result').textContent.includes('foundyes')")
	p.shot("radix-search")
	p.press(kb.Escape)
	p.do(chromedp.Click("#tab-live"))
	p.until("document.querySelectorAll('.card').length == 5")
	p.shot("radix-live")
}

// The report's plots say what is under the mouse, and zoom by dragging. Which of them
// there are depends on what was measured.
func TestReport(t *testing.T) {
	path, err := filepath.Abs("../../docs/report.html")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no docs/report.html; make report")
	}
	ctx, stop := chromedp.NewContext(started(browser(t)))
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(stop)
	p := &page{t, ctx}
	p.do(chromedp.EmulateViewport(1400, 900), chromedp.Navigate("file://"+path), chromedp.WaitReady("body"))
	p.shot("report")
	const plot, over = "document.querySelector('.plot[data-panel]')", "document.querySelector('.u-over')"
	if p.eval(plot+" === null") == "true" {
		t.Skip("the report has no plot of lines")
	}
	p.do(chromedp.Evaluate(plot+".scrollIntoView({block: 'center'})", nil)) // it is drawn when it comes near
	p.until(over + " !== null")
	p.do(chromedp.Evaluate(plot+".scrollIntoView({block: 'center'})", nil), chromedp.Sleep(300*time.Millisecond))
	at := func(part string) float64 {
		x, _ := strconv.ParseFloat(p.eval(over+".getBoundingClientRect()."+part), 64)
		return x
	}
	x, y, w := at("left"), at("top")+at("height")/2, at("width")
	p.do(input.DispatchMouseEvent(input.MouseMoved, x+w*0.9, y))
	const values = "[...document.querySelector('.u-legend').querySelectorAll('.u-value')].map(e => e.textContent).join(' ')"
	p.until("/[0-9]/.test(" + values + ")")
	const ticks = "document.querySelector('.uplot').querySelector('.u-select').style.width"
	p.do(input.DispatchMouseEvent(input.MousePressed, x+w*0.2, y).WithButton(input.Left).WithButtons(1).WithClickCount(1),
		input.DispatchMouseEvent(input.MouseMoved, x+w*0.4, y).WithButton(input.Left).WithButtons(1),
		input.DispatchMouseEvent(input.MouseMoved, x+w*0.6, y).WithButton(input.Left).WithButtons(1))
	p.until("parseFloat(" + ticks + ") > 0")
	p.do(input.DispatchMouseEvent(input.MouseReleased, x+w*0.6, y).WithButton(input.Left).WithClickCount(1), chromedp.Sleep(200*time.Millisecond))
	p.shot("report-zoom")
}

// The README's picture: a tree that has grown, and the way of a search. PANDO_PICTURE
// says where it goes.
func TestPicture(t *testing.T) {
	path := os.Getenv("PANDO_PICTURE")
	if path == "" {
		t.Skip("PANDO_PICTURE says where the picture is to go; make pictures")
	}
	tree, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	for i := range uint64(60_000) {
		if err := tree.Set(i*2654435761%1_000_003, i); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, tree, "orders")
	p.do(chromedp.EmulateViewport(1200, 640))
	p.search(fmt.Sprint(30_000 * 2654435761 % 1_000_003))
	p.until("document.getElementById('result').textContent.includes('foundyes')")
	p.do(chromedp.Focus("#tree"))
	p.press("---")
	var picture []byte
	p.do(chromedp.Sleep(500*time.Millisecond), chromedp.CaptureScreenshot(&picture))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// search types a key into the search field.
func (p *page) search(key string) {
	p.Helper()
	p.do(chromedp.Focus("#tree"))
	p.press("/")
	p.until("document.activeElement.id == 'key'")
	p.fill("#key", key)
	p.press(kb.Enter)
}

// All of it can be reached by keys: nodes, levels, tabs, help.
func TestKeyboard(t *testing.T) {
	p := open(t, frozen(t, 100_000), "keys")
	p.do(chromedp.Focus("#tree"))
	p.press(kb.ArrowDown)
	p.until("tree.dataset.picked == '0 0'")
	p.press(kb.ArrowDown)
	p.until("tree.dataset.picked == '1 0'")
	p.press(kb.ArrowRight)
	p.until("tree.dataset.picked == '1 1'")
	p.press(kb.ArrowUp)
	p.until("tree.dataset.picked == '0 0'")
	p.press(kb.Enter)
	p.press("?")
	p.until("document.getElementById('keys').open")
	p.press(kb.Escape)
	p.until("!document.getElementById('keys').open")
	p.press("s")
	p.until("!document.getElementById('steps-panel').hidden")
	p.press("t")
	p.until("!document.getElementById('tree-panel').hidden")
	if p.eval("document.getElementById('tab-live').hidden") != "true" {
		t.Error("an index that never changes has a live view")
	}
}

// Strings show the bits that a page compares.
func TestStrings(t *testing.T) {
	var keys []string
	for i := range 20_000 {
		keys = append(keys, fmt.Sprintf("https://www.example.org/%c/%06d", 'a'+i%7, i))
	}
	ix, err := pando.Freeze(keys, make([]uint32, len(keys)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	p := open(t, ix, "addresses")
	p.search(keys[777])
	p.until("document.querySelectorAll('#details .bits span').length > 0")
	p.until("document.getElementById('result').textContent.includes('foundyes')")
	p.until("document.querySelector('#details .keys .hit')?.textContent.endsWith(' → 0')")
	p.until("document.querySelector('#legend .down')?.parentElement.textContent.includes('below')")
	p.shot("strings")
}

// A tree that others change shows what they do.
func TestLive(t *testing.T) {
	tree, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	keys := make([]uint64, 300_000)
	for i := range keys {
		keys[i] = uint64(i) * 2654435761 % 1_000_000_007
	}
	if err := tree.SetBatch(keys, keys); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := uint64(0); ctx.Err() == nil; i++ {
			if err := tree.Set(i*7919%1_000_000_007, i); err != nil {
				t.Error(err)
				return
			}
			if i%200 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	p := open(t, tree, "live")
	p.shot("tree")
	p.search("999")
	p.until("document.getElementById('result').textContent.includes('nodes read')")
	p.press(kb.Escape)
	p.do(chromedp.Click("#tab-live"))
	p.until("document.querySelectorAll('.card').length == 8 && document.querySelector('.card strong').textContent != '…' && document.querySelector('.card strong').textContent != '0'")
	p.do(chromedp.Click("#watch"))
	p.until("document.querySelectorAll('#watched li').length > 1")
	if os.Getenv("PANDO_SHOTS") != "" {
		p.do(chromedp.Sleep(4 * time.Second)) // so that there are lines to see
	}
	p.shot("live")
}

// A file is on the screen soon, whatever its size, and zooming through it is smooth.
// PANDO_VIEW_ENTRIES=64M asks for so many, and for bounds on the times.
func TestLargeFile(t *testing.T) {
	browser(t)
	n, bounded := 1_000_000, false
	if text := os.Getenv("PANDO_VIEW_ENTRIES"); text != "" {
		m, err := strconv.Atoi(strings.Replace(text, "M", "000000", 1))
		if err != nil {
			t.Fatal(err)
		}
		n, bounded = m, true
	}
	path := filepath.Join(t.TempDir(), "large.pando")
	func() {
		ix := frozen(t, n)
		if err := ix.Save(path); err != nil {
			t.Fatal(err)
		}
		ix.Close()
	}()
	started(browser(t))
	start := time.Now()
	ix, err := pando.Open[uint64, uint64](path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	p := open(t, ix, filepath.Base(path))
	took := time.Since(start)
	drawn, _ := strconv.ParseFloat(p.eval("performance.getEntriesByName('pando-drawn')[0].startTime"), 64)
	t.Logf("%d entries: %v from Open to the screen, a new tab included; %.0f ms of it in the page", n, took.Round(time.Millisecond), drawn)
	if bounded && took > 2*time.Second {
		t.Errorf("%v until %d entries are on the screen", took, n)
	}
	var frames []float64
	p.do(chromedp.Evaluate(zooming, &frames, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	slices.Sort(frames)
	t.Logf("frames while zooming: %.1f ms in the middle, %.1f at the 95th percentile, %.1f at most", frames[len(frames)/2], frames[len(frames)*95/100], frames[len(frames)-1])
	if bounded && frames[len(frames)/2] > 34 {
		t.Errorf("half of the frames take %.1f ms and more", frames[len(frames)/2])
	}
	p.until(span + " < 100")
	p.shot("large")
}

// zooming zooms in, a bit each frame, and returns how long each took in
// milliseconds.
const zooming = `new Promise(done => {
	const frames = [];
	let last = performance.now();
	const next = now => {
		frames.push(now - last);
		last = now;
		if (frames.length == 150) return done(frames);
		const r = tree.getBoundingClientRect();
		tree.dispatchEvent(new WheelEvent("wheel", {deltaY: -30, clientX: r.left + r.width * 0.37, clientY: r.top + 50, bubbles: true, cancelable: true}));
		requestAnimationFrame(next);
	};
	requestAnimationFrame(next);
})`
