package events

import (
	"encoding/binary"
	"fmt"
)

// A feature level says what a reader of the log must understand. A frame carries that of
// its events, and stops a program that knows less with ErrNewer. A writer goes beyond
// BaseLevel only behind a level.raised, which is written once every node of the cluster
// knows the level: until then any of them can be put back to the program before.

// FeatureLevel is the highest level that this program knows.
const FeatureLevel = featureRead

// BaseLevel is the highest level that may be used without a level.raised.
const BaseLevel = featureHome

const (
	featureFirst  = 1 // what every program knows
	featureActor  = 2 // a header names a principal or a directory position
	featureHome   = 3 // a header names a namespace's home
	featureRaised = 4 // the log says which level may be used
	featureGraph  = 5 // graph.changed
	featureRead   = 6 // memory.read
)

// GraphLevel is the level that changes of a knowledge graph need.
const GraphLevel = featureGraph

// ReadLevel is the level that audited reads need.
const ReadLevel = featureRead

// FeatureOf is the level that a reader of these encoded events must understand.
func FeatureOf(encoded [][]byte) uint16 {
	level := uint16(featureFirst)
	for _, b := range encoded {
		if len(b) < 10 {
			continue
		}
		switch p := binary.BigEndian.Uint32(b[6:]); {
		case Type(binary.BigEndian.Uint16(b[1:])) == TypeLevelRaised:
			level = max(level, featureRaised)
			if e, err := DecodeEnvelope(b); err == nil {
				if raised, err := DecodeLevel(e.Payload); err == nil {
					level = max(level, raised)
				}
			}
		case Type(binary.BigEndian.Uint16(b[1:])) == TypeGraphChanged:
			level = max(level, featureGraph)
		case Type(binary.BigEndian.Uint16(b[1:])) == TypeRead:
			level = max(level, featureRead)
		case p&hasHome != 0:
			level = max(level, featureHome)
		case p&(hasPrincipal|hasDirectory) != 0:
			level = max(level, featureActor)
		}
	}
	return level
}

// EncodeLevel is the payload of level.raised, in clear: u16 level, big-endian.
func EncodeLevel(level uint16) []byte { return binary.BigEndian.AppendUint16(nil, level) }

// DecodeLevel parses what EncodeLevel wrote.
func DecodeLevel(payload []byte) (uint16, error) {
	if len(payload) != 2 {
		return 0, fmt.Errorf("level.raised: %w", ErrMalformed)
	}
	return binary.BigEndian.Uint16(payload), nil
}
