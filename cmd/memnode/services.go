package main

import (
	"regexp"
	"strings"
)

// serviceLinks are the beginnings of the variables that Kubernetes puts into every
// container for the services of its namespace, where it is not told otherwise
// (enableServiceLinks): a service mneme-peers begins MNEME_PEERS. They say where
// services are and configure nothing.
//
// A service always has its host and its port among them, so that one variable that
// only looks like them, such as MNEME_HTTP_PORT, stays unknown.
type serviceLinks []string

// servicePort is what follows a service's beginning, but for its host.
var servicePort = regexp.MustCompile(`^_(SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

func findServiceLinks(sys system) serviceLinks {
	var links serviceLinks
	for _, kv := range sys.environ {
		name, _, _ := strings.Cut(kv, "=")
		service, ok := strings.CutSuffix(name, "_SERVICE_HOST")
		if !ok || !strings.HasPrefix(service+"_", envPrefix) {
			continue
		}
		if _, ok := sys.lookup(service + "_SERVICE_PORT"); ok {
			links = append(links, service)
		}
	}
	return links
}

// has reports whether a variable is of a service.
func (l serviceLinks) has(name string) bool {
	for _, service := range l {
		rest, ok := strings.CutPrefix(name, service)
		if ok && (rest == "_SERVICE_HOST" || servicePort.MatchString(rest)) {
			return true
		}
	}
	return false
}
