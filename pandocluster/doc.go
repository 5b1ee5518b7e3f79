// Package pandocluster is one ordered map over several machines: keys and values are bytes, in ranges of keys, each of
// which has replicas on several nodes. A Node is a process of it, and what package pandoserver puts on the wire.
//
// Any node takes any operation. What it returns without an error is on the disks of a majority of the replicas, and
// reads see all that was returned before they began. A batch is done whole, or not at all, in each range; across ranges it
// is not one moment. Node.GetStale alone may return what was so some time ago, and says how long.
package pandocluster
