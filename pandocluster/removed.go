package pandocluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// This file is how a node that was removed stays out: its certificate is good for a year, but the map says when it was removed,
// and all nodes keep that.

// admits returns why a node is refused, though its certificate, which was made at some time, is one of the cluster.
func (n *Node) admits(name string, issued time.Time) error {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	for id, p := range n.peers {
		if nameOf(id) == name && issued.Unix() < p.removed {
			return fmt.Errorf("node %s was removed from the cluster: to let it in as a new one, make a new certificate for it (pando cluster add %s)", name, name)
		}
	}
	return nil
}

// nameOf returns the name in the certificate of a node.
func nameOf(id string) string {
	name, _, _ := strings.Cut(id, ".")
	return name
}

// another reports whether there is another node with the name of one: it may have the same certificate.
func (n *Node) another(id string) bool {
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	for other, p := range n.peers {
		if other != id && nameOf(other) == nameOf(id) && !p.gone {
			return true
		}
	}
	return false
}

// appendRemoved appends to a message, or to what the node keeps, which nodes were removed, and when.
func appendRemoved(b []byte, peers map[string]peer) []byte {
	some := uint64(0)
	var list []byte
	for id, p := range peers {
		if p.removed > 0 && !(mutant.On && mutant.Is("cluster: removals are kept")) {
			list = packet.Uint(packet.Bytes(list, id), uint64(p.removed))
			some++
		}
	}
	return append(packet.Uint(b, some), list...)
}

// learnRemoved reads that.
func (n *Node) learnRemoved(r *packet.Reader) {
	if len(r.Rest()) == 0 {
		return // nothing, or of an older version
	}
	n.peersMu.Lock()
	defer n.peersMu.Unlock()
	for range r.Count() {
		id, removed := r.String(), int64(r.Uint())
		if p, ok := n.peers[id]; ok && r.Err() == nil {
			p.gone, p.removed = true, max(p.removed, removed)
			n.peers[id] = p
		}
	}
}
