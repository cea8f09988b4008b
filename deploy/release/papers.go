package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// product is what papers are about: the image, or the archives.
type product struct {
	component  cdx.Component  // as the SBOM begins
	parts      []resource     // what has a digest
	parameters map[string]any // what was asked for
	built      []platform
}

// archivesProduct is that of the archives in opt.out.
func archivesProduct(built []platform, archives []string, opt options) (product, error) {
	version := built[0].version()
	var parts []resource
	for _, name := range archives {
		sum, err := sumOf(filepath.Join(opt.out, name))
		if err != nil {
			return product{}, err
		}
		parts = append(parts, resource{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	return product{
		component:  cdx.Component{BOMRef: "mneme@" + version, Type: cdx.ComponentTypeApplication, Name: "mneme", Version: version},
		parts:      parts,
		parameters: map[string]any{"platforms": opt.archives},
		built:      built,
	}, nil
}

// imageProduct is that of the image.
func imageProduct(built []platform, opt options, m made) product {
	name := opt.name + ":" + opt.tag
	p := product{
		component: cdx.Component{
			BOMRef: opt.name + "@" + m.digest.String(), Type: cdx.ComponentTypeContainer, Name: opt.name, Version: opt.tag,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: m.digest.Hex}},
		},
		parts:      []resource{{Name: name, Digest: map[string]string{"sha256": m.digest.Hex}}},
		parameters: map[string]any{"name": opt.name, "tag": opt.tag, "platforms": opt.platforms},
		built:      built,
	}
	for _, of := range m.platforms {
		p.parts = append(p.parts, resource{Name: name + " " + of.name, Digest: map[string]string{"sha256": of.digest.Hex}})
	}
	return p
}

// modules are those that the programs consist of, as the programs themselves say, by path and
// version. "" is every program.
func (p product) modules(program string) map[string]*debug.Module {
	found := map[string]*debug.Module{}
	for _, of := range p.built {
		for _, b := range of.built {
			if program != "" && b.name != program {
				continue
			}
			for _, d := range b.info.Deps {
				if d.Replace != nil {
					d = d.Replace
				}
				found[d.Path+"@"+d.Version] = d
			}
		}
	}
	return found
}

// goInfo is what the first program says of how it was built: all are built by the same Go.
func (p product) goInfo() *buildinfo.BuildInfo { return p.built[0].built[0].info }

// sbom lists the programs, and for each the modules that it consists of on any platform.
func (p product) sbom(src source) *cdx.BOM {
	ref := p.component.BOMRef
	b := cdx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(ref)).URN()
	b.Metadata = &cdx.Metadata{Timestamp: src.made.Format(time.RFC3339), Component: &p.component}
	goVersion := p.goInfo().GoVersion
	std := "pkg:golang/std@" + goVersion
	components := []cdx.Component{{BOMRef: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion, PackageURL: std}}
	all := p.modules("")
	for _, key := range slices.Sorted(maps.Keys(all)) {
		d := all[key]
		purl := "pkg:golang/" + key
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: d.Path, Version: d.Version, PackageURL: purl}
		if d.Sum != "" { // go.sum's, over the module's files
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: d.Sum}}
		}
		components = append(components, c)
	}
	var named []string
	dependencies := []cdx.Dependency{{Ref: ref, Dependencies: &named}}
	for _, program := range p.built[0].built {
		at := ref + "#" + program.name
		named = append(named, at)
		components = append(components, cdx.Component{BOMRef: at, Type: cdx.ComponentTypeApplication, Name: program.name, Version: program.info.Main.Version})
		needs := []string{std}
		for _, key := range slices.Sorted(maps.Keys(p.modules(program.name))) {
			needs = append(needs, "pkg:golang/"+key)
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: at, Dependencies: &needs})
	}
	b.Components, b.Dependencies = &components, &dependencies
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

// provenance says what the product was made from. It is not signed: who needs that signs it
// together with the product.
func (p product) provenance(src source) statement {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1", Subject: p.parts}
	d := &s.Predicate.BuildDefinition
	d.BuildType = "urn:mneme:deploy/release:v1"
	d.ExternalParameters = p.parameters
	d.InternalParameters = map[string]any{"go": p.goInfo().GoVersion, "modified": src.modified}
	d.ResolvedDependencies = []resource{{Name: "mneme", URI: "git+file:mneme", Digest: map[string]string{"gitCommit": src.commit}}}
	var modules []resource
	for key, m := range p.modules("") {
		r := resource{URI: "pkg:golang/" + key}
		if sum := h1(m.Sum); sum != "" {
			r.Digest = map[string]string{"dirHash1": sum}
		}
		modules = append(modules, r)
	}
	slices.SortFunc(modules, func(a, b resource) int { return cmp.Compare(a.URI, b.URI) })
	d.ResolvedDependencies = append(d.ResolvedDependencies, modules...)
	s.Predicate.RunDetails.Builder.ID = "urn:mneme:deploy/release"
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
