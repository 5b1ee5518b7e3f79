package pandoserver

import (
	"errors"
	"slices"
	"time"

	"github.com/pando-index/pando/internal/mutant"
)

// transaction is several commands that nobody else's changes come between.
type transaction struct {
	of    *session
	views map[*served]*overlay
	order []*served
	whole bool // MULTI and EXEC: all of it or nothing is done
	steps int  // of its commands, and of what they read and change
	bytes int  // of keys and values that its overlays hold
}

// A transaction keeps everybody else waiting who changes something, so its steps are bounded: an entry that
// is gone over is one, and all of them take about a second. Other commands that are done as one stop and go on where
// they have taken a part of that.
const (
	mostSteps      = 1 << 24
	partOf         = 64
	stepsOfCommand = 8
	stepTime       = 250 * time.Nanosecond // of a command that is about no entries: more than a step takes, since the time may be others'
)

var (
	errSteps    = errors.New("transaction takes too long: it goes over too many entries or changes")
	errLongExec = errors.New("transaction exceeds its limit of memory: its replies are too long")
	errValues   = errors.New("transaction exceeds its limit of memory: its new values are too long")
	errTwoSides = errors.New("transaction changes several indexes: it can change one, as a crash between two could lose one of the changes")
)

// over returns why a transaction cannot go on, or nil.
func (tx *transaction) over() error {
	switch {
	case tx.whole && tx.steps > tx.of.srv.cfg.steps:
		return errSteps
	case tx.whole && tx.bytes > tx.of.srv.cfg.reply:
		return errValues
	case tx.whole && tx.of.w.Over() && !(mutant.On && mutant.Is("server: replies of a transaction")):
		return errLongExec
	}
	return nil
}

// did takes note of a command that has begun at a time, and of its reply's bytes.
func (tx *transaction) did(cmd *command, began time.Time, reply int) {
	tx.steps += stepsOfCommand + reply/stepBytes
	if cmd.flags&(reads|writes) == 0 {
		tx.steps += int(time.Since(began) / stepTime)
	}
}

// view returns a served index as the transaction has changed it.
func (tx *transaction) view(on *served) Source {
	base, ok := on.src.(Changer)
	if !ok {
		return watchedBy(on.src, tx)
	}
	if tx.views[on] == nil {
		tx.views[on] = newOverlay(base, tx)
		tx.order = append(tx.order, on)
	}
	return tx.views[on]
}

// commit does what the transaction has changed. It is one batch, and so of one index.
func (tx *transaction) commit() error {
	var changed *overlay
	for _, on := range tx.order {
		o := tx.views[on]
		switch {
		case len(o.changed) == 0:
		case changed != nil:
			return errTwoSides
		default:
			changed = o
		}
	}
	if changed == nil {
		return nil
	}
	return changed.commit()
}

// asOne does commands as one change: each sees what those before it did, nobody else
// changes anything meanwhile, and all that they do to an index is one Apply, so that all of it
// or nothing survives a crash. If Apply fails, its error is the reply. A transaction is all of
// them, and its replies are an array. Others stop where replies are many, or where they have kept others
// waiting, and the result is how many are done.
func (s *session) asOne(calls []call, whole bool) (done int) {
	mark, before, db := s.w.Mark(), s.w.Len(), s.db
	if whole {
		s.w.Array(len(calls))
	}
	err := func() error {
		if s.srv.changeable(calls) && !(mutant.On && mutant.Is("server: transaction alone")) {
			s.srv.changes.Lock()
			defer s.srv.changes.Unlock()
		}
		tx := &transaction{of: s, views: map[*served]*overlay{}, whole: whole}
		for done < len(calls) && (whole || s.w.Len() <= before+s.flushAt() && tx.steps <= s.srv.cfg.steps/partOf && tx.bytes <= valuesAtOnce) {
			c := &calls[done]
			apart := c.cmd.flags&ordered != 0 // of an index that it names
			if !whole && apart && done > 0 {
				break
			}
			c.tx = tx
			began, written := time.Now(), s.w.Len()
			if whole { // those of EXEC are calls by themselves
				c.timed(c.do)
			} else {
				s.counted(c.cmd, c.do)
			}
			done++
			tx.did(c.cmd, began, s.w.Len()-written)
			if err := tx.over(); err != nil {
				return err
			}
			if !whole && apart {
				break
			}
		}
		return tx.commit()
	}()
	if err == nil {
		return done
	}
	s.w.Cut(mark)
	if whole { // nothing of it is done, SELECT neither
		s.use(db)
	}
	s.w.Error(s.problem(err))
	for i := 1; i < done && !whole; i++ {
		s.w.Error(s.problem(err))
	}
	for i := range done {
		s.srv.failed(calls[i].cmd, 1)
	}
	return done
}

// changeable reports whether commands may be about an index that can be changed: they may select another one. Others need
// not keep anybody waiting.
func (s *Server) changeable(calls []call) bool {
	return slices.ContainsFunc(s.dbs, func(d *served) bool { return d.live.Changer != nil }) &&
		slices.ContainsFunc(calls, func(c call) bool { return c.cmd.flags&(reads|writes) != 0 })
}
