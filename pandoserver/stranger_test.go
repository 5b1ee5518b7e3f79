package pandoserver

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/authority"
	"github.com/pando-index/pando/internal/seed"
)

// Environment of the process that has the strangers: what it holds is not to be counted.
const (
	strangersAt  = "PANDO_TEST_STRANGERS_AT"
	strangersTLS = "PANDO_TEST_STRANGERS_TLS"
	strangersN   = "PANDO_TEST_STRANGERS_N"
)

// TestStrangerClients is that process: it connects, asks for replies that it does not take, and leaves a command
// unfinished whose arguments are as long as they may be. It ends with its standard input.
func TestStrangerClients(t *testing.T) {
	address := os.Getenv(strangersAt)
	if address == "" {
		t.Skip("a process of another test")
	}
	n, _ := strconv.Atoi(os.Getenv(strangersN))
	const longest = 16 << 10
	rest := "*3\r\n$3\r\nGET\r\n$" + strconv.Itoa(longest) + "\r\n" + strings.Repeat("x", longest) + "\r\n$" + strconv.Itoa(longest) + "\r\n" + strings.Repeat("y", 20<<10-longest-100)
	for i := range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if os.Getenv(strangersTLS) != "" {
			conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
		}
		all := rest
		if i%2 == 0 { // half of them take no replies, of which there are many, and have made the buffer long before
			all = "*2\r\n$3\r\nGET\r\n$" + strconv.Itoa(longest) + "\r\n" + strings.Repeat("x", longest) + "\r\n" + strings.Repeat("GET a\r\n", 5_000)
		}
		go func() { _, _ = io.WriteString(conn, all) }()
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A connection whose client has not said who it is holds 64 KiB at most of all memory of the process: buffers, goroutines and TLS.
func TestStrangersHold(t *testing.T) {
	const n = 200
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			opts := []Option{Restrict(people(t, "user alice on "+hashed("secret")+" +@all ~*")), StrangerTimeout(10 * time.Minute), WriteTimeout(10 * time.Minute)}
			if secure {
				cert, key := authority.New(t).Write("x")
				certs, err := OpenCertificates(cert, key, "")
				if err != nil {
					t.Fatal(err)
				}
				opts = append(opts, Secure(certs))
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv, address := startOn(t, little{l}, memory(t), opts...), l.Addr().String()
			cmd := exec.Command(os.Args[0], "-test.run=^TestStrangerClients$")
			cmd.Env = append(os.Environ(), strangersAt+"="+address, strangersN+"="+strconv.Itoa(n))
			if secure {
				cmd.Env = append(cmd.Env, strangersTLS+"=1")
			}
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			before := held()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				in.Close()
				_ = cmd.Wait()
			}()
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
			state := func() (waiting, unfinished, settled int) {
				for _, s := range srv.each() {
					waits, more := s.out.size.Load() > 0, s.buffered.Load() > 19<<10
					if waits {
						waiting++
					}
					if more {
						unfinished++
					}
					if waits || more {
						settled++
					}
				}
				return waiting, unfinished, settled
			}
			waiting, unfinished, settled := state()
			few := func() bool { return waiting < n*4/10 || unfinished < n*4/10 || settled < n } // or a handshake is under way
			for i := 0; i < 3000 && few(); i++ {
				time.Sleep(20 * time.Millisecond)
				waiting, unfinished, settled = state()
			}
			if few() {
				t.Fatalf("%d clients have replies that wait, and %d an unfinished command; %d have either", waiting, unfinished, settled)
			}
			most := int64(0)
			for range 5 {
				most = max(most, (held()-before)/n)
				time.Sleep(20 * time.Millisecond)
			}
			t.Logf("%d bytes a connection", most)
			if most > 64<<10 && !seed.RaceDetector { // which needs memory of its own
				t.Errorf("%d bytes a connection", most)
			}
		})
	}
}

// little is a listener whose connections hold little of what is written to them, so that some more waits at once.
type little struct{ net.Listener }

func (l little) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		_ = conn.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return conn, err
}

// held returns what the process holds: its heap, when what is not used any more was collected, and stacks. A
// collection gives back half of a stack that is mostly unused.
func held() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A handshake that does not end is cut off before much of it is held.
func TestLongHandshakes(t *testing.T) {
	cert, key := authority.New(t).Write("x")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, memory(t), Secure(certs), Restrict(people(t, "user alice on "+hashed("secret"))), StrangerTimeout(10*time.Minute))
	c := dial(t, "tcp", address)
	_ = c.conn.SetDeadline(time.Now().Add(20 * time.Second))
	const hello, record = 60_000, 10_000 // bytes of a message that comes in several records
	c.send("\x16\x03\x01" + string([]byte{record >> 8, record & 0xff, 1, 0, hello >> 8, hello & 0xff}) + strings.Repeat("x", record-4))
	c.send("\x16\x03\x01" + string([]byte{record >> 8, record & 0xff}) + strings.Repeat("x", record))
	if _, err := io.ReadAll(c.r); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server waits for the rest")
	}
}

// A client that has not said who it is cannot have the server keep a long message of TLS itself behind the handshake.
func TestLongMessagesBehindHandshakes(t *testing.T) {
	a := authority.New(t)
	cert, key := a.Write("x")
	certs, err := OpenCertificates(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	_, address := start(t, memory(t), Secure(certs), Restrict(people(t, "user alice on "+hashed("secret"))), StrangerTimeout(10*time.Minute))
	raw := dial(t, "tcp", address).conn
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	cfg, secrets := a.Trusting(""), new(strings.Builder)
	cfg.KeyLogWriter = secrets
	client := tls.Client(raw, cfg)
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if client.ConnectionState().CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skip("another cipher")
	}
	seal := sealer(t, secrets.String())
	const certificate, long, part = 11, 200_000, 8_000 // the message that may be longest
	for i := range 3 {
		text := []byte(strings.Repeat("x", part))
		if i == 0 {
			copy(text, []byte{certificate, long >> 16, long >> 8 & 0xff, long & 0xff})
		}
		if _, err := raw.Write(seal(text, i)); err != nil {
			return // the server is gone
		}
	}
	if _, err := io.ReadAll(raw); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server waits for the rest")
	}
}

// sealer returns a function that makes records of handshakes behind the handshake, by what tls logs of its keys.
func sealer(t *testing.T, secrets string) func(text []byte, n int) []byte {
	t.Helper()
	_, secret, _ := strings.Cut(secrets, "CLIENT_TRAFFIC_SECRET_0 ")
	secret, _, _ = strings.Cut(secret, "\n")
	traffic, err := hex.DecodeString(secret[strings.IndexByte(secret, ' ')+1:])
	if err != nil {
		t.Fatal(err)
	}
	expand := func(label string, n int) []byte {
		label = "tls13 " + label
		b, err := hkdf.Expand(sha256.New, traffic, "\x00"+string([]byte{byte(n), byte(len(label))})+label+"\x00", n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	block, err := aes.NewCipher(expand("key", 16))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	iv := expand("iv", 12)
	return func(text []byte, n int) []byte {
		nonce := bytes.Clone(iv)
		nonce[len(nonce)-1] ^= byte(n)
		text = append(bytes.Clone(text), 22)
		size := len(text) + aead.Overhead()
		header := []byte{23, 3, 3, byte(size >> 8), byte(size)}
		return aead.Seal(bytes.Clone(header), nonce, text, header)
	}
}
