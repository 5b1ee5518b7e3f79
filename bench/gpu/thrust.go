package gpu

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
)

//go:embed thrust.cu
var thrustSource []byte

// Operations of Thrust.
const (
	Rank32  = "rank32"  // ranks of random numbers among uint32 keys
	Point64 = "point64" // values of random uint64 keys
	// Update64 sorts random uint64 pairs and merges them with sorted ones; those
	// that are equal stay.
	Update64 = "update64"
	Sum64    = "sum64" // the sum of uint64 values, by cub
	Add64    = "add64" // adds 1 to each uint64 value
)

// BuildThrust compiles the peer into dir and returns the program's path.
// Without nvcc on the PATH the error wraps exec.ErrNotFound.
func BuildThrust(dir string) (program string, err error) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, "thrust.cu")
	if err := os.WriteFile(source, thrustSource, 0o666); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "thrust")
	said, err := exec.Command(nvcc, "-O3", "-arch=native", "-o", program, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("nvcc: %w: %s", err, firstLines(said, 3))
	}
	return program, nil
}

func firstLines(text []byte, n int) string {
	lines := strings.SplitN(strings.TrimSpace(string(text)), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], " | ")
}

// Thrust is the running peer, in a process of its own.
type Thrust struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	said    bytes.Buffer // written to standard error
}

// StartThrust starts the program that BuildThrust made, and waits until it has
// made n keys and the given number of queries. It works for at least warmUp
// before each round.
func StartThrust(program, mode string, n, queries int, seed uint64, warmUp time.Duration) (*Thrust, error) {
	t := &Thrust{cmd: exec.Command(program, mode, strconv.Itoa(n), strconv.Itoa(queries),
		strconv.FormatUint(seed, 10), strconv.FormatFloat(warmUp.Seconds(), 'f', -1, 64))}
	t.cmd.Stderr = &t.said
	in, err := t.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	t.in, t.answers = in, bufio.NewReader(out)
	line, err := t.answers.ReadString('\n')
	if err != nil || line != "ready\n" {
		return nil, t.broken(fmt.Sprintf("it said %q and not that it is ready", line))
	}
	return t, nil
}

// broken ends the process and returns an error with its last output.
func (t *Thrust) broken(what string) error {
	err := t.Close()
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("thrust: %s: %w", what, err)
}

// Round answers the first ops queries and returns the time that the GPU took.
// Wrong results are an error.
func (t *Thrust) Round(ops int) (time.Duration, error) {
	if _, err := fmt.Fprintln(t.in, ops); err != nil {
		return 0, t.broken(err.Error())
	}
	line, err := t.answers.ReadString('\n')
	if err != nil {
		return 0, t.broken("no answer")
	}
	var ms float64
	var wrong int
	if _, err := fmt.Sscanf(line, "%f %d\n", &ms, &wrong); err != nil {
		return 0, t.broken(fmt.Sprintf("an answer of another form: %q", line))
	}
	if wrong > 0 {
		return 0, fmt.Errorf("thrust: %d of %d results are wrong", wrong, ops)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// Close ends the process. Closing again does nothing.
func (t *Thrust) Close() error {
	if t.cmd == nil {
		return nil
	}
	cmd := t.cmd
	t.cmd = nil
	t.in.Close() // it exits at the end of its input
	io.Copy(io.Discard, t.answers)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, firstLines(t.said.Bytes(), 3))
	}
	return nil
}
