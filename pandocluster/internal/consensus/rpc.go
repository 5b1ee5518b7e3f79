package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// Kinds of requests between replicas, and their answers.
const (
	askAppend byte = iota + 1
	askVote
	askPreVote
	askInstall
	askTimeout
)

// mostSent is about the most bytes of entries in a request.
const mostSent = 4 << 20

// wire is raft's transport of one replica. Heartbeats go the way of all others, since raft's
// own shortcut for them sets terms beside its main loop.
type wire struct {
	self     raft.ServerAddress
	send     Send
	consumer chan raft.RPC
	ctx      context.Context // ends with the replica
	patience time.Duration   // of a request but for a snapshot, if it is short

	// sent numbers requests in the order in which they were begun, and reads, too. heard is the newest
	// request of a term that each member has answered in the same term.
	sent  atomic.Uint64
	mu    sync.Mutex
	heard map[raft.ServerID]contact
}

type contact struct{ term, sent uint64 }

var (
	_ raft.Transport   = (*wire)(nil)
	_ raft.WithPreVote = (*wire)(nil)
)

func (w *wire) Consumer() <-chan raft.RPC          { return w.consumer }
func (w *wire) LocalAddr() raft.ServerAddress      { return w.self }
func (w *wire) SetHeartbeatHandler(func(raft.RPC)) {}

func (w *wire) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }
func (w *wire) DecodePeer(b []byte) raft.ServerAddress                  { return raft.ServerAddress(b) }

// AppendEntriesPipeline says that there is none: an answer is waited for, as requests may overtake each other.
func (w *wire) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func (w *wire) ask(to raft.ServerID, request []byte, body io.Reader) (*packet.Reader, error) {
	ctx := w.ctx
	if ctx.Err() != nil { // a leader that hands over while it is shut down asks again at once, for as long as its disk takes
		time.Sleep(w.patience / 20)
		return nil, ErrClosed
	}
	if body == nil {
		var cancel func()
		ctx, cancel = context.WithTimeout(w.ctx, w.patience*time.Duration(1+2*min(1, len(request)>>12)))
		defer cancel()
	}
	answer, err := w.send(ctx, string(to), request, body)
	if err == nil && len(answer) == 0 {
		err = packet.ErrBad
	}
	return packet.Read(answer), err
}

func (w *wire) AppendEntries(to raft.ServerID, _ raft.ServerAddress, a *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	b := appendHeader([]byte{askAppend}, &a.RPCHeader)
	b = packet.Uint(packet.Uint(packet.Uint(packet.Uint(b, a.Term), a.PrevLogEntry), a.PrevLogTerm), a.LeaderCommitIndex)
	// Raft takes for sent what a has when this returns: fewer entries than it liked to send are nearer to an answer in time.
	size := 0
	for i, e := range a.Entries {
		if size += len(e.Data); i > 0 && size > mostSent {
			a.Entries = a.Entries[:i]
			break
		}
	}
	b = packet.Uint(b, uint64(len(a.Entries)))
	for _, e := range a.Entries {
		if e.Type == inSnapshot {
			return errors.New("the lead was lost")
		}
		b = packet.Uint(packet.Uint(append(b, byte(e.Type)), e.Index), e.Term)
		at := uint64(0)
		if !e.AppendedAt.IsZero() {
			at = uint64(e.AppendedAt.UnixNano())
		}
		b = packet.Bytes(packet.Bytes(packet.Uint(b, at), e.Data), e.Extensions)
	}
	n := w.sent.Add(1)
	r, err := w.ask(to, b, nil)
	if err != nil {
		return err
	}
	*resp = raft.AppendEntriesResponse{RPCHeader: readHeader(r), Term: r.Uint(), LastLog: r.Uint(), Success: r.Bool(), NoRetryBackoff: r.Bool()}
	if r.Err() == nil && resp.Term == a.Term {
		w.mu.Lock()
		if c := w.heard[to]; c.term < a.Term || c.term == a.Term && c.sent < n {
			w.heard[to] = contact{a.Term, n}
		}
		w.mu.Unlock()
	}
	return r.Err()
}

// heardSince reports whether a member has answered in a term a request that was begun after another.
func (w *wire) heardSince(id raft.ServerID, term, sent uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.heard[id]
	return c.term == term && c.sent > sent
}

func (w *wire) RequestVote(to raft.ServerID, _ raft.ServerAddress, a *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	b := appendHeader([]byte{askVote}, &a.RPCHeader)
	b = packet.Bool(packet.Uint(packet.Uint(packet.Uint(b, a.Term), a.LastLogIndex), a.LastLogTerm), a.LeadershipTransfer)
	r, err := w.ask(to, b, nil)
	if err != nil {
		return err
	}
	*resp = raft.RequestVoteResponse{RPCHeader: readHeader(r), Term: r.Uint(), Granted: r.Bool()}
	return r.Err()
}

func (w *wire) RequestPreVote(to raft.ServerID, _ raft.ServerAddress, a *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	b := appendHeader([]byte{askPreVote}, &a.RPCHeader)
	b = packet.Uint(packet.Uint(packet.Uint(b, a.Term), a.LastLogIndex), a.LastLogTerm)
	r, err := w.ask(to, b, nil)
	if err != nil {
		return err
	}
	*resp = raft.RequestPreVoteResponse{RPCHeader: readHeader(r), Term: r.Uint(), Granted: r.Bool()}
	return r.Err()
}

