package peer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Why a connection was not opened, beside errors of the network and of TLS.
var (
	// ErrOtherCluster: the two nodes are of different clusters.
	ErrOtherCluster = errors.New("the node is one of another cluster")
	// ErrReplaced: the cluster that a node is of is no more: another one was made of the
	// data of one of its nodes.
	ErrReplaced = errors.New("the cluster was recovered from the data of one node")
	// ErrNoCluster: one of the two nodes has no cluster yet, and the service is for
	// nodes of one cluster.
	ErrNoCluster = errors.New("the node has no cluster yet")
	// ErrOtherNode: the address reaches another node than the one that was meant.
	ErrOtherNode = errors.New("the address reaches another node")
	// ErrOtherName: a node calls itself by a name that its certificate is not for.
	ErrOtherName = errors.New("the node's certificate is another node's")
	// ErrNotAdmitted: the node that was connected to does not take this one.
	ErrNotAdmitted = errors.New("the node was not admitted")
	// ErrNoService: the node does not have the service, or not yet.
	ErrNoService = errors.New("the node does not have the service")
	// ErrBusy: the service has many connections that it has not taken yet.
	ErrBusy = errors.New("the node is busy")
	// ErrProtocol: what answers does not speak this protocol, or another version of it.
	ErrProtocol = errors.New("not a peer of this version")
	// ErrClosed: the port was closed.
	ErrClosed = errors.New("the peer port is closed")
)

// Identity says who a node is.
type Identity struct {
	// Cluster is the cluster's id, empty while the node does not know it.
	Cluster string
	// Node is the name that the cluster knows the node by, <id>-<incarnation>. The id
	// is that of the node's certificate.
	Node string
}

// IDOf returns the id in a node's name: what is before the last "-", for an incarnation
// holds none. A name without one is an id.
func IDOf(name string) string {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		return name[:i]
	}
	return name
}

// Each side writes one message after TLS, in front of what the service says: the
// length of the rest in two bytes, then JSON.
//
//	+-----------------+----------------+
//	| u16, big-endian | JSON           |
//	| length          | hello / answer |
//	+-----------------+----------------+
const (
	version    = 1
	maxMessage = 4 << 10
	maxName    = 255 // bytes of a node's name, a cluster's id or a service's name
)

// hello opens a connection.
type hello struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster,omitempty"`
	From    string `json:"from"`
	// To is the node that is meant; empty if the address is all that is known.
	To      string `json:"to,omitempty"`
	Service string `json:"service"`
}

// answer says whether it is open, and whom it reached.
type answer struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster,omitempty"`
	Node    string `json:"node"`
	Code    string `json:"code,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// refusals maps the codes of an answer to errors.
var refusals = map[string]error{
	"other_cluster": ErrOtherCluster,
	"replaced":      ErrReplaced,
	"no_cluster":    ErrNoCluster,
	"other_name":    ErrOtherName,
	"other_node":    ErrOtherNode,
	"not_admitted":  ErrNotAdmitted,
	"no_service":    ErrNoService,
	"busy":          ErrBusy,
	"version":       ErrProtocol,
}

// codeOf returns the code of an error, empty if it is none of those.
func codeOf(err error) string {
	for code, is := range refusals {
		if errors.Is(err, is) {
			return code
		}
	}
	return ""
}

// isRefusal reports whether somebody with a certificate of the cluster was refused.
func isRefusal(err error) bool { return codeOf(err) != "" }

func writeMessage(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("%w: a message of %d bytes", ErrProtocol, len(body))
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...))
	return err
}

// readMessage reads exactly one message: what follows belongs to the service.
func readMessage(r io.Reader, into any) error {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint16(size[:])
	if n > maxMessage {
		return fmt.Errorf("%w: a message of %d bytes", ErrProtocol, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}
