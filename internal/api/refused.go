package api

import "mneme/memory"

// MaxRefusedBody is how long the body of a refused message may be to be handed on.
const MaxRefusedBody = 64 << 10

// Refused describes a message that was refused with e, for the list of those. The body
// of one that is not malformed says whom it is about, and is not kept.
func Refused(namespace, agent, via string, body []byte, malformed bool, e *memory.Error) memory.Rejected {
	m := memory.Rejected{Namespace: namespace, Agent: agent, Code: e.Code, Reason: memory.ProblemOf(e).Detail, Size: len(body), Via: via}
	if len(body) <= MaxRefusedBody {
		m.Body, m.WellFormed = string(body), !malformed
	}
	return m
}