func (w *wire) TimeoutNow(to raft.ServerID, _ raft.ServerAddress, a *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	r, err := w.ask(to, appendHeader([]byte{askTimeout}, &a.RPCHeader), nil)
	if err != nil {
		return err
	}
	*resp = raft.TimeoutNowResponse{RPCHeader: readHeader(r)}
	return r.Err()
}

func (w *wire) InstallSnapshot(to raft.ServerID, _ raft.ServerAddress, a *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	b := appendHeader([]byte{askInstall}, &a.RPCHeader)
	b = packet.Uint(packet.Uint(packet.Uint(packet.Uint(b, uint64(a.SnapshotVersion)), a.Term), a.LastLogIndex), a.LastLogTerm)
	b = packet.Uint(packet.Uint(packet.Bytes(b, a.Configuration), a.ConfigurationIndex), uint64(a.Size))
	r, err := w.ask(to, b, data)
	if err != nil {
		return err
	}
	*resp = raft.InstallSnapshotResponse{RPCHeader: readHeader(r), Term: r.Uint(), Success: r.Bool()}
	return r.Err()
}

func appendHeader(b []byte, h *raft.RPCHeader) []byte {
	return packet.Bytes(packet.Bytes(packet.Uint(b, uint64(h.ProtocolVersion)), h.ID), h.Addr)
}

func readHeader(r *packet.Reader) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersion(r.Uint()), ID: r.Bytes(), Addr: r.Bytes()}
}

// command reads a request of another replica.
func command(request []byte) (any, error) {
	r := packet.Read(request)
	kind := r.Byte()
	h := readHeader(r)
	var c any
	switch kind {
	case askAppend:
		a := &raft.AppendEntriesRequest{RPCHeader: h, Term: r.Uint(), Leader: h.Addr, PrevLogEntry: r.Uint(), PrevLogTerm: r.Uint(), LeaderCommitIndex: r.Uint()}
		for range r.Count() {
			e := &raft.Log{Type: raft.LogType(r.Byte()), Index: r.Uint(), Term: r.Uint()}
			if at := r.Uint(); at != 0 {
				e.AppendedAt = time.Unix(0, int64(at))
			}
			e.Data, e.Extensions = r.Bytes(), r.Bytes()
			switch e.Type { // raft panics where it does not know one, or what it has
			case raft.LogCommand, raft.LogNoop, raft.LogBarrier:
			case raft.LogConfiguration:
				if _, err := decodeMembers(e.Data); err != nil {
					return nil, err
				}
			default:
				return nil, fmt.Errorf("an entry has type %d, which this program does not know", e.Type)
			}
			a.Entries = append(a.Entries, e)
		}
		c = a
	case askVote:
		c = &raft.RequestVoteRequest{RPCHeader: h, Candidate: h.Addr, Term: r.Uint(), LastLogIndex: r.Uint(), LastLogTerm: r.Uint(), LeadershipTransfer: r.Bool()}
	case askPreVote:
		c = &raft.RequestPreVoteRequest{RPCHeader: h, Term: r.Uint(), LastLogIndex: r.Uint(), LastLogTerm: r.Uint()}
	case askInstall:
		in := &raft.InstallSnapshotRequest{
			RPCHeader: h, Leader: h.Addr, SnapshotVersion: raft.SnapshotVersion(r.Uint()), Term: r.Uint(), LastLogIndex: r.Uint(), LastLogTerm: r.Uint(),
			Configuration: r.Bytes(), ConfigurationIndex: r.Uint(), Size: int64(r.Uint()),
		}
		if _, err := decodeMembers(in.Configuration); err != nil {
			return nil, err
		}
		c = in
	case askTimeout:
		c = &raft.TimeoutNowRequest{RPCHeader: h}
	default:
		return nil, fmt.Errorf("a replica asks for %d, which this program does not know", kind)
	}
	return c, r.Err()
}

// answer returns the bytes of an answer.
func answer(response any) ([]byte, error) {
	switch a := response.(type) {
	case *raft.AppendEntriesResponse:
		b := packet.Uint(packet.Uint(appendHeader(nil, &a.RPCHeader), a.Term), a.LastLog)
		return packet.Bool(packet.Bool(b, a.Success), a.NoRetryBackoff), nil
	case *raft.RequestVoteResponse:
		return packet.Bool(packet.Uint(appendHeader(nil, &a.RPCHeader), a.Term), a.Granted), nil
	case *raft.RequestPreVoteResponse:
		return packet.Bool(packet.Uint(appendHeader(nil, &a.RPCHeader), a.Term), a.Granted), nil
	case *raft.InstallSnapshotResponse:
		return packet.Bool(packet.Uint(appendHeader(nil, &a.RPCHeader), a.Term), a.Success), nil
	case *raft.TimeoutNowResponse:
		return appendHeader(nil, &a.RPCHeader), nil
	}
	return nil, errors.New("raft has no answer")
}

// handle gives a request to raft, and returns its answer.
func (w *wire) handle(ctx context.Context, c any, body io.Reader) ([]byte, error) {
	back := make(chan raft.RPCResponse, 1)
	select {
	case w.consumer <- raft.RPC{Command: c, Reader: body, RespChan: back}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.ctx.Done():
		return nil, ErrClosed
	}
	// A body is read until raft has answered: it is the caller's.
	done := ctx.Done()
	if body != nil {
		done = nil
	}
	select {
	case r := <-back:
		if r.Error != nil {
			return nil, r.Error
		}
		return answer(r.Response)
	case <-done:
		return nil, ctx.Err()
	case <-w.ctx.Done():
		return nil, ErrClosed
	}
}
