package pandocluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// Files is where a backup is: a folder (FolderOf), or a part of an object store.
type Files interface {
	// Put makes a file of what r has until io.EOF. The error is fs.ErrExist if there is one of that name; if r returns another error,
	// or anything else fails, there is none.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get opens a file. The error is fs.ErrNotExist if there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Delete removes a file.
	Delete(ctx context.Context, name string) error
}

// Backup is what a backup has: ordinary files of Pando's, one for each range, and backup.json, which is written last and
// says this in JSON.
type Backup struct {
	Version int           `json:"version"`
	Cluster string        `json:"cluster"`
	Begun   time.Time     `json:"begun"` // what was acknowledged before is in it
	Ranges  []BackupRange `json:"ranges"`
}

// BackupRange is a range of a backup, at one moment: keys from Lo on, below Hi. No Hi is no end.
type BackupRange struct {
	File   string `json:"file"`
	Lo     []byte `json:"lo"`
	Hi     []byte `json:"hi"`
	Keys   int64  `json:"keys"`
	Bytes  int64  `json:"bytes"` // of the file
	SHA256 string `json:"sha256"`
}

// Size returns how many keys a backup has, and how many bytes its files.
func (b *Backup) Size() (keys, bytes int64) {
	for _, r := range b.Ranges {
		keys += r.Keys
		bytes += r.Bytes
	}
	return keys, bytes
}

const (
	backupName    = "backup.json"
	backupVersion = 1
	mostManifest  = 256 << 20
	backupTries   = 5           // of a range, while nodes end
	mostSet       = 1 << 20     // bytes of keys and values that are restored at once, about
	restoreTime   = time.Minute // for which a cluster may take nothing
)

var (
	// ErrBackup is returned for files that are no whole backup.
	ErrBackup = errors.New("pandocluster: this is no whole backup")
	// ErrNotEmpty is returned where a backup is to be restored into a cluster that has keys.
	ErrNotEmpty = errors.New("pandocluster: a backup is restored into a cluster without keys")
)

// order sends an order to a node.
type order func(ctx context.Context, order []byte) ([]byte, error)

// Backup copies what the cluster has to files. Each range is as it was at a moment of its own, with all that was acknowledged before the
// call, and no batch is in it half. Of a backup that fails nothing is left.
func (n *Node) Backup(ctx context.Context, to Files) (Backup, error) {
	return backup(ctx, n.steered, to)
}

func backup(ctx context.Context, ask order, to Files) (b Backup, err error) {
	b = Backup{Version: backupVersion, Begun: time.Now().UTC()}
	if b.Cluster, err = clusterOf(ctx, ask); err != nil {
		return b, err
	}
	switch r, err := to.Get(ctx, backupName); {
	case err == nil:
		return b, errors.Join(fmt.Errorf("there is a backup already: %s: %w", backupName, fs.ErrExist), r.Close())
	case !errors.Is(err, fs.ErrNotExist):
		return b, err
	}
	defer func() {
		if err == nil || mutant.On && mutant.Is("cluster: a bad backup is removed") {
			return
		}
		sub, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer stop()
		for _, r := range b.Ranges {
			err = errors.Join(err, to.Delete(sub, r.File))
		}
		b = Backup{}
	}()
	for lo := ""; ; {
		r, err := backupRange(ctx, ask, to, fmt.Sprintf("range-%06d.pando", len(b.Ranges)+1), lo)
		if err != nil {
			return b, err
		}
		b.Ranges = append(b.Ranges, r)
		if lo = string(r.Hi); lo == "" {
			break
		}
	}
	text, err := json.MarshalIndent(&b, "", "  ")
	if err != nil {
		return b, err
	}
	return b, to.Put(ctx, backupName, bytes.NewReader(text))
}

// backupRange makes the file of the range that has a key, from that on. It begins again where a node fails.
func backupRange(ctx context.Context, ask order, to Files, name, lo string) (r BackupRange, err error) {
	for range backupTries {
		in := &incoming{ctx: ctx, ask: ask, sum: sha256.New()}
		if err = in.begin(lo); err == nil {
			err = to.Put(ctx, name, in)
		}
		if err == nil {
			return BackupRange{name, []byte(lo), []byte(in.hi), in.keys, in.size, hex.EncodeToString(in.sum.Sum(nil))}, nil
		}
		if in.err == nil || ctx.Err() != nil { // not the cluster's fault, or too late
			break
		}
	}
	return r, fmt.Errorf("keys from %q on: %w", lo, err)
}

// incoming is an export, as whoever writes it to a file reads it.
type incoming struct {
	ctx  context.Context
	ask  order
	sum  hash.Hash
	node string
	n    uint64
	hi   string

	now  []byte
	end  bool
	keys int64
	size int64
	err  error // of the cluster
}

func (in *incoming) begin(lo string) error {
	answer, err := in.ask(in.ctx, packet.Bytes([]byte{orderExport}, lo))
	if err != nil {
		in.err = err
		return err
	}
	r := packet.Read(answer)
	in.node, in.n, in.hi = r.String(), r.Uint(), r.String()
	if in.err = r.Err(); in.err == nil && in.hi != "" && in.hi <= lo {
		in.err = packet.ErrBad
	}
	return in.err
}

func (in *incoming) Read(p []byte) (n int, err error) {
	for len(in.now) == 0 && in.err == nil && !in.end {
		in.err = in.more()
	}
	switch {
	case in.err != nil:
		return 0, in.err
	case len(in.now) == 0:
		return 0, io.EOF
	}
	n = copy(p, in.now)
	in.sum.Write(in.now[:n])
	in.now = in.now[n:]
	in.size += int64(n)
	return n, nil
}

