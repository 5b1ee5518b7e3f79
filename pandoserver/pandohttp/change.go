package pandohttp

import (
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/table"
	"github.com/pando-index/pando/pandoserver"
)

// changes are those of a request, which are done as one batch.
type changes struct {
	ops           []pando.Op
	keys          []string
	vals          [][]byte
	sets, deletes int
}

// rowBytes is what an operation takes in memory beside its key and value.
const rowBytes = 96

// add adds an operation.
func (c *changes) add(q *request, op pando.Op, key, val string) error {
	if err := q.take(int64(len(key)+len(val)) + rowBytes); err != nil {
		return err
	}
	c.ops, c.keys = append(c.ops, op), append(c.keys, key)
	c.vals = append(c.vals, unsafe.Slice(unsafe.StringData(val), len(val))) // an index copies what it keeps
	if op == pando.OpSet {
		c.sets++
		q.on.Saw(len(val))
	} else {
		c.deletes++
	}
	return nil
}

// allowed returns an error if a user may not do those that have come since before.
func (c *changes) allowed(q *request, before *changes) error {
	keys := c.keys[len(before.keys):]
	if c.sets > before.sets {
		if err := q.may(keys...); err != nil {
			return err
		}
	}
	if c.deletes > before.deletes {
		return q.mayDo("del", keys...)
	}
	return nil
}

// batch sets and deletes what the body says: all of it, or nothing.
func (q *request) batch() error {
	var c changes
	if err := q.may(); err != nil && q.mayDo("del") != nil {
		return err // whatever the body says
	}
	err := q.rows([]string{"key", "value", "op"}, 1, func(columns []*cells, rows int) error {
		before := c
		keys, vals, ops := columns[0], columns[1], columns[2]
		if vals == nil && ops == nil {
			return bad("the body has no column value; for keys to be deleted take DELETE, or a column op")
		}
		for i := range rows {
			if keys.isNull(i) {
				return bad("a row has no key; leave it out, as nothing was changed")
			}
			key, op := keys.texts[i], "set"
			if ops != nil && !ops.isNull(i) {
				op = ops.texts[i]
			}
			switch {
			case op == "delete":
				if err := c.add(q, pando.OpDelete, key, ""); err != nil {
					return err
				}
			case op != "set" && op != "":
				return bad("op is %q for the key %q; take set or delete", origin.Clip(op), origin.Clip(key))
			case vals == nil || vals.isNull(i):
				return bad("the key %q has no value; to delete it, say so in a column op", origin.Clip(key))
			default:
				if err := c.add(q, pando.OpSet, key, vals.texts[i]); err != nil {
					return err
				}
			}
		}
		return c.allowed(q, &before)
	})
	if err == nil && len(c.ops) == 0 {
		err = q.may()
	}
	if err == nil && len(c.ops) > 0 {
		err = q.src.(pandoserver.Changer).Apply(c.ops, c.keys, c.vals, nil)
	}
	if err != nil {
		return err
	}
	return q.single([]table.Field{{Name: "set", Type: table.Int64}, {Name: "deleted", Type: table.Int64}}, func(a *answer) {
		a.int(0, c.sets)
		a.int(1, c.deletes)
	})
}

// deleteKeys deletes the keys of the address, or of the body.
func (q *request) deleteKeys() error {
	var c changes
	if err := q.may(); err != nil {
		return err // whatever the body says
	}
	named := q.args["key"]
	switch {
	case len(named) > 0 && q.r.ContentLength != 0:
		return bad("there are keys in the address, and a body; take one of them")
	case len(named) > 0:
		for _, key := range named {
			if err := c.add(q, pando.OpDelete, key, ""); err != nil {
				return err
			}
		}
	case q.r.ContentLength == 0:
		return bad("which keys?; name them as key=..., or send a body of them")
	default:
		for keys, err := range q.keyBatches() {
			if err == nil {
				err = q.may(keys...)
			}
			if err != nil {
				return err
			}
			for _, key := range keys {
				if err := c.add(q, pando.OpDelete, key, ""); err != nil {
					return err
				}
			}
		}
	}
	if err := q.may(named...); err != nil {
		return err
	}
	found := make([]bool, len(c.keys))
	if len(found) > 0 {
		if err := q.src.(pandoserver.Changer).Apply(c.ops, c.keys, nil, found); err != nil {
			return err
		}
	}
	n := 0
	for _, had := range found {
		if had {
			n++
		}
	}
	return q.oneNumber("deleted", n)
}

func (q *request) deleteRange() error {
	b, err := q.bounds()
	if err != nil {
		return err
	}
	if b.From == pandoserver.Open && b.To == pandoserver.Open {
		return bad("a range without ends is everything; name lo, hi, after or before, or delete all by lo=")
	}
	return q.deleteWithin(b)
}

func (q *request) deletePrefix() error {
	b, err := q.prefixed(q.args.Get("prefix"))
	if err != nil {
		return err
	}
	return q.deleteWithin(b)
}

func (q *request) deleteWithin(b pandoserver.Bounds) error {
	if err := q.mayRange(b); err != nil {
		return err
	}
	n, err := q.src.(pandoserver.Changer).DeleteRange(b)
	if err != nil {
		return err
	}
	return q.oneNumber("deleted", n)
}
