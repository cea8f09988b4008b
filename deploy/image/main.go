// Command image makes Mneme's container image without a container engine: memnode and
// memctl, built here for each platform, the authorities that certificates of the web are
// of, and nothing else. It writes an archive in the OCI image layout, which ctr, podman,
// skopeo and crane take, and beside it what is in the image (an SBOM in CycloneDX) and
// what it was made from (SLSA provenance, unsigned).
//
// Invariants: the same commit and the same Go give the same bytes, wherever and whenever
// they are made; the programs run as nobody in particular and need nothing to write to
// but the data directory and /tmp.
//
// Not its job: pushing to a registry, signing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var opt options
	flag.StringVar(&opt.source, "source", ".", "the folder of Mneme's go.mod")
	flag.StringVar(&opt.out, "out", "dist", "where the archive and its papers go")
	flag.StringVar(&opt.name, "name", "localhost/mneme", "name of the image, without a tag")
	flag.StringVar(&opt.tag, "tag", "", "its tag (default: the version of the programs)")
	flag.BoolVar(&opt.modified, "modified", false, "build the working tree where it differs from the commit")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64", "what it runs on, with commas between")
	flag.Parse()
	opt.platforms = strings.Split(*platforms, ",")
	if err := run(context.Background(), opt); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options say what is made.
type options struct {
	source, out, name, tag string
	platforms              []string
	modified               bool
}

func run(ctx context.Context, opt options) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("the argument %q is not taken", flag.Arg(0))
	}
	work, err := os.MkdirTemp("", "mneme-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	src, err := describe(ctx, opt.source)
	if err != nil {
		return err
	}
	dir, err := src.checkout(ctx, opt.source, work, opt.modified)
	if err != nil {
		return err
	}
	var built []platform
	for _, name := range opt.platforms {
		p, err := build(ctx, dir, work, name)
		if err != nil {
			return err
		}
		built = append(built, p)
	}
	if opt.tag == "" {
		opt.tag = tagOf(built[0].info.Main.Version)
	}
	index, err := makeIndex(built, src)
	if err != nil {
		return err
	}
	made, err := writeArchive(index, filepath.Join(work, "layout"), filepath.Join(opt.out, "mneme.oci.tar"), opt.name+":"+opt.tag)
	if err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(opt.out, "mneme.cdx.json"), sbom(built, src, opt, made)); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(opt.out, "mneme.provenance.json"), provenance(built, src, opt, made)); err != nil {
		return err
	}
	fmt.Printf("%s:%s %s\n", opt.name, opt.tag, made.digest)
	for _, p := range made.platforms {
		fmt.Printf("  %-12s %s %5.1f MB compressed\n", p.name, p.digest, float64(p.compressed)/1e6)
	}
	fmt.Printf("  %s, mneme.cdx.json, mneme.provenance.json\n", filepath.Join(opt.out, "mneme.oci.tar"))
	return nil
}

// tagOf makes a tag of a version: a plus sign may not be in one.
func tagOf(version string) string {
	return strings.NewReplacer("+", "-", "(", "", ")", "").Replace(version)
}
