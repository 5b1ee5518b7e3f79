// Package pandohttp serves the indexes of a pandoserver.Server by HTTP: ranges, lookups, sums and batches as
// Arrow streams, Parquet, CSV or JSON, so that curl, browsers and programs in any language need nothing of ours.
//
//	s, err := pandoserver.New(pandoserver.Store(store))
//	h, err := pandohttp.New(s)
//	l, err := pandoserver.Listen("127.0.0.1:6380")
//	err = h.Serve(ctx, l) // until ctx is done
//
// A Server is an http.Handler, too. What one change does, clients of redis' protocol and others see as they see each
// other's changes. docs/server.md has the routes and the limits; the server itself describes them at
// /openapi.json.
package pandohttp
