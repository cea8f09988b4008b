package node

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// runbooks runs what pages print for pods and no other step has a use for.
func (c *cluster) runbooks() {
	c.tools()
	c.bundle()
	c.largerVolumes()
	c.nodeByNode()
	c.damagedBackup()
}

// tools looks at a pod's files from a container that has a shell.
func (c *cluster) tools() {
	out := c.script("TOOLS=localhost/busybox:dev\n" + printed(c, filepath.Join(guides, "README.md"), "Files of a pod"))
	if !strings.Contains(out, "Use%") || !strings.Contains(out, "\tshards\n") {
		c.t.Errorf("df and du show nothing of a pod's files:\n%s", out)
	}
}

// bundle has a pod make a report.
func (c *cluster) bundle() {
	const command = "kubectl -n mneme exec mneme-0 -c memnode -- memctl debug bundle --out - > report.tar.gz"
	page, err := os.ReadFile(filepath.Join(guides, "report.md"))
	if err != nil || !strings.Contains(string(page), command) {
		c.t.Fatalf("report.md does not print %q: %v", command, err)
	}
	c.script(command)
	f, err := os.Open(filepath.Join(c.folder, "report.tar.gz"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	files := tar.NewReader(unpacked)
	h, err := files.Next()
	for ; err == nil; h, err = files.Next() {
		names = append(names, filepath.Base(h.Name))
	}
	if err != io.EOF || !slices.Contains(names, "status.json") || !slices.Contains(names, "log.txt") {
		c.t.Errorf("the report holds %v, %v", names, err)
	}
	c.say("the report holds %v", names)
}

// nodeByNode lets an update go on pod by pod.
func (c *cluster) nodeByNode() {
	lines := strings.Split(strings.TrimSpace(printed(c, filepath.Join(guides, "upgrade.md"), "Node by node")), "\n")
	before := c.uids()
	for _, line := range lines[1:] { // behind the function hold
		c.script(lines[0] + "\n" + line)
		want := map[string]bool{} // who is made anew
		switch {
		case strings.HasPrefix(line, "hold 3"):
			c.mneme("patch", "statefulset/mneme", "--type=merge", "-p", `{"spec":{"template":{"metadata":{"annotations":{"update":"another"}}}}}`)
		case strings.HasPrefix(line, "hold 2"):
			want["mneme-2"] = true
		case strings.HasPrefix(line, "hold 1"):
			want["mneme-1"], want["mneme-2"] = true, true
		case strings.HasPrefix(line, "hold 0"):
			want["mneme-0"], want["mneme-1"], want["mneme-2"] = true, true, true
		default:
			continue
		}
		c.voters(3)
		for pod, uid := range c.uids() {
			if anew := uid != before[pod]; anew != want[pod] {
				c.t.Errorf("after %q %s is made anew: %t", line, pod, anew)
			}
		}
	}
}

// largerVolumes makes the StatefulSet again with another size, and as it was. The first time
// pods are made anew, for they were restarted before, which is a change of them.
func (c *cluster) largerVolumes() {
	var before map[string]string
	commands := printed(c, filepath.Join(guides, "install.md"), "Larger volumes")
	for _, size := range []string{"40Gi", "20Gi"} {
		before = c.uids()
		if out := c.script("SIZE=" + size + "\n" + commands); !strings.HasSuffix(out, size+"\n") {
			c.t.Errorf("not %s: %s", size, out)
		}
		c.ready(3)
		c.voters(3)
	}
	for pod, uid := range c.uids() {
		if before[pod] != uid {
			c.t.Errorf("%s was made anew", pod)
		}
	}
}

// damagedBackup flips a bit of the backups' log, which is found, taken out, and found no more.
func (c *cluster) damagedBackup() {
	volume := c.mneme("get", "pvc", "mneme-backup-log", "-o", "jsonpath={.spec.volumeName}")
	folder := c.Kubectl("get", "pv", volume, "-o", "jsonpath={.spec.local.path}")
	c.flip(c.largest(folder))
	c.script("kubectl -n mneme create job --from=cronjob/mneme-backup-older older-now")
	c.until("the older backups are found damaged", func() error {
		out, err := c.Try("", "-n", "mneme", "get", "job", "older-now", "-o", "jsonpath={.status.failed}")
		if err == nil && out == "" {
			err = errors.New("no pod has failed")
		}
		return err
	})
	if out := c.walkPage("backup.md", "A damaged backup on Kubernetes"); !strings.Contains(out, "removed") {
		c.t.Errorf("nothing was taken out:\n%s", out)
	}
	c.mneme("delete", "job", "full-now", "prune-damaged", "older-now")
}

// largest is a folder's largest file.
func (c *cluster) largest(folder string) string {
	c.t.Helper()
	var largest string
	var size int64
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err != nil || largest == "" {
		c.t.Fatalf("there is no file below %s: %v", folder, err)
	}
	return largest
}

// flip turns a bit in the middle of a file around.
func (c *cluster) flip(path string) {
	c.t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	body[len(body)/2] ^= 1
	info, err := os.Stat(path)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, body, info.Mode()); err != nil {
		c.t.Fatal(err)
	}
}
