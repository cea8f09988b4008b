//go:build race

package keyring

// raceEnabled: the race detector makes pools drop things on purpose.
const raceEnabled = true
