package serve

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// wire is a connection of a client. It allocates nothing for a command.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	out  []byte
	body []byte
	rng  *rand.Rand
	keys []uint64 // of the command under way
}

func dial(network, address string) (*wire, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Keys are 16 digits, whose order is that of the numbers, and values twice the same.
const (
	keyBytes = 16
	valBytes = 2 * keyBytes
)

func (w *wire) begin(args int) {
	w.out = append(w.out, '*')
	w.out = strconv.AppendInt(w.out, int64(args), 10)
	w.out = append(w.out, '\r', '\n')
}

func (w *wire) text(s string) {
	w.out = append(w.out, '$')
	w.out = strconv.AppendInt(w.out, int64(len(s)), 10)
	w.out = append(w.out, '\r', '\n')
	w.out = append(w.out, s...)
	w.out = append(w.out, '\r', '\n')
}

// key and val write an argument, the key behind a prefix.
func (w *wire) key(prefix string, k uint64) {
	w.out = append(w.out, '$')
	w.out = strconv.AppendInt(w.out, int64(len(prefix)+keyBytes), 10)
	w.out = append(w.out, '\r', '\n')
	w.out = append(w.out, prefix...)
	w.out = appendKey(w.out, k)
	w.out = append(w.out, '\r', '\n')
}

func (w *wire) val(k uint64) {
	w.out = append(w.out, "$32\r\n"...)
	w.out = appendKey(appendKey(w.out, k), k)
	w.out = append(w.out, '\r', '\n')
}

func appendKey(b []byte, k uint64) []byte {
	const digits = "0123456789abcdef"
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[k>>shift&15])
	}
	return b
}

func (w *wire) send() error {
	_, err := w.conn.Write(w.out)
	w.out = w.out[:0]
	return err
}

// line returns the number of a reply's line of a kind.
func (w *wire) line(kind byte) (int, error) {
	text, err := w.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(text) < 3 || text[0] != kind {
		return 0, fmt.Errorf("the reply is %.100q", text)
	}
	n, digits := 0, text[1:len(text)-2]
	for i, c := range digits {
		if c == '-' && i == 0 {
			return -1, nil
		}
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("the reply is %.100q", text)
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

func (w *wire) ok() error {
	text, err := w.r.ReadSlice('\n')
	if err == nil && string(text) != "+OK\r\n" {
		err = fmt.Errorf("the reply is %.100q", text)
	}
	return err
}

// bulk reads bytes, which are valid until the next reply.
func (w *wire) bulk() ([]byte, error) {
	n, err := w.line('$')
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("a key is not there")
	}
	w.body = append(w.body[:0], make([]byte, n+2)...)
	_, err = io.ReadFull(w.r, w.body)
	return w.body[:n], err
}

// isKey and isVal read a key, or the value of one, and look whether it is the right one.
func (w *wire) isKey(k uint64) error {
	b, err := w.bulk()
	return equal(b, err, k, 1)
}

func (w *wire) isVal(k uint64) error {
	b, err := w.bulk()
	return equal(b, err, k, 2)
}

func equal(b []byte, err error, k uint64, times int) error {
	if err != nil {
		return err
	}
	var want [valBytes]byte
	text := appendKey(want[:0], k)
	if times == 2 {
		text = appendKey(text, k)
	}
	if string(b) != string(text) {
		return fmt.Errorf("%q came where %q was to be", b, text)
	}
	return nil
}
