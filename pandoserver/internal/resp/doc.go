// Package resp reads and writes the protocol of redis, in its versions 2 and 3.
package resp
