package peers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pando-index/pando/bench/contest"
)

// programsFolder names a folder that keeps compiled peers from run to run:
// those that are there are not compiled again.
const programsFolder = "PANDO_PEERS"

// programs are peers that are compiled here and now, each once per run: that
// takes seconds, with nvcc half a minute.
type programs struct {
	sync.Mutex
	dir   string
	built map[string]program // by the peer's name

	// Tests keep programs from run to run, and have no time for optimization.
	keep  bool
	flags []string
}

type program struct {
	path string
	err  error
}

// Programs of C++ compilers and of nvcc.
var cppPrograms, gpuPrograms programs

// build returns the peer's program. compile makes it in the folder that it is
// given; later calls return the same result.
func (p *programs) build(s *contest.Session, name string, compile func(dir string) (path string, err error)) (path string, err error) {
	p.Lock()
	defer p.Unlock()
	if known, ok := p.built[name]; ok {
		return known.path, known.err
	}
	if p.dir == "" {
		if p.dir, err = os.MkdirTemp("", "pando-bench-"); err != nil {
			return "", err
		}
		p.built = map[string]program{}
	}
	path, err = p.kept(s, name, compile)
	p.built[name] = program{path, err}
	return path, err
}

// kept takes a program out of the folder of kept ones, if there is one.
func (p *programs) kept(s *contest.Session, name string, compile func(dir string) (string, error)) (string, error) {
	folder := os.Getenv(programsFolder)
	at := filepath.Join(folder, strings.NewReplacer(":", "-", "/", "-").Replace(name))
	if folder != "" {
		if _, err := os.Stat(at); err == nil {
			return at, nil
		}
	}
	s.Say("compiling %s ...", name)
	path, err := compile(p.dir)
	if err != nil || folder == "" {
		return path, err
	}
	// A program that another run has put there meanwhile is as good: it is
	// replaced whole.
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.MkdirAll(folder, 0o777)
	}
	if err != nil {
		return "", err
	}
	part := at + "." + filepath.Base(p.dir)
	return at, errors.Join(os.WriteFile(part, text, 0o777), os.Rename(part, at))
}

// remove deletes the programs at the end of a run, but not those of the folder
// that keeps them.
func (p *programs) remove() error {
	p.Lock()
	defer p.Unlock()
	if p.keep || p.dir == "" {
		return nil
	}
	dir := p.dir
	p.dir, p.built = "", nil
	return os.RemoveAll(dir)
}

// RemovePrograms deletes what was compiled in this run.
func RemovePrograms() error { return errors.Join(gpuPrograms.remove(), cppPrograms.remove()) }

// KeepPrograms keeps peers of C++ compilers until done is called, whatever is
// removed meanwhile, and compiles them with flags of its own. It is for tests,
// which have no time for optimization.
func KeepPrograms(flags ...string) (done func()) {
	cppPrograms.keep, cppPrograms.flags = true, flags
	return func() {
		cppPrograms.keep = false
		cppPrograms.remove() // a temporary folder: nothing is lost if it stays
	}
}
