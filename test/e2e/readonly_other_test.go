//go:build !linux

package e2e

import "testing"

func readOnly(t *testing.T, _ string) {
	t.Helper()
	t.Skip("mounts are tried on Linux only")
}

func smallDisk(t *testing.T, _, _ string) {
	t.Helper()
	t.Skip("mounts are tried on Linux only")
}
