package loader

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mneme/internal/importer"
	"mneme/memory"
)

// known knows what was imported before, so that what has changed is revised and what has
// not is left.
type known struct {
	load *load

	groups int                         // entered so far
	all    map[string]map[string]*part // of the namespace, by group and uri; nil before there is a folder, or are many groups
	allOf  string
	looked map[string]bool // namespaces that a dry run asked for, and whether it may look there

	file    file            // that is being read
	entered map[string]bool // groups of allOf

	pasts    map[string]*forgotten // by namespace
	copies   map[string]map[origin]copied
	contents map[string]*contents  // of namespaces that copies come home to
	ids      map[string]*residents // of namespaces that exports are from
	said     map[string]*byID      // by namespace
	folders  map[source]string     // where those that were read lie
	asked    map[place]bool        // of which nothing is left to ask
	moved    map[source]bool       // whose folder lies elsewhere than before, and is the same
	seen     map[source]bool       // of which is known whether they can be pruned
	sources  map[source]bool       // what this import read
	noted    bool                  // something of them in the file or folder that is being read
	room     int                   // for texts that are held
	kept     map[string]bool       // what is still there, where it is asked to prune: records, and uris of what is sent
}

// maxGroups is how many files that are named are looked up one by one. Behind it, and
// for a folder, whose removed files only that shows, the whole namespace is read once,
// which takes a request for each 200 of its memories.
const maxGroups = 20

// forTheTeam is why one's own is left out that the team has already.
const forTheTeam = "of one's own, and there for the whole team already, which it stays; forget it there first"

// part is what a record says of the part of a file that it was imported from.
type part struct {
	record string
	uri    string
	id     string // the client's
	hash   string
	own    string // digest of the section without the headings above it
	source source
	folder string // where that lay
	scope  memory.Scope
	taken  bool // an import began to forget it
	there  bool // it is still in the file
}

// source is one source of an import: a folder, or with path one file of it.
type source struct{ namespace, from, name, path string }

// place is where the folder of a source lies.
type place struct {
	source
	folder string
}

func (s source) compare(o source) int {
	return cmp.Or(cmp.Compare(s.namespace, o.namespace), cmp.Compare(s.from, o.from), cmp.Compare(s.name, o.name), cmp.Compare(s.path, o.path))
}

// note remembers what the import reads.
func (k *known) note(item importer.Item) {
	if item.Group == "" {
		return
	}
	src := source{item.Namespace, item.Provenance.From, item.Provenance.Source, ""}
	if k.load.single {
		src.path = item.Provenance.Path
	}
	k.sources[src], k.noted = true, true
}

// keep has a record, or what a uri names, not pruned.
func (k *known) keep(namespace, name string) {
	if !k.load.opt.Prune {
		return
	}
	if k.kept == nil {
		k.kept = map[string]bool{}
	}
	k.kept[namespace+" "+name] = true
}

// keeps reports whether a record is not to be pruned.
func (k *known) keeps(namespace string, rec memory.Record) bool {
	return k.kept[namespace+" "+rec.RecordID] || k.kept[namespace+" "+memory.URIPath(rec.URI)]
}

// settled reports whether nothing is left to do for an item: what it was imported as is
// there and has not changed, or was revised; or the end of its file shows what it is.
func (k *known) settled(ctx context.Context, item *importer.Item) (bool, error) {
	if k.load.opt.DryRun && !k.mayLook(ctx, item.Namespace) {
		return false, nil
	}
	if item.RecordID != "" && !item.Away {
		if there, err := k.home(ctx, item); there || err != nil {
			return there, err
		}
	}
	if item.RecordID != "" && item.Away {
		return k.copy(ctx, *item)
	}
	if item.Group == "" && item.Provenance != nil && item.Provenance.Key != "" {
		return k.cameAsCopy(ctx, *item)
	}
	if item.Group == "" {
		return false, nil
	}
	if item.Group != k.file.group || item.Namespace != k.file.namespace {
		if err := k.file.leave(ctx); err != nil {
			return false, err
		}
		if err := k.enter(ctx, *item); err != nil {
			return false, err
		}
	}
	return k.file.section(ctx, *item)
}

