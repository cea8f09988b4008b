package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"mneme/bench/internal/report"
)

// runHybrid measures a whole node with the program that measures nodes, which
// belongs to the project's own module.
func runHybrid(ctx context.Context, opt options) ([]*report.Table, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "mneme").Output()
	if err != nil {
		return nil, fmt.Errorf("find the project: %w", err)
	}
	opt.say("hybrid: build the node")
	file := filepath.Join(opt.dir, "node.json")
	cmd := exec.CommandContext(ctx, "go", "run", "./bench/node", "-only", "growth", "-sizes", join(opt.sizes), "-searches", fmt.Sprint(opt.searches),
		"-settle", opt.settle.String(), "-dir", opt.dir, "-json", file)
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Stderr = opt.progress
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run ./bench/node: %w", err)
	}
	return report.ReadJSON(file)
}

func join(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ",")
}
