package keyring

import "errors"

// Sentinels, for errors.Is. Errors never carry a subject's name.
var (
	// ErrNoKey: never heard of. For an id found in the log this is corruption.
	ErrNoKey = errors.New("no such key")
	// ErrDestroyed: the key existed and was destroyed on purpose.
	ErrDestroyed = errors.New("key destroyed")
	// ErrSealBroken: the sealed bytes, their identity, additional data or key do not belong together.
	ErrSealBroken = errors.New("seal broken")
	// ErrNoKeyring: nothing is there and Options.AllowCreate is not set.
	ErrNoKeyring = errors.New("no keyring")
	// ErrExists: Import would replace a keyring.
	ErrExists = errors.New("a keyring exists already")
	// ErrMasterKeyLost: the keyring is there, the master key it was sealed under is not.
	ErrMasterKeyLost = errors.New("master key lost")
	// ErrMasterSource: Options.Master gives no master key.
	ErrMasterSource = errors.New("no master key from its source")
	// ErrMode: others than its owner may read a key file, or change the folder.
	ErrMode = errors.New("keys are open to others")
	// ErrNodeSecretLost: the keyring is there, the node's secret is not.
	ErrNodeSecretLost = errors.New("node secret lost")
	// ErrStorageKeysLost: the keyring is there, the storage keys that belong to it
	// are not. What they encrypt is built again from the log.
	ErrStorageKeysLost = errors.New("storage keys lost")
	// ErrDamaged: no intact copy is left.
	ErrDamaged = errors.New("keyring damaged")
	// ErrNewerFormat: written by a newer version of the program.
	ErrNewerFormat = errors.New("keyring has a newer format")
	// ErrOlderFormat: written by an early version of the program, whose files are
	// not read any more.
	ErrOlderFormat = errors.New("keyring has an older format, which is not read any more")
	// ErrNotDestroyable: the node and cluster keys, and combined keys (destroy a member instead).
	ErrNotDestroyable = errors.New("key cannot be destroyed by itself")
	// ErrOvertaken: keys were destroyed again and again while a command waited for its turn.
	ErrOvertaken = errors.New("overtaken by other commands")
	// ErrBlank: the keyring was opened to be filled by its group's snapshot, which has
	// not come yet.
	ErrBlank = errors.New("the keyring has not got the cluster's keys yet")
	// ErrNoGroup: a keyring that is opened for a group is in none yet, or one that is
	// not opened for a group was given one.
	ErrNoGroup = errors.New("the keyring is in no group")
	// ErrClosed: the keyring, or the one that the key came from, is closed.
	ErrClosed = errors.New("keyring closed")
)

// errRepeats never comes by chance.
var errRepeats = errors.New("a new key's id is taken: randomness repeats")
