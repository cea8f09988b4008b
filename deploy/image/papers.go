package main

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbom lists the modules that the programs consist of, as the programs themselves say.
func sbom(built []platform, src source, opt options, m made) *cdx.BOM {
	ref := opt.name + "@" + m.digest.String()
	b := cdx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(ref)).URN()
	b.Metadata = &cdx.Metadata{
		Timestamp: src.made.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeContainer, Name: opt.name, Version: opt.tag,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: m.digest.Hex}},
		},
	}
	found := map[string]*debug.Module{}
	for _, p := range built {
		for _, d := range p.info.Deps {
			if d.Replace != nil {
				d = d.Replace
			}
			found[d.Path+"@"+d.Version] = d
		}
	}
	components := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + built[0].info.GoVersion, Type: cdx.ComponentTypeLibrary, Name: "std",
		Version: built[0].info.GoVersion, PackageURL: "pkg:golang/std@" + built[0].info.GoVersion,
	}}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		d := found[key]
		purl := "pkg:golang/" + d.Path + "@" + d.Version
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: d.Path, Version: d.Version, PackageURL: purl}
		if d.Sum != "" { // go.sum's, over the module's files
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: d.Sum}}
		}
		components = append(components, c)
	}
	b.Components = &components
	needs := []string{}
	for _, c := range components {
		needs = append(needs, c.BOMRef)
	}
	b.Dependencies = &[]cdx.Dependency{{Ref: ref, Dependencies: &needs}}
	return b
}

// statement is one of in-toto, with the provenance of SLSA 1 as its predicate.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		InternalParameters   map[string]any `json:"internalParameters,omitempty"`
		ResolvedDependencies []resource     `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
		Metadata map[string]string `json:"metadata"`
	} `json:"runDetails"`
}

// provenance says what the image was made from. It is not signed: who needs that signs it
// together with the image.
func provenance(built []platform, src source, opt options, m made) statement {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1",
		Subject: []resource{{Name: opt.name + ":" + opt.tag, Digest: map[string]string{"sha256": m.digest.Hex}}}}
	for _, p := range m.platforms {
		s.Subject = append(s.Subject, resource{Name: opt.name + ":" + opt.tag + " " + p.name, Digest: map[string]string{"sha256": p.digest.Hex}})
	}
	d := &s.Predicate.BuildDefinition
	d.BuildType = "urn:mneme:deploy/image:v1"
	d.ExternalParameters = map[string]any{"name": opt.name, "tag": opt.tag, "platforms": opt.platforms}
	d.InternalParameters = map[string]any{"go": built[0].info.GoVersion, "modified": src.modified}
	d.ResolvedDependencies = []resource{{Name: "mneme", URI: "git+file:mneme", Digest: map[string]string{"gitCommit": src.commit}}}
	seen := map[string]resource{}
	for _, p := range built {
		for _, dep := range p.info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			r := resource{URI: "pkg:golang/" + dep.Path + "@" + dep.Version}
			if sum := h1(dep.Sum); sum != "" {
				r.Digest = map[string]string{"dirHash1": sum}
			}
			seen[r.URI] = r
		}
	}
	d.ResolvedDependencies = append(d.ResolvedDependencies, slices.SortedFunc(maps.Values(seen), func(a, b resource) int { return cmp.Compare(a.URI, b.URI) })...)
	s.Predicate.RunDetails.Builder.ID = "urn:mneme:deploy/image"
	s.Predicate.RunDetails.Metadata = map[string]string{"invocationId": src.commit}
	return s
}

// h1 is a checksum of go.sum as in-toto writes it, in hexadecimal; "" for what is none.
func h1(sum string) string {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return ""
	}
	return hex.EncodeToString(raw)
}
