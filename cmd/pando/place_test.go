package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/live"
)

// Who asks for a GPU that the machine does not have is told that the CPU answers.
func TestNoGPUIsTold(t *testing.T) {
	t.Cleanup(live.LinkGPUs(func(int) (device.Device, error) { return nil, device.ErrNoDriver }))
	folder := t.TempDir()
	table, file := filepath.Join(folder, "t.csv"), filepath.Join(folder, "t.pando")
	must(t, "gen", "-n", "10", "--dist", "dense", "-o", table)
	must(t, "build", table, "-o", file, "-k", "key", "-v", "value", "-q")
	for _, args := range [][]string{{"get", file, "1"}, {"rank", file, "1"}, {"join", file, table, "--on", "key", "--as", "v", "-q"}} {
		for device, told := range map[string]bool{"gpu:0": true, "hybrid:0": true, "cpu": false, "auto": false} {
			var errs bytes.Buffer
			code := run(append(args, "-d", device), new(bytes.Buffer), &errs)
			want := "--device " + device + ": the CPU answers instead (no GPU driver on this machine)"
			if code != exitOK || strings.Contains(errs.String(), want) != told {
				t.Errorf("pando %v -d %s: exit code %d, stderr %q", args, device, code, errs.String())
			}
		}
	}
}
