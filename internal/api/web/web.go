// Package web serves the status page: one HTML document for people who open the
// node's address in a browser.
//
// Its job: hand out the embedded page with headers under which a browser runs
// this page's own script and nothing else.
//
// Invariants: no external resources; the Content-Security-Policy names the
// script and the style by their hashes; the page holds no data, it asks the
// REST interface like any other client.
//
// Not its job: authentication. The page is public, what it shows is not.
package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
)

//go:embed status.html
var page []byte

// New makes the handler of the page. It fails if the page is not as expected,
// which a test rules out.
func New() (http.Handler, error) {
	script, err := inlineHash("script")
	if err != nil {
		return nil, err
	}
	style, err := inlineHash("style")
	if err != nil {
		return nil, err
	}
	policy := "default-src 'none'; script-src " + script + "; style-src " + style +
		"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Length", strconv.Itoa(len(page)))
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		_, _ = w.Write(page)
	}), nil
}

// inlineHash is the CSP source of the page's one inline element of that name.
func inlineHash(element string) (string, error) {
	opening, closing := []byte("<"+element+">"), []byte("</"+element+">")
	_, rest, found := bytes.Cut(page, opening)
	inner, rest, closed := bytes.Cut(rest, closing)
	if !found || !closed || bytes.Contains(rest, opening) {
		return "", fmt.Errorf("web: the page must have exactly one plain <%s> element", element)
	}
	sum := sha256.Sum256(inner)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'", nil
}
