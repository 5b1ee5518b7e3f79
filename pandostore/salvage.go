package pandostore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandostore/internal/disk"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// Salvaged is what Salvage has saved.
type Salvaged struct {
	Checkpoint string // name of its file; "" if there is none, or all of the log was saved instead
	Next       uint64 // number of the first operation that is not saved
	Frames     int
	Damage     error // what is damaged, and where; nil if nothing is
	Left       int64 // bytes that were written to the log behind the damage, which are not saved
}

// Salvage makes a store in the folder out of everything in the folder dir that is before the
// first damage. It changes nothing in dir. Out must be empty, or not be there. It needs no
// types.
//
// If the newest checkpoint is damaged it takes an older one, or none, where that is still
// there with all of the log behind it. It returns an error that wraps pando.ErrFile if
// there is nothing to begin with: no checkpoint that is whole, nor the beginning of the log.
func Salvage(dir, out string) (Salvaged, error) {
	from, err := disk.Existing(dir)
	if err != nil {
		return Salvaged{}, noFolder(err)
	}
	lock, err := from.Lock()
	if err != nil {
		return Salvaged{}, translate(from, err)
	}
	defer lock.Close()
	to, err := disk.Dir(out)
	if err != nil {
		return Salvaged{}, fmt.Errorf("pandostore: cannot make the folder: %w", err)
	}
	s, err := salvage(from, to)
	return s, translate(from, err)
}

func salvage(from, to disk.Folder) (s Salvaged, err error) {
	if names, err := to.Names(); err != nil || len(names) > 0 {
		return s, errors.Join(err, fmt.Errorf("%w: %s is not empty; give Salvage a new folder", pando.ErrOption, folderName(to)))
	}
	r := recovery{core: &core{dir: from}}
	if s.Damage, err = r.chooseWhole(); err != nil {
		return s, err
	}
	if s.Checkpoint = r.chosen; r.chosen != "" {
		if err := copyFile(from, to, r.chosen); err != nil {
			return s, err
		}
	}
	s.Next = r.next
	if len(r.segments) == 0 {
		return s, errors.Join(s.begin(&r, to, r.segment), to.Sync())
	}
	var b batches
	for i := range r.segments {
		before := s.Damage
		end, goOn, err := s.segment(&r, &b, to, i)
		if err == nil && s.Damage != before { // the log's
			err = s.leave(&r, i, end)
		}
		if err != nil {
			return s, err
		}
		if !goOn {
			break
		}
	}
	return s, to.Sync()
}

// leave counts what is in the log from an offset of a segment on.
func (s *Salvaged) leave(r *recovery, i int, from int64) error {
	for _, n := range r.segments[i:] {
		data, err := r.read(n)
		if err != nil {
			return err
		}
		written := len(bytes.TrimRight(data, "\x00")) // segments are made ahead, of zeros
		s.Left += max(int64(written)-from, 0)
		from = 0
	}
	return nil
}

// chooseWhole takes the newest checkpoint that is whole and has the log behind it. It
// returns what is damaged otherwise, and an error if there is nothing to begin with.
func (r *recovery) chooseWhole() (damage, err error) {
	checkpoints, all, err := r.list()
	if err != nil {
		return nil, err
	}
	if len(checkpoints) == 0 && len(all) == 0 {
		return nil, r.empty()
	}
	slices.Reverse(checkpoints)
	for _, c := range append(checkpoints, "") { // without one, the log from its beginning
		missing := r.choose(c, all)
		bad := r.beginning()
		if bad == nil {
			return errors.Join(damage, missing), nil
		}
		var newer *log.Newer
		if errors.As(bad, &newer) {
			return nil, bad
		}
		if damage == nil {
			damage = bad
		}
	}
	return nil, fmt.Errorf("nothing can be saved, neither from this checkpoint nor from the beginning: %w", damage)
}

// beginning finds out what store this is, and checks the checkpoint, if one was chosen. If
// the log right behind that is damaged or missing, its own head says what store it is.
func (r *recovery) beginning() error {
	var bad *log.Bad
	err := r.readInfo()
	if r.chosen != "" && errors.As(err, &bad) {
		r.info, _, err = headOf(r.dir, r.chosen)
		err = r.ofCheckpoint(err)
	}
	if err != nil {
		return err
	}
	return r.verifyCheckpoint()
}

// segment copies a segment up to the first damage, and returns where that is, and whether there
// is none.
func (s *Salvaged) segment(r *recovery, b *batches, to disk.Folder, i int) (end int64, goOn bool, err error) {
	n := r.segments[i]
	data, err := r.read(n)
	if err != nil {
		return 0, false, err
	}
	info, err := log.ReadInfo(data, n)
	if err == nil && info != r.info {
		err = &log.Bad{Name: log.Name(n), Why: "this is the log of another store"}
	}
	var damaged *log.Bad
	if errors.As(err, &damaged) {
		s.Damage = damaged
		return 0, false, s.begin(r, to, n)
	}
	if err != nil {
		return 0, false, err
	}
	scan, bad := log.Read(data, &info, n, func(f *log.Frame) error {
		if why := b.take(f); why != "" {
			return &log.Bad{Name: log.Name(n), Offset: f.Offset, Why: why}
		}
		return nil
	})
	if scan.Frames > 0 && scan.First != s.Next {
		s.Damage = &log.Bad{Name: log.Name(n), Why: fmt.Sprintf("it begins with operation %d, and %d was to come", scan.First, s.Next)}
		return 0, false, s.begin(r, to, n)
	}
	if bad != nil {
		s.Damage = bad
	}
	if s.Frames += scan.Frames; scan.Frames > 0 {
		s.Next = scan.Next
	}
	if err := log.Copy(to, info, n, data, scan.End); err != nil {
		return 0, false, err
	}
	if goOn = bad == nil && scan.Sealed; goOn && i+1 == len(r.segments) {
		s.Damage = &log.Bad{Name: log.Name(n + 1), Why: "this part of the log is missing"}
		return scan.End, false, s.begin(r, to, n+1)
	}
	if bad == nil && !scan.Sealed && s.Damage == nil {
		s.Damage = s.behind(r, i, scan.End)
	}
	return scan.End, goOn, nil
}

// behind returns what is wrong with the segments behind the last of the log, as Open says
// it: there may be nothing in them.
func (s *Salvaged) behind(r *recovery, i int, end int64) error {
	for _, n := range r.segments[i+1:] {
		scan, err := r.checkOne(n)
		if err != nil {
			return err
		}
		if scan.Frames > 0 || scan.Torn > 0 {
			return &log.Bad{Name: log.Name(r.segments[i]), Offset: end, Why: goesOn}
		}
	}
	return nil
}

// begin makes an empty segment, since the one before says that the log goes on there.
func (s *Salvaged) begin(r *recovery, to disk.Folder, segment uint64) error {
	return log.Copy(to, r.info, segment, nil, 0)
}

// copyFile copies a file, and makes it durable.
func copyFile(from, to disk.Folder, name string) error {
	f, err := whole(from, name)
	if err != nil {
		return err
	}
	defer f.Close()
	g, err := to.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(g, 0), f)
	if err == nil {
		err = g.Sync()
	}
	return errors.Join(err, g.Close())
}
