package main

import (
	"context"

	"mneme/bench/internal/report"
)

func runText(ctx context.Context, opt options) ([]*report.Table, error) { return nil, nil }

func runHybrid(ctx context.Context, opt options) ([]*report.Table, error) { return nil, nil }
