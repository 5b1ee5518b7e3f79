package report

import (
	"fmt"
	"slices"
)

// Site is one machine with the newest it has measured of each experiment.
type Site struct {
	Machine     Machine
	GPU         string // empty: none took part
	Runs        []*Run
	Experiments []*Experiment
}

// Name returns what tells sites apart.
func (s *Site) Name() string {
	if s.GPU == "" {
		return s.Machine.String()
	}
	return s.Machine.String() + ", " + s.GPU
}

// find returns an experiment's rows; nil if the site has none.
func (s *Site) find(name string) *Experiment {
	for _, e := range s.Experiments {
		if e.Name == name && len(e.Rows) > 0 {
			return e
		}
	}
	return nil
}

// merge groups runs by machine. Runs come oldest first: the sets of an
// experiment in a later run replace the same sets of an earlier one. A set is
// one case, size and number of threads, with all that competed in it.
// Experiments that are not known are left out, and notes say so.
func merge(runs []*Run, known []Known) (sites []*Site, notes []string) {
	for _, run := range runs {
		site := siteOf(&sites, run)
		site.Runs = append(site.Runs, run)
		for _, e := range run.Experiments {
			if !slices.ContainsFunc(known, func(k Known) bool { return k.Name == e.Name }) {
				notes = append(notes, fmt.Sprintf("experiment %q of %s is not one that this bench knows: left out", e.Name, run.Started.Format("2006-01-02 15:04")))
				continue
			}
			site.add(e)
		}
	}
	return sites, notes
}

// siteOf returns the site of a run's machine and GPU, a new one if need be.
// Runs that used no GPU belong to any site of their machine.
func siteOf(sites *[]*Site, run *Run) *Site {
	gpu := ""
	for _, e := range run.Experiments {
		if name := e.GPUName(); name != "" {
			gpu = name
		}
	}
	for _, s := range *sites {
		same := s.Machine.CPU == run.Machine.CPU && s.Machine.Cores == run.Machine.Cores
		if same && (s.GPU == gpu || s.GPU == "" || gpu == "") {
			if s.GPU == "" {
				s.GPU = gpu
			}
			s.Machine = run.Machine // the newest: Go, the system
			return s
		}
	}
	s := &Site{Machine: run.Machine, GPU: gpu}
	*sites = append(*sites, s)
	return s
}

// set is what competed together.
type set struct {
	label      string
	n, threads int
}

func (r *Row) set() set { return set{r.Case, r.N, r.Threads} }

func (s *Site) add(e *Experiment) {
	for i, old := range s.Experiments {
		if old.Name == e.Name {
			s.Experiments[i] = replaceSets(old, e)
			return
		}
	}
	s.Experiments = append(s.Experiments, e)
}

// replaceSets returns the newer experiment with what only the older one has.
// Rows of a GPU have no threads, and so belong to all sets of their case and
// size.
func replaceSets(older, newer *Experiment) *Experiment {
	out := *newer
	out.Rows = slices.Clone(newer.Rows)
	for _, r := range older.Rows {
		again := slices.ContainsFunc(newer.Rows, func(q *Row) bool {
			a, b := r.set(), q.set()
			if a.threads == 0 || b.threads == 0 {
				a.threads, b.threads = 0, 0
			}
			return a == b
		})
		if !again {
			out.Rows = append(out.Rows, r)
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b *Row) int { return a.N - b.N })
	return &out
}
