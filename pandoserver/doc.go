// Package pandoserver puts an index on the wire: clients and tools of redis speak to it.
//
//	s, err := pandoserver.New(pandoserver.Store(store))
//	l, err := pandoserver.Listen("127.0.0.1:6379")
//	err = s.Serve(ctx, l) // until ctx is done
//
// A Source is what is served: a tree in memory, a store, a file, or what a program brings.
// Everything that one read of a connection has brought is done as batches, which is where an
// index is fast. docs/server.md says what there is, and its limits.
package pandoserver
