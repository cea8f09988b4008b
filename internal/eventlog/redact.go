package eventlog

import (
	"errors"
	"net/url"
	"strings"
)

// redactURLs hides what each of a list of URLs, separated by commas, says before
// its host. It goes by the last @, because a password that was not
// percent-encoded may hold any other separator.
func redactURLs(list string) string {
	urls := strings.Split(list, ",")
	for i, u := range urls {
		at := strings.LastIndexByte(u, '@')
		if at < 0 {
			continue
		}
		scheme, _, ok := strings.Cut(u[:at], "://")
		if ok {
			scheme += "://"
		} else {
			scheme = ""
		}
		urls[i] = scheme + "[redacted]" + u[at:]
	}
	return strings.Join(urls, ",")
}

// checkURLs refuses what cannot be parsed, in words of its own: errors of the
// parser quote the URL, with its password.
func checkURLs(list string) error {
	for u := range strings.SplitSeq(list, ",") {
		u = strings.TrimSpace(u)
		if !strings.Contains(u, "://") {
			u = "nats://" + u
		}
		if _, err := url.Parse(u); err != nil {
			return errors.New("it cannot be parsed as a URL; special characters of a password have to be percent-encoded")
		}
	}
	return nil
}
