package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine names the machine in one line: cores, processor, system, Go.
func Machine() string {
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.GOMAXPROCS(0), processor(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// processor is the model that Linux names, or "unnamed processor".
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unnamed processor"
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for in.Scan() {
		if name := modelName(in.Text()); name != "" {
			return name
		}
	}
	return "unnamed processor"
}

func modelName(line string) string {
	key, value, ok := strings.Cut(line, ":")
	if !ok || strings.TrimSpace(key) != "model name" {
		return ""
	}
	return strings.Join(strings.Fields(value), " ")
}
