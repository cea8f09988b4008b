// Command release makes what people get of Mneme, without a container engine: archives of
// memnode and memctl for each platform, with their man pages and completions; the container
// image for each architecture, with the programs, the authorities that certificates of the
// web are of, and nothing else, in the OCI image layout, which ctr, podman, skopeo and crane
// take. Beside both it writes what is in them (an SBOM in CycloneDX) and what they were made
// from (SLSA provenance, unsigned), and beside archives the checksums of everything and
// install.sh.
//
// Invariants: the same commit, its tags, and the same Go give the same bytes, wherever and
// whenever they are made; in the image the programs run as nobody in particular and need
// nothing to write to but the data directory and /tmp.
//
// Not its job: pushing to a registry, publishing, signing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	var opt options
	flag.StringVar(&opt.source, "source", ".", "the folder of Mneme's go.mod")
	flag.StringVar(&opt.out, "out", "dist", "where everything goes")
	flag.StringVar(&opt.name, "name", "localhost/mneme", "name of the image, without a tag")
	flag.StringVar(&opt.tag, "tag", "", "its tag (default: the version of the programs)")
	flag.BoolVar(&opt.modified, "modified", false, "build the working tree where it differs from the commit")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64", "what the image runs on, with commas between; nothing for no image")
	archives := flag.String("archives", "", "what archives are made for, with commas between; all is "+strings.Join(archivePlatforms, ","))
	flag.Parse()
	opt.platforms, opt.archives = list(*platforms), list(*archives)
	if *archives == "all" {
		opt.archives = archivePlatforms
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // what is in work goes, too
	err := run(ctx, opt)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func list(words string) []string {
	return strings.FieldsFunc(words, func(r rune) bool { return r == ',' })
}

// options say what is made.
type options struct {
	source, out, name, tag string
	platforms              []string // of the image; none for no image
	archives               []string // platforms of the archives; none for no archives
	modified               bool
}

func run(ctx context.Context, opt options) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("the argument %q is not taken", flag.Arg(0))
	}
	work, err := os.MkdirTemp("", "mneme-release-")
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
	if err := os.MkdirAll(opt.out, 0o755); err != nil {
		return err
	}
	var files []string // all that was made
	if len(opt.platforms) > 0 {
		made, err := runImage(ctx, dir, filepath.Join(work, "image"), src, opt)
		if err != nil {
			return err
		}
		files = append(files, made...)
	}
	if len(opt.archives) == 0 {
		return nil
	}
	made, err := runArchives(ctx, dir, filepath.Join(work, "archives"), src, opt)
	if err != nil {
		return err
	}
	return writeSums(opt.out, append(files, made...))
}

// runImage makes the image and its papers, and returns the names of the files.
func runImage(ctx context.Context, dir, work string, src source, opt options) ([]string, error) {
	var built []platform
	for _, name := range opt.platforms {
		p, err := buildImage(ctx, dir, work, name)
		if err != nil {
			return nil, err
		}
		built = append(built, p)
	}
	if opt.tag == "" {
		opt.tag = tagOf(built[0].version())
	}
	index, err := makeIndex(built, src)
	if err != nil {
		return nil, err
	}
	const archive = "mneme.oci.tar"
	made, err := writeArchive(index, filepath.Join(work, "layout"), filepath.Join(opt.out, archive), opt.name+":"+opt.tag)
	if err != nil {
		return nil, err
	}
	papers, err := writePapers(imageProduct(built, opt, made), src, opt.out, "mneme")
	if err != nil {
		return nil, err
	}
	fmt.Printf("%s:%s %s\n", opt.name, opt.tag, made.digest)
	for _, p := range made.platforms {
		fmt.Printf("  %-12s %s %5.1f MB compressed\n", p.name, p.digest, float64(p.compressed)/1e6)
	}
	fmt.Printf("  %s, %s\n", filepath.Join(opt.out, archive), strings.Join(papers, ", "))
	return append(papers, archive), nil
}

// runArchives makes the archives, their papers and install.sh, and returns the names of the
// files.
func runArchives(ctx context.Context, dir, work string, src source, opt options) ([]string, error) {
	built, archives, err := makeArchives(ctx, dir, work, src, opt)
	if err != nil {
		return nil, err
	}
	about, err := archivesProduct(built, archives, opt)
	if err != nil {
		return nil, err
	}
	papers, err := writePapers(about, src, opt.out, "mneme-"+built[0].version())
	if err != nil {
		return nil, err
	}
	script, err := os.ReadFile(filepath.Join(dir, "deploy", "release", installScript))
	if err != nil {
		return nil, err
	}
	if err := replace(filepath.Join(opt.out, installScript), func(w io.Writer) error { _, err := w.Write(script); return err }); err != nil {
		return nil, err
	}
	fmt.Printf("mneme %s\n", built[0].version())
	for _, name := range archives {
		info, err := os.Stat(filepath.Join(opt.out, name))
		if err != nil {
			return nil, err
		}
		fmt.Printf("  %-60s %5.1f MB\n", name, float64(info.Size())/1e6)
	}
	fmt.Printf("  %s, %s, %s\n", strings.Join(papers, ", "), installScript, filepath.Join(opt.out, sumsFile))
	return append(append(archives, papers...), installScript), nil
}

// writePapers writes the SBOM and the provenance of a product, and returns their names.
func writePapers(p product, src source, out, name string) ([]string, error) {
	papers := []string{name + ".cdx.json", name + ".provenance.json"}
	if err := writeJSON(filepath.Join(out, papers[0]), p.sbom(src)); err != nil {
		return nil, err
	}
	return papers, writeJSON(filepath.Join(out, papers[1]), p.provenance(src))
}

// tagOf makes a tag of a version: a plus sign may not be in one.
func tagOf(version string) string {
	return strings.NewReplacer("+", "-", "(", "", ")", "").Replace(version)
}
