package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// joinedDir is where the program that is both of them seems to be.
const joinedDir = "cmd/mneme"

// joinedMain is that program: it is what it is called.
const joinedMain = `// Command mneme is memnode, or memctl if it is called so.
package main

import (
	"os"
	"path/filepath"

	"mneme/cmd/mneme/memctl"
	"mneme/cmd/mneme/memnode"
)

func main() {
	if filepath.Base(os.Args[0]) == "memctl" {
		memctl.Main()
		return
	}
	memnode.Main()
}
`

var (
	mainPackage = regexp.MustCompile(`(?m)^package main$`)
	mainFunc    = regexp.MustCompile(`(?m)^func main\(\)`)
)

// join writes an overlay for go build, in which the main packages of the programs are
// packages that one program imports. Nothing of them changes but the name of the package
// and of main. It returns the overlay's file; dir is the folder of Mneme's go.mod.
func join(dir, work string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	replaced := map[string]string{}
	put := func(name string, text []byte) error {
		path := filepath.Join(work, name)
		replaced[filepath.Join(dir, joinedDir, name)] = path
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o644)
	}
	if err := put("main.go", []byte(joinedMain)); err != nil {
		return "", err
	}
	for _, name := range programs {
		files, err := filepath.Glob(filepath.Join(dir, "cmd", name, "*.go"))
		if err != nil {
			return "", err
		}
		mains := 0
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			mains += len(mainFunc.FindAll(text, -1))
			text = mainFunc.ReplaceAll(mainPackage.ReplaceAll(text, []byte("package "+name)), []byte("func Main()"))
			if err := put(filepath.Join(name, filepath.Base(path)), text); err != nil {
				return "", err
			}
		}
		if mains != 1 {
			return "", fmt.Errorf("cmd/%s has %d functions main", name, mains)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o644)
}
