package pandoserver

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandostore"
)

// Measured is a Source that says what memory it takes, and where it runs: a tree, a store or a file.
type Measured interface{ Stats() pando.Stats }

// Logged is a Source that says how its log and its checkpoints are: a store.
type Logged interface{ Log() pandostore.Log }

// section is a part of INFO.
type section struct {
	name  string
	asked bool // it comes where it is asked for, or everything is
	text  func(s *Server, line func(name string, value any))
}

var sections = []section{
	{"Server", false, func(s *Server, line func(string, any)) {
		up := int(time.Since(s.began).Seconds())
		line("redis_version", spoken)
		line("redis_mode", "standalone")
		line("server_name", "pando")
		line("os", runtime.GOOS+" "+runtime.GOARCH)
		line("arch_bits", strconv.IntSize)
		line("go_version", runtime.Version())
		line("process_id", os.Getpid())
		line("run_id", s.runID)
		line("server_time_usec", time.Now().UnixMicro())
		line("uptime_in_seconds", up)
		line("uptime_in_days", up/86400)
		if program, err := os.Executable(); err == nil {
			line("executable", program)
		}
	}},
	{"Clients", false, func(s *Server, line func(string, any)) {
		s.mu.Lock()
		connected, unknown := len(s.sessions), len(s.unknown)
		s.mu.Unlock()
		line("connected_clients", connected)
		line("maxclients", s.cfg.clients)
		line("unknown_clients", unknown)
		line("blocked_clients", 0)
		line("tracking_clients", 0)
	}},
	{"Memory", false, func(s *Server, line func(string, any)) {
		m := s.usage()
		line("used_memory", m.heap+m.indexes)
		line("used_memory_human", human(m.heap+m.indexes))
		line("used_memory_heap", m.heap)
		line("used_memory_dataset", m.indexes)
		line("used_memory_device", m.device)
		if m.resident > 0 {
			line("used_memory_rss", m.resident)
			line("used_memory_rss_human", human(m.resident))
		}
		line("maxmemory", 0)
		line("maxmemory_policy", "noeviction")
		line("mem_allocator", "go")
	}},
	{"Persistence", false, func(s *Server, line func(string, any)) {
		line("loading", 0)
		line("rdb_bgsave_in_progress", digit(s.saving.Load()))
		line("rdb_last_save_time", s.lastSave.Load())
		line("rdb_last_bgsave_status", status(s.saveFailed.Load() == nil))
		enabled, written := false, true
		for _, d := range s.dbs {
			if l, ok := logOf(d.src); ok {
				enabled = true
				written = written && l.ReadOnly == nil
			}
		}
		line("aof_enabled", digit(enabled))
		line("aof_rewrite_in_progress", 0)
		line("aof_last_write_status", status(written))
		for _, d := range s.dbs {
			l, ok := logOf(d.src)
			if !ok {
				continue
			}
			name := fmt.Sprintf("log_db%d_", d.number)
			line(name+"bytes", l.Bytes)
			line(name+"operations", l.Next-1)
			line(name+"checkpoint_bytes", l.Checkpoint)
			line(name+"checkpoints", l.Checkpoints)
			line(name+"status", status(l.ReadOnly == nil && l.Failed == nil))
		}
	}},
	{"Stats", false, func(s *Server, line func(string, any)) {
		t := &s.stats
		line("total_connections_received", t.connections.Load())
		line("total_commands_processed", t.commands.Load())
		line("total_net_input_bytes", t.received.Load())
		line("total_net_output_bytes", t.sent.Load())
		line("rejected_connections", t.refused.Load())
		line("dropped_connections", t.dropped.Load())
		line("acl_access_denied_auth", t.denied.Load())
		line("expired_keys", 0)
		line("evicted_keys", 0)
		line("keyspace_hits", t.hits.Load())
		line("keyspace_misses", t.misses.Load())
		line("total_error_replies", t.errors.Load())
		line("unknown_commands", t.unknown.Load())
		line("total_reads_processed", t.reads.Load())
		line("batches", t.runs.Count())
		line("batched_commands", t.runs.Sum())
		line("batches_of_keys", t.keys.Count())
		line("batched_keys", t.keys.Sum())
	}},
	{"Replication", false, func(s *Server, line func(string, any)) {
		line("role", "master")
		line("connected_slaves", 0)
	}},
	{"CPU", false, func(s *Server, line func(string, any)) {
		if user, system, ok := processorTime(); ok {
			line("used_cpu_sys", fmt.Sprintf("%.6f", system.Seconds()))
			line("used_cpu_user", fmt.Sprintf("%.6f", user.Seconds()))
		}
	}},
	{"Commandstats", true, func(s *Server, line func(string, any)) {
		s.eachTally(func(name string, t *tally) {
			n := t.times.Count()
			micros := float64(t.times.Sum()) / 1e3
			line("cmdstat_"+name, fmt.Sprintf("calls=%d,usec=%.0f,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
				n, micros, micros/float64(max(1, n)), t.rejected.Load(), t.failed.Load()))
		})
	}},
	{"Latencystats", true, func(s *Server, line func(string, any)) {
		s.eachTally(func(name string, t *tally) {
			if t.times.Count() > 0 {
				micros := func(part float64) float64 { return min(t.times.Quantile(part), float64(math.MaxInt32)) }
				line("latency_percentiles_usec_"+name, fmt.Sprintf("p50=%.3f,p99=%.3f,p99.9=%.3f", micros(0.5), micros(0.99), micros(0.999)))
			}
		})
	}},
	{"Cluster", false, func(s *Server, line func(string, any)) { line("cluster_enabled", 0) }},
	{"Devices", false, func(s *Server, line func(string, any)) {
		for _, d := range s.dbs {
			if m, ok := d.src.(Measured); ok {
				t := m.Stats()
				line(fmt.Sprintf("db%d", d.number), fmt.Sprintf("device=%v,instructions=%s,layout=%v,bytes=%d,device_bytes=%d", t.Device, t.Path, t.Layout, t.TotalBytes, t.DeviceBytes))
			}
		}
	}},
	{"Keyspace", false, func(s *Server, line func(string, any)) {
		for _, d := range s.dbs {
			if n, ok := d.length(soonEnough, s.heard); ok && n > 0 {
				line(fmt.Sprintf("db%d", d.number), fmt.Sprintf("keys=%d,expires=0,avg_ttl=0,name=%s", n, d.name))
			}
		}
	}},
}

