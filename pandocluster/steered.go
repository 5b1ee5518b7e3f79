package pandocluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// An order of somebody who steers is a Step as JSON, in which one without a kind asks for the picture; or a byte, and what belongs to it:
const (
	orderExport  = iota + 1 // a key: export its range from there on
	orderChunk              // a node and the number of an export there: some of it
	orderCount              // how many keys there are
	orderSet                // keys and values
	orderCluster            // for the id of the cluster
)

// steered does what somebody asks for who steers.
func (n *Node) steered(ctx context.Context, order []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, n.o.Timeout)
	defer cancel()
	r := packet.Read(order)
	switch r.Byte() {
	case orderExport:
		return n.exportFrom(ctx, r.String())
	case orderChunk:
		node, number := r.String(), r.Uint()
		a, err := n.ask(ctx, node, askChunk, 0, packet.Uint(nil, number), nil)
		if err == nil {
			err = a.err()
		}
		if err != nil {
			return nil, err
		}
		return a.body.Rest(), nil
	case orderCluster:
		return []byte(n.Cluster()), nil
	case orderCount:
		count, err := n.count(ctx, machine.Span{})
		return packet.Uint(nil, uint64(count)), err
	case orderSet:
		var ops []pando.Op
		var keys []string
		var vals [][]byte
		for range r.Count() {
			ops, keys, vals = append(ops, pando.OpSet), append(keys, r.String()), append(vals, r.Bytes())
		}
		if r.Err() != nil {
			return nil, r.Err()
		}
		return nil, n.Apply(ops, keys, vals, nil)
	}
	var s Step
	if err := json.Unmarshal(order, &s); err != nil {
		return nil, err
	}
	if s.Kind != 0 {
		return nil, n.Do(ctx, s)
	}
	p, err := n.Picture(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// exportFrom has a node begin to export the range that has a key, and returns which, the number of the export, and the end of the
// range.
func (n *Node) exportFrom(ctx context.Context, key string) (answer []byte, err error) {
	err = n.retry(ctx, func() error {
		of, ok := n.routes.find(key)
		if !ok {
			return ErrUnavailable
		}
		err := error(ErrUnavailable)
		for _, node := range n.targets(of.id) {
			a, failed := n.ask(ctx, node, askExport, of.id, packet.Bytes(nil, key), nil)
			if failed == nil {
				failed = a.err()
			}
			if failed == nil {
				answer = append(packet.Bytes(nil, node), a.body.Rest()...)
				return nil
			}
			err = fmt.Errorf("range %d on %s: %w", of.id, node, failed)
		}
		return err
	})
	return answer, err
}
