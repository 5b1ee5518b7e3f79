package index

import (
	"cmp"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Compact builds an index of its own from one that shares memory with something else: by
// its engine where that can, else from a copy of all entries. It keeps the note, unless cfg
// has another.
func (ix *Index) Compact(cfg Config, codec *Codec) (*Index, error) {
	cfg.Note = cmp.Or(cfg.Note, ix.note)
	if e, can := ix.Engine.(Compacter); can {
		if own, ok, err := e.Compact(cfg, codec); ok {
			return own, err
		}
	}
	val := ix.values.ValueType
	keys, vals := MakeKeys(ix.key.Type, ix.n), val.Zeros(ix.n)
	const piece = 64 << 10
	failed := make([]error, (ix.n+piece-1)/piece)
	par.Run(par.Workers(cfg.Workers), len(failed), par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, ix.n)
		failed[p] = ix.tryCopyOut(lo, keys.Slice(lo, hi), val.Part(vals, lo, hi))
	}))
	if err := cmp.Or(failed...); err != nil {
		return nil, err
	}
	return Build(keys, ix.key, vals, val, cfg, codec)
}

// MakeKeys returns n keys of a type, all zero.
func MakeKeys(t order.Type, n int) order.Keys {
	if t.Bits() == 0 {
		return order.KeysAs(t, make([]string, n))
	}
	return order.MakeKeys(t, n)
}
