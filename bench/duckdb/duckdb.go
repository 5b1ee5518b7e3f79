//go:build linux || darwin

package duckdb

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/pando-index/pando"
)

// api is what is used of DuckDB's functions in C.
type api struct {
	open           func(path uintptr, db *uintptr) uint32
	close          func(db *uintptr)
	connect        func(db uintptr, con *uintptr) uint32
	disconnect     func(con *uintptr)
	query          func(con uintptr, sql string, out *result) uint32
	destroyResult  func(r *result)
	resultError    func(r *result) string
	unsigned       func(r *result, col, row uint64) uint64
	double         func(r *result, col, row uint64) float64
	newType        func(kind uint32) uintptr
	destroyType    func(t *uintptr)
	newAppender    func(con, schema uintptr, table string, out *uintptr) uint32
	append         func(a, chunk uintptr) uint32
	endAppender    func(a *uintptr) uint32
	newChunk       func(types *uintptr, columns uint64) uintptr
	destroyChunk   func(chunk *uintptr)
	vector         func(chunk uintptr, column uint64) uintptr
	vectorData     func(vector uintptr) unsafe.Pointer
	vectorRoom     func() uint64
	setRows        func(chunk uintptr, rows uint64)
	libraryVersion func() string
}

// result is duckdb_result, whose fields are the library's.
type result [8]uint64

func load() (*api, error) {
	name := os.Getenv(variable)
	if name == "" {
		name = "libduckdb.so"
	}
	lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", ErrNoLibrary, err)
	}
	a := new(api)
	for function, symbol := range map[any]string{
		&a.open: "open", &a.close: "close", &a.connect: "connect", &a.disconnect: "disconnect",
		&a.query: "query", &a.destroyResult: "destroy_result", &a.resultError: "result_error",
		&a.unsigned: "value_uint64", &a.double: "value_double",
		&a.newType: "create_logical_type", &a.destroyType: "destroy_logical_type",
		&a.newAppender: "appender_create", &a.append: "append_data_chunk", &a.endAppender: "appender_destroy",
		&a.newChunk: "create_data_chunk", &a.destroyChunk: "destroy_data_chunk", &a.setRows: "data_chunk_set_size",
		&a.vector: "data_chunk_get_vector", &a.vectorData: "vector_get_data", &a.vectorRoom: "vector_size",
		&a.libraryVersion: "library_version",
	} {
		at, err := purego.Dlsym(lib, "duckdb_"+symbol)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		purego.RegisterFunc(function, at)
	}
	return a, nil
}

// Column is a table in memory with one column. One goroutine may use it at a
// time.
type Column[V pando.Number] struct {
	api     *api
	db, con uintptr
}

// Load makes a table of values that threads threads work on.
func Load[V pando.Number](vals []V, threads int) (*Column[V], error) {
	a, err := load()
	if err != nil {
		return nil, err
	}
	c := &Column[V]{api: a}
	if a.open(0, &c.db) != 0 || a.connect(c.db, &c.con) != 0 {
		c.Close()
		return nil, errors.New("duckdb: the database does not open")
	}
	name, kind := c.kind()
	err = c.exec(fmt.Sprintf("SET threads = %d; CREATE TABLE entries (v %s NOT NULL)", threads, name), nil)
	if err == nil {
		err = c.fill(vals, kind)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// kind returns the name of the column's type, and its number in C.
func (c *Column[V]) kind() (name string, number uint32) {
	switch reflect.TypeFor[V]().Kind() {
	case reflect.Int8:
		return "TINYINT", 2
	case reflect.Int16:
		return "SMALLINT", 3
	case reflect.Int32:
		return "INTEGER", 4
	case reflect.Int64, reflect.Int:
		return "BIGINT", 5
	case reflect.Uint8:
		return "UTINYINT", 6
	case reflect.Uint16:
		return "USMALLINT", 7
	case reflect.Uint32:
		return "UINTEGER", 8
	case reflect.Float32:
		return "FLOAT", 10
	case reflect.Float64:
		return "DOUBLE", 11
	}
	return "UBIGINT", 9
}

func (c *Column[V]) fill(vals []V, kind uint32) error {
	a := c.api
	typ := a.newType(kind)
	defer a.destroyType(&typ)
	chunk := a.newChunk(&typ, 1)
	defer a.destroyChunk(&chunk)
	var appender uintptr
	if a.newAppender(c.con, 0, "entries", &appender) != 0 {
		return errors.New("duckdb: the table takes no values")
	}
	data := unsafe.Slice((*V)(a.vectorData(a.vector(chunk, 0))), a.vectorRoom())
	for len(vals) > 0 {
		n := copy(data, vals)
		vals = vals[n:]
		a.setRows(chunk, uint64(n))
		if a.append(appender, chunk) != 0 {
			a.endAppender(&appender)
			return errors.New("duckdb: the table takes no more values")
		}
	}
	if a.endAppender(&appender) != 0 {
		return errors.New("duckdb: the values were not taken")
	}
	return nil
}

// Aggregate returns count, sum, least, greatest and mean of all values in the way
// of the database; of these the count and the sum, which wraps as Go's does.
func (c *Column[V]) Aggregate() (count int, sum V, err error) {
	total := "sum(v)"
	float := V(1)/2 != 0
	if !float {
		total = "(sum(v) % 18446744073709551616)::UBIGINT"
	}
	err = c.exec("SELECT count(*)::UBIGINT, "+total+", min(v), max(v), avg(v) FROM entries", func(r *result) {
		count = int(c.api.unsigned(r, 0, 0))
		if float {
			sum = V(c.api.double(r, 1, 0))
		} else {
			sum = V(c.api.unsigned(r, 1, 0))
		}
	})
	return count, sum, err
}

// Version returns the library's.
func (c *Column[V]) Version() string { return c.api.libraryVersion() }

// exec runs statements and hands their result to read.
func (c *Column[V]) exec(sql string, read func(*result)) error {
	var r result
	defer runtime.KeepAlive(&r)
	defer c.api.destroyResult(&r)
	if c.api.query(c.con, sql, &r) != 0 {
		return fmt.Errorf("duckdb: %s", strings.TrimSpace(c.api.resultError(&r)))
	}
	if read != nil {
		read(&r)
	}
	return nil
}

// Close frees the table.
func (c *Column[V]) Close() {
	if c.con != 0 {
		c.api.disconnect(&c.con)
	}
	if c.db != 0 {
		c.api.close(&c.db)
	}
}
