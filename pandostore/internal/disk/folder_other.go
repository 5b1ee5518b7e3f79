//go:build !unix

package disk

import "os"

// noFollow does nothing: files cannot be kept from being opened through a link here.
const noFollow = 0

// lockFolder does nothing: folders cannot be locked here.
func lockFolder(string) (*os.File, bool) { return nil, true }
