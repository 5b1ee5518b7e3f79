//go:build !unix

package disk

import (
	"io/fs"
	"os"
)

// noFollow does nothing: files cannot be kept from being opened through a link here.
const noFollow = 0

// errReadOnly is the error of a file system that nobody can write to.
var errReadOnly = fs.ErrPermission

// lockFolder does nothing: folders cannot be locked here.
func lockFolder(string) (*os.File, bool) { return nil, true }
