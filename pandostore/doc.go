// Package pandostore is a pando.Tree that outlives its process: a folder with a log and
// checkpoints.
//
//	s, err := pandostore.Open[string, []byte]("data") // made if it is not there; recovers what is
//	err = s.Set("key", []byte("value"))               // returns when it is on disk
//	err = s.SetBatch(keys, vals)                      // all of it or nothing survives a crash
//	v, ok := s.Get("key")                             // reads are the tree's own, and wait for nobody
//	err = s.Close()
//
// Every change that was acknowledged is there after a kill, a crash of the machine or a
// full disk. docs/store.md says why.
package pandostore
