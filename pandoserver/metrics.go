package pandoserver

import (
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/pando-index/pando/pandoserver/internal/metrics"
)

// WriteMetrics writes what the server has done and what it takes, as Prometheus reads it. Package pandohttp answers
// /metrics with it.
func (s *Server) WriteMetrics(out io.Writer) error {
	w := &metrics.Writer{W: out}
	s.writeCommands(w)
	s.writeConnections(w)
	s.writeIndexes(w)
	writeProcess(w, s.usage(), s.began)
	return w.Err
}

func (s *Server) writeCommands(w *metrics.Writer) {
	t := &s.stats
	w.Histogram("pando_command_duration_seconds", "Time that commands took. Those that were done together took as long as all of them.")
	s.eachTally(func(name string, t *tally) { w.Of(&t.times, 1e-6, 1e-9, "command", name) })
	w.Counter("pando_command_errors_total", "Calls of commands that were answered with an error.")
	s.eachTally(func(name string, t *tally) { w.Sample(float64(t.failed.Load()), "command", name) })
	w.Counter("pando_commands_refused_total", "Commands that were not done: wrong arguments, or no right to them.")
	s.eachTally(func(name string, t *tally) { w.Sample(float64(t.rejected.Load()), "command", name) })
	w.Counter("pando_commands_unknown_total", "Commands that are none.")
	w.Sample(float64(t.unknown.Load()))
	w.Histogram("pando_batch_commands", "Commands that were done together.")
	w.Of(&t.runs, 1, 1)
	w.Histogram("pando_batch_keys", "Operations on keys that were one batch of an index.")
	w.Of(&t.keys, 1, 1)
	w.Counter("pando_lookups_total", "Keys that were looked up.")
	w.Sample(float64(t.hits.Load()), "found", "true")
	w.Sample(float64(t.misses.Load()), "found", "false")
}

func (s *Server) writeConnections(w *metrics.Writer) {
	t := &s.stats
	s.mu.Lock()
	connected, unknown := len(s.sessions), len(s.unknown)
	s.mu.Unlock()
	counter := func(name, help string, n int64) {
		w.Counter(name, help)
		w.Sample(float64(n))
	}
	w.Gauge("pando_connections", "Connections.")
	w.Sample(float64(connected))
	w.Gauge("pando_connections_unknown", "Connections whose client has yet to say who it is.")
	w.Sample(float64(unknown))
	counter("pando_connections_total", "Connections that were taken.", t.connections.Load())
	counter("pando_connections_refused_total", "Connections that were too many.", t.refused.Load())
	counter("pando_connections_dropped_total", "Connections that were closed because their client was too slow, or took too much.", t.dropped.Load())
	counter("pando_logins_denied_total", "Names and passwords that were wrong.", t.denied.Load())
	counter("pando_received_bytes_total", "Bytes of commands.", t.received.Load())
	counter("pando_sent_bytes_total", "Bytes of replies.", t.sent.Load())
}

func (s *Server) writeIndexes(w *metrics.Writer) {
	each := func(f func(d *served, index string)) {
		for _, d := range s.dbs {
			f(d, d.name)
		}
	}
	w.Gauge("pando_entries", "Entries of an index.")
	each(func(d *served, index string) {
		if n, ok := d.length(soonEnough, s.heard); ok { // else it cannot be asked now
			w.Sample(float64(n), "index", index)
		}
	})
	w.Gauge("pando_index_bytes", "Memory of an index: on this machine, or on a device.")
	each(func(d *served, index string) {
		if m, ok := d.src.(Measured); ok {
			t := m.Stats()
			w.Sample(float64(t.TotalBytes), "index", index, "where", "host")
			w.Sample(float64(t.DeviceBytes), "index", index, "where", "device")
		}
	})
	w.Gauge("pando_device", "1 for the device on which an index does its batches, and why there.")
	each(func(d *served, index string) {
		if m, ok := d.src.(Measured); ok {
			t := m.Stats()
			w.Sample(1, "index", index, "device", t.Device.String(), "reason", t.Reason, "instructions", t.Path)
		}
	})
	logged := func(begin func(name, help string), name, help string, value func(d *served) float64) {
		begin(name, help)
		each(func(d *served, index string) {
			if _, ok := d.src.(Logged); ok {
				w.Sample(value(d), "index", index)
			}
		})
	}
	logged(w.Gauge, "pando_log_bytes", "Bytes of the log behind the last checkpoint.", func(d *served) float64 {
		l, _ := logOf(d.src)
		return float64(l.Bytes)
	})
	logged(w.Counter, "pando_log_operations_total", "Operations that were ever logged.", func(d *served) float64 {
		l, _ := logOf(d.src)
		return float64(l.Next - 1)
	})
	logged(w.Gauge, "pando_checkpoint_bytes", "Bytes of the last checkpoint.", func(d *served) float64 {
		l, _ := logOf(d.src)
		return float64(l.Checkpoint)
	})
	logged(w.Counter, "pando_checkpoints_total", "Checkpoints that were written.", func(d *served) float64 {
		l, _ := logOf(d.src)
		return float64(l.Checkpoints)
	})
	logged(w.Gauge, "pando_checkpoint_failed", "1 if the last checkpoint has failed.", func(d *served) float64 {
		l, _ := logOf(d.src)
		return float64(digit(l.Failed != nil))
	})
	logged(w.Gauge, "pando_read_only", "1 if a store takes no changes any more.", func(d *served) float64 {
		l, _ := logOf(d.src)
		return float64(digit(l.ReadOnly != nil))
	})
}

// writeProcess writes what is the process' own, by the names that all programs have for it.
func writeProcess(w *metrics.Writer, m usage, began time.Time) {
	w.Gauge("pando_build_info", "1 for the version that runs.")
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	w.Sample(1, "version", version, "goversion", runtime.Version(), "arch_bits", strconv.Itoa(strconv.IntSize))
	w.Gauge("process_start_time_seconds", "When the server began, in seconds since 1970.")
	w.Sample(float64(began.UnixMilli()) / 1e3)
	if user, system, ok := processorTime(); ok {
		w.Counter("process_cpu_seconds_total", "Time of processors.")
		w.Sample((user + system).Seconds())
	}
	if m.resident > 0 {
		w.Gauge("process_resident_memory_bytes", "Memory of the process.")
		w.Sample(float64(m.resident))
	}
	w.Gauge("go_memstats_sys_bytes", "Memory of Go's runtime, its heap among it, but for what it has given back.")
	w.Sample(float64(m.heap))
	w.Gauge("go_goroutines", "Goroutines.")
	w.Sample(float64(runtime.NumGoroutine()))
}
