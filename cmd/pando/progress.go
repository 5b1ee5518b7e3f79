package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a long command is: a bar on a terminal, otherwise a
// line every few seconds, and nothing at all if w is nil.
type progress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	what  string
	rows  bool // done and total are rows, not bytes
	start time.Time
	told  time.Time
	pause time.Duration // at least, between two drawings of a bar
}

// tellEvery is the time between two plain lines: the log of a one-hour build
// should fit on a few pages.
const tellEvery = 5 * time.Second

// newProgress starts showing progress. what is a verb such as "reading".
func newProgress(w io.Writer, quiet bool, what string) *progress {
	now := time.Now()
	p := &progress{w: w, what: what, start: now, told: now, pause: 100 * time.Millisecond}
	if quiet {
		p.w = nil
	}
	return p
}

// update shows that done of total bytes have been read, or rows been made, and the
// number of rows, unless that is negative. total is 0 if it is not known.
func (p *progress) update(done, total int64, rows int) {
	if p.w == nil {
		return
	}
	if isTerminal(p.w) {
		p.drawBar(done, total, rows)
		return
	}
	if now := time.Now(); now.Sub(p.told) >= tellEvery {
		p.told = now
		fmt.Fprintln(p.w, p.line(done, total, rows, now.Sub(p.start)))
	}
}

// line returns a plain progress line.
func (p *progress) line(done, total int64, rows int, took time.Duration) string {
	text := p.what
	if rows >= 0 {
		text = fmt.Sprintf("%s: %s rows, %s a second", p.what, thousands(int64(rows)), thousands(int64(float64(rows)/took.Seconds())))
	}
	if total > 0 && done > 0 && done <= total {
		left := time.Duration(float64(took) * float64(total-done) / float64(done))
		text += fmt.Sprintf(", %d %%, %v left", 100*done/total, left.Round(time.Second))
	}
	return text
}

// drawBar draws a bar with the rows as text: of bytes where rows are read, because
// their total number is not known, and else of rows.
func (p *progress) drawBar(done, total int64, rows int) {
	if p.bar == nil {
		most := total
		if total == 0 {
			most = -1 // a spinner
		}
		p.bar = progressbar.NewOptions64(most,
			progressbar.OptionSetWriter(p.w), p.unit(), progressbar.OptionSetWidth(24),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(p.pause),
			progressbar.OptionClearOnFinish(), progressbar.OptionUseIECUnits(true))
	}
	text := p.what
	if rows >= 0 {
		text += fmt.Sprintf(", %s rows", thousands(int64(rows)))
	}
	p.bar.Describe(text)
	_ = p.bar.Set64(done)
}

// unit returns the bar's option for its speed.
func (p *progress) unit() progressbar.Option {
	if !p.rows {
		return progressbar.OptionShowBytes(true)
	}
	return func(b *progressbar.ProgressBar) {
		progressbar.OptionShowIts()(b)
		progressbar.OptionSetItsString("rows")(b)
	}
}

// end removes the bar, so that later output starts on a line of its own.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// thousands formats a number with commas between groups of digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// many returns a number of things: 1 entry, 2,000 entries.
func many(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + more
}