func digit(is bool) int {
	if is {
		return 1
	}
	return 0
}

func status(ok bool) string {
	if ok {
		return "ok"
	}
	return "err"
}

// human returns a number of bytes as redis writes it for people.
func human(bytes int64) string {
	x, unit := float64(bytes), 0
	for x >= 1024 && unit < len("BKMGT")-1 {
		x, unit = x/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%dB", bytes)
	}
	return fmt.Sprintf("%.2f%c", x, "BKMGT"[unit])
}

// logOf returns how the log of a source is, if it has one.
func logOf(src Source) (pandostore.Log, bool) {
	l, ok := src.(Logged)
	if !ok {
		return pandostore.Log{}, false
	}
	return l.Log(), true
}

// usage is what a server takes.
type usage struct {
	heap     int64 // Go's, and what Go keeps for itself
	indexes  int64 // off Go's heap, in indexes; what is there of a file may lie on the disk
	device   int64 // on GPUs
	resident int64 // of all, in memory; zero if the system does not tell
}

func (s *Server) usage() (m usage) {
	var rt runtime.MemStats
	runtime.ReadMemStats(&rt)
	m.heap = int64(rt.Sys - rt.HeapReleased)
	for _, d := range s.dbs {
		if d, ok := d.src.(Measured); ok {
			t := d.Stats()
			m.indexes += t.TotalBytes - t.HeapBytes
			m.device += t.DeviceBytes
		}
	}
	m.resident = resident()
	return m
}

// resident returns how many bytes of the process are in memory, as Linux tells it.
func resident() int64 {
	text, err := os.ReadFile(filepath.FromSlash("/proc/self/statm"))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		if pages, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	return 0
}

// eachTally calls f for each command that was called, or refused, in the order of their names.
func (s *Server) eachTally(f func(name string, t *tally)) {
	type named struct {
		name string
		t    *tally
	}
	var all []named
	for c, name := range fullNames {
		if t := &s.stats.tallies[c.id]; t.times.Count() > 0 || t.rejected.Load() > 0 {
			all = append(all, named{name, t})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for _, one := range all {
		f(one.name, one.t)
	}
}

func runInfo(c *call) {
	var b strings.Builder
	for _, s := range sections {
		wanted := len(c.args) == 1 && !s.asked
		for _, a := range c.args[1:] {
			wanted = wanted || is(a, s.name) || is(a, "default") && !s.asked || is(a, "all") || is(a, "everything")
		}
		if !wanted {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + s.name + "\r\n")
		s.text(c.srv, func(name string, value any) { fmt.Fprintf(&b, "%s:%v\r\n", name, value) })
	}
	c.w.Verbatim(b.String())
}