// enter learns what was imported of a file before.
func (k *known) enter(ctx context.Context, item importer.Item) error {
	if err := k.load.send.prepare(ctx, item.Namespace); err != nil {
		return err
	}
	k.entered[item.Group] = true
	gone, err := k.past(ctx, item.Namespace)
	if err != nil {
		return err
	}
	k.file = file{known: k, namespace: item.Namespace, group: item.Group, before: map[string]*part{}, gone: gone, twins: map[string][]*twin{}}
	for _, was := range k.file.gone.groups[item.Group] {
		was.claimed = false // of this file, which may be read again
	}
	if k.load.send.empty[item.Namespace] {
		if err := k.prunable(item, nil); err != nil {
			return err
		}
		return k.elsewhere(item, nil)
	}
	if k.groups++; k.all == nil && (k.groups > maxGroups || !k.load.single || k.load.opt.Prune) {
		all := map[string]map[string]*part{}
		if err := k.list(ctx, item.Namespace, memory.Filter{}, func(rec memory.Record, p *part) {
			if all[rec.Conversation] == nil {
				all[rec.Conversation] = map[string]*part{}
			}
			all[rec.Conversation][memory.URIPath(rec.URI)] = p
		}); err != nil {
			return err
		}
		k.all, k.allOf = all, item.Namespace
	}
	if k.all != nil && k.allOf == item.Namespace {
		if before := k.all[item.Group]; before != nil {
			k.file.before = before
		}
		for _, p := range k.file.before {
			p.there = false // in this file, which may be read again
		}
		if err := k.prunable(item, k.all); err != nil {
			return err
		}
		return k.elsewhere(item, k.all)
	}
	if err := k.list(ctx, item.Namespace, memory.Filter{Conversation: item.Group}, func(rec memory.Record, p *part) {
		if rec.Conversation == item.Group {
			k.file.before[memory.URIPath(rec.URI)] = p
		}
	}); err != nil {
		return err
	}
	return k.elsewhere(item, map[string]map[string]*part{item.Group: k.file.before})
}

// prunable refuses to prune a source of which nothing was imported before, and names those that
// are there: it may be called otherwise. groups are all that are known.
func (k *known) prunable(item importer.Item, groups map[string]map[string]*part) error {
	src := source{item.Namespace, item.Provenance.From, item.Provenance.Source, ""}
	if !k.load.opt.Prune || k.seen[src] {
		return nil
	}
	k.seen[src] = true
	there := map[string]bool{}
	for _, before := range groups {
		for _, p := range before {
			if p.source == src {
				return nil
			}
			there[fmt.Sprintf("%s (%s)", p.source.name, p.source.from)] = true
		}
	}
	for _, was := range k.file.gone.groups {
		if slices.ContainsFunc(was, func(p *past) bool { return p.source == src }) {
			return nil // it held something once
		}
	}
	err := memory.Errorf(memory.CodeNotFound, "nothing in %s was imported from %s (%s) before, so there is nothing to prune", src.namespace, src.name, src.from)
	if len(there) == 0 {
		return err.WithHint("nothing was imported; without --prune it is")
	}
	names := slices.Sorted(maps.Keys(there))
	if more := len(names) - maxPlaces; more > 0 {
		names = append(names[:maxPlaces], fmt.Sprintf("%d more", more))
	}
	return err.WithHint("nothing was imported; without --prune it is. Files were imported there from %s: --source NAME says that it is one of these", strings.Join(names, ", "))
}

// apart is what to do where files are not to revise those of another folder.
const apart = "--source NAME keeps the two apart"

