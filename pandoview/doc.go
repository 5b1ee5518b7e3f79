// Package pandoview shows an index in a browser: its levels, nodes and keys, the
// way of a search, changes and kernels step by step, and the life of a tree that
// others change.
//
//	http.Handle("/debug/pando/", http.StripPrefix("/debug/pando", pandoview.Handler(tree)))
//	http.ListenAndServe("localhost:6060", nil)
//
// The command `pando view FILE` serves the same page for a file.
//
// # What it costs
//
// Nothing while the page is closed. An open page reads nodes as any reader does: no
// lock that searches or changes wait for is held. Inserts, batches and kernels are
// shown on a small tree made of the index's own keys, so that looking never changes
// an index. Only "watch" attaches a recorder to the tree itself, for at most two
// seconds and some thousand events.
//
// # Caveats
//
// The page shows keys and values to everyone who can reach it. Handler answers
// requests that name a loopback host (localhost, 127.0.0.1 or [::1]) and come from
// its own page; Hosts allows others. Whether a connection comes from elsewhere is
// the listener's to say: listen on a loopback address.
package pandoview
