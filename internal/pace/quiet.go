package pace

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// messages is how many different ones a quiet handler tells apart.
const messages = 100

// quiet hands on some of the records of each message.
type quiet struct {
	slog.Handler
	limit *Limiter
	left  *atomic.Int64
}

// Quiet returns a handler that hands on to h, of each message, burst records at once, and then one in each interval. A
// record says how many of all messages were left out before it.
func Quiet(h slog.Handler, burst int, interval time.Duration) slog.Handler {
	return quiet{h, New(burst, interval, messages), new(atomic.Int64)}
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if !q.limit.Take(r.Message, time.Now()) {
		q.left.Add(1)
		return nil
	}
	if n := q.left.Swap(0); n > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", n))
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	q.Handler = q.Handler.WithAttrs(attrs)
	return q
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	q.Handler = q.Handler.WithGroup(name)
	return q
}
