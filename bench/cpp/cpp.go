// Package cpp runs ordered maps of C++ as peers: a small program that is
// compiled where a compiler and the library are, and that answers over pipes.
package cpp

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

//go:embed src/map.cpp
var source []byte

// Library is a map of C++.
type Library struct {
	Name    string  // as tables show it
	Peak    float64 // maximum bytes per pair of 64 bits
	From    string  // package to install
	define  string  // selects it in src/map.cpp; empty: the standard library's
	config  string  // its name for pkg-config; empty: headers alone
	program string
}

// Libraries returns every map that src/map.cpp knows.
func Libraries() []Library {
	return []Library{
		{Name: "std::map", Peak: 72, From: "a C++ standard library", program: "stdmap"},
		{Name: "absl::btree_map", Peak: 48, From: "Abseil (Debian: libabsl-dev)", define: "PEER_ABSL", config: "absl_btree", program: "abslmap"},
		{Name: "tlx::btree_map", Peak: 64, From: "tlx (github.com/tlx/tlx, its folder on CPLUS_INCLUDE_PATH)", define: "PEER_TLX", program: "tlxmap"},
	}
}

// ErrNoLibrary is returned where the compiler does not find the library.
var ErrNoLibrary = errors.New("the library is not installed")

// compilers are tried in order; the environment's CXX comes first.
var compilers = []string{"c++", "g++", "clang++"}

func compiler() (string, error) {
	if cxx := os.Getenv("CXX"); cxx != "" {
		return exec.LookPath(cxx)
	}
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// Build compiles the peer into dir and returns the program's path. More flags
// for the compiler come last. Without a compiler the error wraps
// exec.ErrNotFound, without the library ErrNoLibrary.
func (l Library) Build(dir string, more ...string) (program string, err error) {
	cxx, err := compiler()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, l.program+".cpp")
	if err := os.WriteFile(file, source, 0o666); err != nil {
		return "", err
	}
	program = filepath.Join(dir, l.program)
	args := []string{"-O3", "-march=native", "-std=c++17", "-DNDEBUG", "-pthread", "-o", program}
	if l.define != "" {
		args = append(args, "-D"+l.define)
	}
	args = append(args, file)
	args = append(append(args, l.flags()...), more...)
	said, err := exec.Command(cxx, args...).CombinedOutput()
	if err != nil && bytes.Contains(said, []byte("PEER_LIBRARY_MISSING")) {
		return "", ErrNoLibrary
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cxx), err, firstLines(said, 3))
	}
	return program, nil
}

// flags asks pkg-config; where it does not know the library, headers may do.
func (l Library) flags() []string {
	if l.config == "" {
		return nil
	}
	said, err := exec.Command("pkg-config", "--cflags", "--libs", l.config).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(said))
}

func firstLines(text []byte, n int) string {
	lines := strings.SplitN(strings.TrimSpace(string(text)), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], " | ")
}

// Word is a key or a value.
type Word interface{ uint32 | uint64 }

// Map is a running peer. One goroutine may use it at a time. After an error
// every call returns that error.
type Map[W Word] struct {
	cmd     *exec.Cmd
	in      *bufio.Writer
	pipe    io.Closer
	answers *bufio.Reader
	said    bytes.Buffer // written to standard error
	err     error

	Took  time.Duration // of the last call, by the peer's own clock
	Len   int           // entries after the last call
	Bytes int64         // that memory grew by in the last Load or Set; 0: not known
}

// Start starts a program that Build made.
func Start[W Word](program string) (*Map[W], error) {
	m := &Map[W]{cmd: exec.Command(program, strconv.Itoa(int(unsafe.Sizeof(W(0)))*8))}
	m.cmd.Stderr = &m.said
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.in, m.pipe, m.answers = bufio.NewWriterSize(in, 1<<20), in, bufio.NewReaderSize(out, 1<<20)
	line, err := m.answers.ReadString('\n')
	if err != nil || line != "ready\n" {
		return nil, m.broken(fmt.Errorf("it said %q and not that it is ready", line))
	}
	return m, nil
}

// broken ends the process and returns an error with its last output.
func (m *Map[W]) broken(err error) error {
	m.err = errors.Join(err, m.Close())
	return m.err
}

// Load puts sorted pairs in the place of what was there.
func (m *Map[W]) Load(keys, vals []W) error {
	_, err := m.call(fmt.Sprintf("load %d\n", len(keys)), keys, vals)
	return err
}

// Set puts pairs in, one insert a key.
func (m *Map[W]) Set(keys, vals []W) error {
	_, err := m.call(fmt.Sprintf("set %d\n", len(keys)), keys, vals)
	return err
}

// Clear removes all pairs.
func (m *Map[W]) Clear() error {
	_, err := m.call("clear\n")
	return err
}

// Get looks keys up on several threads.
func (m *Map[W]) Get(keys, vals []W, found []bool, threads int) (hits int, err error) {
	last, err := m.call(fmt.Sprintf("get %d %d\n", len(keys), threads), keys)
	if err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(m.answers, raw(vals[:len(keys)])); err != nil {
		return 0, m.broken(err)
	}
	bits := make([]byte, len(keys))
	if _, err := io.ReadFull(m.answers, bits); err != nil {
		return 0, m.broken(err)
	}
	for i, b := range bits {
		found[i] = b != 0
	}
	return int(last), nil
}

// call sends a command with its numbers and returns the last number of the
// answer.
func (m *Map[W]) call(command string, numbers ...[]W) (last int64, err error) {
	if m.err != nil {
		return 0, m.err
	}
	m.in.WriteString(command) // Flush returns the error
	for _, n := range numbers {
		m.in.Write(raw(n))
	}
	if err := m.in.Flush(); err != nil {
		return 0, m.broken(err)
	}
	line, err := m.answers.ReadString('\n')
	if err != nil {
		return 0, m.broken(err)
	}
	var ns int64
	if _, err := fmt.Sscanf(line, "%d %d %d\n", &ns, &m.Len, &last); err != nil {
		return 0, m.broken(fmt.Errorf("an answer of another form: %q", line))
	}
	m.Took, m.Bytes = time.Duration(ns), last
	return last, nil
}

// raw is the bytes of numbers.
func raw[W Word](v []W) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(W(0))))
}

// Close ends the process. Closing again does nothing.
func (m *Map[W]) Close() error {
	if m.cmd == nil {
		return nil
	}
	cmd := m.cmd
	m.cmd = nil
	m.pipe.Close() // it exits at the end of its input
	io.Copy(io.Discard, m.answers)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, firstLines(m.said.Bytes(), 3))
	}
	return nil
}
