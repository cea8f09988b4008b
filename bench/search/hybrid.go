package main

import (
	"context"

	"mneme/bench/internal/report"
)

func runHybrid(ctx context.Context, opt options) ([]*report.Table, error) { return nil, nil }