func (in *incoming) more() error {
	answer, err := in.ask(in.ctx, packet.Uint(packet.Bytes([]byte{orderChunk}, in.node), in.n))
	if err != nil {
		return err
	}
	r := packet.Read(answer)
	in.end, in.now = r.Bool(), r.Bytes()
	if in.end {
		in.keys = int64(r.Uint())
	}
	return r.Err()
}

// clusterOf returns the id of the cluster.
func clusterOf(ctx context.Context, ask order) (string, error) {
	answer, err := ask(ctx, []byte{orderCluster})
	return string(answer), err
}

// readBackup reads what a backup has, and checks that its ranges have all keys.
func readBackup(ctx context.Context, from Files) (b Backup, err error) {
	r, err := from.Get(ctx, backupName)
	if errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("%w: it has no %s: %w", ErrBackup, backupName, err)
	}
	if err != nil {
		return b, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, mostManifest))
	if err != nil {
		return b, err
	}
	bad := func(format string, args ...any) (Backup, error) {
		return b, fmt.Errorf("%w: %s: %w", ErrBackup, backupName, fmt.Errorf(format, args...))
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return bad("%w", err)
	}
	if b.Version != backupVersion {
		return bad("it has version %d, and this program knows %d", b.Version, backupVersion)
	}
	lo := ""
	for i, r := range b.Ranges {
		if !filepath.IsLocal(r.File) || filepath.Base(r.File) != r.File {
			return bad("%q is no name of a file", r.File)
		}
		last := i == len(b.Ranges)-1
		if string(r.Lo) != lo || (len(r.Hi) == 0) != last || !last && string(r.Hi) <= lo {
			return bad("range %d has keys from %q on, below %q, behind one that ends at %q", i+1, r.Lo, r.Hi, lo)
		}
		lo = string(r.Hi)
	}
	if len(b.Ranges) == 0 {
		return bad("it has no ranges")
	}
	return b, nil
}

// open reads a file of a backup, and checks all of it.
func (r *BackupRange) open(ctx context.Context, from Files) (_ *pando.Frozen[string, []byte], err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %s: %w", ErrBackup, r.File, err)
		}
	}()
	f, err := from.Get(ctx, r.File)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	all := io.TeeReader(io.LimitReader(f, r.Bytes+1), sum)
	keys, err := pando.Read[string, []byte](all)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, all)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != r.SHA256 {
		err = errors.New("it is not the file that was written: its sum is another")
	}
	if err == nil {
		err = r.check(keys)
	}
	if err != nil {
		return nil, errors.Join(err, keys.Close())
	}
	return keys, nil
}

// check returns an error if keys are not those of a range, or cannot be restored.
func (r *BackupRange) check(keys *pando.Frozen[string, []byte]) error {
	if int64(keys.Len()) != r.Keys {
		return fmt.Errorf("it has %d keys, and not %d", keys.Len(), r.Keys)
	}
	for k, v := range keys.All() {
		if k < string(r.Lo) || len(r.Hi) > 0 && k >= string(r.Hi) {
			return fmt.Errorf("the key %.100q is not one of its range", k)
		}
		if len(k) > mostKey || len(v) > mostValue { // another program has written it
			return fmt.Errorf("a key of %d bytes with a value of %d: a cluster takes %d and %d", len(k), len(v), mostKey, mostValue)
		}
	}
	return nil
}

// Restore gives a cluster without keys those of a backup, whatever the size of the cluster that it is of. All files are
// checked before anything is changed. It is an error if the cluster has keys, and nobody should set any meanwhile.
func (n *Node) Restore(ctx context.Context, from Files) (Backup, error) {
	return restore(ctx, n.steered, from)
}

func restore(ctx context.Context, ask order, from Files) (b Backup, err error) {
	if b, err = readBackup(ctx, from); err != nil {
		return b, err
	}
	for i := range b.Ranges {
		if mutant.On && mutant.Is("cluster: a backup is checked first") {
			break
		}
		keys, err := b.Ranges[i].open(ctx, from)
		if err == nil {
			err = keys.Close()
		}
		if err != nil {
			return b, err
		}
	}
	answer, err := ask(ctx, []byte{orderCount})
	if err != nil {
		return b, err
	}
	if has := packet.Read(answer).Uint(); has > 0 {
		return b, fmt.Errorf("%w: it has %d", ErrNotEmpty, has)
	}
	for i := range b.Ranges {
		if err := restoreRange(ctx, ask, from, &b.Ranges[i]); err != nil {
			return b, fmt.Errorf("the cluster has a part of the backup only, which is to be removed before another try (FLUSHDB): %w", err)
		}
	}
	return b, nil
}

// restoreRange makes a range, and sets its keys.
func restoreRange(ctx context.Context, ask order, from Files, r *BackupRange) error {
	file, err := r.open(ctx, from)
	if err != nil {
		return err
	}
	defer file.Close()
	if len(r.Lo) > 0 {
		split, err := json.Marshal(Step{Kind: Split, Key: string(r.Lo)})
		if err == nil {
			err = insist(ctx, ask, split)
		}
		if err != nil {
			return err
		}
	}
	var some []byte
	count := uint64(0)
	set := func() error {
		if count == 0 {
			return nil
		}
		err := insist(ctx, ask, append(packet.Uint([]byte{orderSet}, count), some...))
		some, count = some[:0], 0
		return err
	}
	for k, v := range file.All() {
		if len(some)+len(k)+len(v) > mostSet {
			if err := set(); err != nil {
				return err
			}
		}
		some = packet.Bytes(packet.Bytes(some, k), v)
		count++
	}
	return set()
}

// insist sends an order that may be done twice, until it is done; or for long enough.
func insist(ctx context.Context, ask order, order []byte) error {
	end := time.Now().Add(restoreTime)
	for {
		_, err := ask(ctx, order)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
