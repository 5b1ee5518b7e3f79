// Package duckdb asks DuckDB, a database for analytics, as a peer of operations
// on whole columns. Its library is not part of this repository: it is opened
// where it is, without a compiler.
package duckdb

import "errors"

// variable is the environment variable with the library's path. Without it the
// system's loader is asked.
const variable = "PANDO_DUCKDB"

// ErrNoLibrary is returned where the library is not installed.
var ErrNoLibrary = errors.New("its library, libduckdb.so, is not here; " + variable + "=FILE says where it is")