// elsewhere asks, once, before files revise memories of a folder that has the same name and
// lies elsewhere. groups are those that are known, all of them or that of the item.
func (k *known) elsewhere(item importer.Item, groups map[string]map[string]*part) error {
	src := source{item.Namespace, item.Provenance.From, item.Provenance.Source, ""}
	here := place{src, item.Provenance.Folder}
	if k.asked[here] || here.folder == "" {
		return nil
	}
	if k.load.opt.Moved {
		k.asked[here], k.moved[src] = true, true
		return nil
	}
	k.asked[here] = k.all != nil
	other := k.folders[src]
	k.folders[src] = item.Provenance.Folder
	if other == item.Provenance.Folder {
		other = ""
	}
	for _, before := range groups {
		for _, p := range before {
			if p.source != src || p.folder == "" {
				continue
			}
			if p.folder == item.Provenance.Folder {
				return nil
			}
			if other == "" || p.folder < other {
				other = p.folder
			}
		}
	}
	if other == "" {
		return nil
	}
	return k.ask(here, other)
}

// elsewhereThan asks, once, before an item revises a memory of a source of the same name that lay elsewhere.
func (k *known) elsewhereThan(rec memory.Record, item importer.Item) error {
	was, _ := importer.ProvenanceOf(rec.Metadata)
	is, _ := importer.ProvenanceOf(item.Capture.Metadata)
	here := place{source{item.Namespace, is.From, is.Source, ""}, is.Folder}
	if was.Folder == is.Folder || was.Folder == "" || is.Folder == "" || k.asked[here] || k.load.opt.Moved {
		return nil
	}
	return k.ask(here, was.Folder)
}

// ask asks whether a source that was imported from another folder before is the same.
func (k *known) ask(here place, other string) error {
	k.asked[here] = true
	what := fmt.Sprintf("%s was imported from %s before, and this is of %s: it revises those memories", here.name, other, here.folder)
	if k.load.opt.DryRun {
		k.load.opt.Note("%s; %s", what, apart)
		return nil
	}
	if err := k.load.opt.Confirm(Question{What: what + ". Take them for the same?", Instead: apart, Flag: "--moved"}); err != nil {
		return err
	}
	k.moved[here.source] = true
	return nil
}

// moves reports whether a part of a folder that has moved does not say so yet.
func (k *known) moves(item importer.Item, p *part) bool {
	return k.moved[p.source] && p.folder != item.Provenance.Folder
}

// list yields the records that were imported from files, as the acting agent sees them.
func (k *known) list(ctx context.Context, ns string, filter memory.Filter, yield func(memory.Record, *part)) error {
	return Imported(ctx, k.load.node, ns, k.load.opt.Agent, filter, func(rec memory.Record, p importer.Provenance) {
		if p.Hash != "" {
			yield(rec, &part{record: rec.RecordID, uri: memory.URIPath(rec.URI), id: rec.ID, hash: p.Hash, own: p.Own(), scope: rec.Scope, taken: p.Taken, source: source{ns, p.From, p.Source, ""}, folder: p.Folder})
		}
	})
}

// absent counts what is no longer there of the folders that were read, because its files
// were removed or renamed. What could not be read is no sign of that.
func (k *known) absent() {
	if k.load.summary.Malformed > 0 {
		return
	}
	for group, before := range k.all {
		if k.entered[group] {
			continue // leave counted them
		}
		for _, p := range before {
			if k.sources[p.source] {
				k.load.counts(k.allOf).Gone++
			}
		}
	}
}

// mayLook reports whether a dry run can look up what is in a namespace. It needs no
// node, and says so where it looked in vain.
func (k *known) mayLook(ctx context.Context, ns string) bool {
	may, asked := k.looked[ns]
	if asked || k.load.node == nil {
		return may
	}
	err := k.load.send.prepare(ctx, ns)
	k.looked[ns] = err == nil
	if err != nil {
		k.load.opt.Note("%s: what is there already is not known: %s", ns, err)
	}
	return err == nil
}
