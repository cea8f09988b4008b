package node

import (
	"errors"
	"fmt"

	"mneme/internal/cluster"
	"mneme/internal/keyring"
	"mneme/internal/raftfsm"
	"mneme/internal/storage/encfs"
)

// Where the keys of a node of several are gone or another cluster's, its start says so before
// it writes anything, and names the way back that the other nodes offer: they have every key.

// keysThere refuses a node of a cluster whose keyring is gone, before it takes the operator
// token of the others: keys/ would be there again, with nothing in it but that.
func (c *core) keysThere() error {
	if c.dir.fresh || (facts{c.dir}).identity().Cluster == "" {
		return nil
	}
	if exists, err := keyring.Exists(c.cfg.FS, c.dir.keys()); exists || err != nil {
		return nil // openKeys says what is wrong with it
	}
	return c.lostKeys(fmt.Errorf("open keyring in %s: %w", c.dir.keys(), keyring.ErrNoKeyring))
}

// lostKeys says why the keyring does not open, and what helps.
func (c *core) lostKeys(err error) error {
	err = startError("keyring", err)
	var e *StartError
	if !errors.As(err, &e) || e.Kind != StartLostKey || c.dir.node.Cluster == nil || len(c.dir.node.Cluster.Members) < 2 {
		return err
	}
	with := *e
	with.Hint = fmt.Sprintf("put keys/ back as this node had it last; nothing was changed. Where it is lost, the other nodes have every key: memctl cluster remove %s at one of them, and start this node with an empty data directory", c.dir.name())
	return &with
}

// foreignKeys says that keys/ is another cluster's, if it is: its operator token is another
// one then, too, and that is met first.
func (c *core) foreignKeys() error {
	known, err := (facts{c.dir}).Load()
	if err != nil || known.Cluster == "" {
		return nil
	}
	keys, err := keyring.Open(keyring.Options{Dir: c.dir.keys(), Master: c.cfg.MasterKey, FS: c.cfg.FS, Group: true})
	if err != nil {
		return nil // another token is all that is known
	}
	found, err := raftfsm.Inspect(raftfsm.Options{Dir: c.dir.keyGroup(), FS: encfs.New(c.cfg.FS, keys.Storage()), Sealer: encfs.NewBox(keys.Storage(), keyGroupLabel), ID: c.dir.name()})
	if err = errors.Join(err, keys.Close()); err != nil {
		return nil
	}
	return clusterError(known.Foreign(groupKeys, found.Members))
}

// otherToken is an error of forming a cluster, or what is behind it.
func (c *core) otherToken(err error) error {
	if errors.Is(err, cluster.ErrOtherToken) {
		if foreign := c.foreignKeys(); foreign != nil {
			return foreign
		}
	}
	return clusterError(err)
}
