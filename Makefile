# Everything here needs Go (the version in go.mod or newer); `make test` also a C
# compiler, for the race detector.

GO       ?= go
PKGS     ?= ./...
TIMEOUT  ?= 45m
FUZZTIME ?= 10s
FUZZ     ?= .
BENCH    ?= .
COVERMIN ?= 80

# Packages tested at once: as many as there are processors, but not more than 4,
# because many of the tests start servers and measure bounds.
P ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); if [ $$n -gt 4 ]; then n=4; fi; echo $$n)

# With the tag the product's assertions (antithesis-sdk-go) write what they came by; else
# they are nothing. `$(call asserted,COMMAND)` runs COMMAND and reports on them.
TAGS := -tags enable_antithesis_sdk
CAME := $(CURDIR)/.assertions
asserted = rm -f $(CAME); ANTITHESIS_SDK_LOCAL_OUTPUT=$(CAME) $(1); ran=$$?; $(GO) run ./internal/lint/assertreport $(CAME) || ran=1; rm -f $(CAME); exit $$ran

# A program with the race detector sleeps a second before it ends, in case a goroutine is about
# to race yet. Tests wait for their goroutines, so a moment does for each of the 70 programs.
RACE := GORACE="atexit_sleep_ms=50 $$GORACE"

PLATFORMS := linux/arm64 darwin/arm64 windows/amd64

.PHONY: help
help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Modules of their own that are tested too, without the race detector: what they need is
# not among Mneme's dependencies. None where PKGS chooses packages.
# Alerts that are caused on real nodes are make test-observability's.
MODULES := $(if $(filter ./...,$(PKGS)),deploy/release test/k8s test/observability)
UNCAUSED := 'TestCheckBites|TestDashboards|TestAlerts|TestPromtool'

# What npm installs for tests, by their lock files. None where PKGS chooses packages.
NPM := $(if $(filter ./...,$(PKGS)),test/mcp/node_modules/.package-lock.json sdk/typescript/node_modules/.package-lock.json)

%/node_modules/.package-lock.json: %/package-lock.json | languages
	@command -v npm >/dev/null 2>&1 || { echo "make: the tests of the Model Context Protocol and of sdk/typescript need npm, of Node 20 or later" >&2; exit 1; }
	cd $* && npm ci --no-progress --loglevel=error

# What the tests of other languages need. CI installs it where it is missing.
LANGUAGES := $(if $(filter ./...,$(PKGS)),python3 nodejs npm)

.PHONY: languages
languages:
	@missing=; for name in $(LANGUAGES); do command -v $${name%js} >/dev/null 2>&1 || missing="$$missing $$name"; done; \
	[ -z "$$missing" ] || { [ "$$CI" = true ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; } || \
	echo "make: not installed, and needed by the tests of sdk and test/mcp:$$missing (Debian, Ubuntu: apt-get install$$missing)" >&2

.PHONY: test
test: compiler vet languages $(NPM) ## run all tests with the race detector
	@status=$$(mktemp); rm -f $(CAME); export ANTITHESIS_SDK_LOCAL_OUTPUT=$(CAME); \
	{ $(RACE) $(GO) test $(TAGS) -race -json -vet=off -timeout $(TIMEOUT) -p $(P) $(PKGS); echo $$? >$$status; \
	  for module in $(MODULES); do case $$module in test/observability) only=$(UNCAUSED);; *) only=.;; esac; \
	    ( cd $$module && $(GO) test -json -run "$$only" -timeout $(TIMEOUT) ./... ) || echo 1 >$$status; done; } | $(GO) run ./internal/lint/testreport; \
	shown=$$?; ran=$$(cat $$status); $(GO) run ./internal/lint/assertreport $(CAME) || shown=1; rm -f $$status $(CAME); \
	if [ $$shown -ne 0 ] || [ "$$ran" != 0 ]; then echo "make test: failed" >&2; exit 1; fi

.PHONY: flips
flips: ## flip 200 random bits of each kind of a node's files and start it after each
	$(GO) test ./internal/node -run '^TestFlippedBits$$' -flips 200 -flipseed 0 -count=1 -timeout 60m -v

.PHONY: vet
vet: ## look for suspicious code
	$(GO) vet $(PKGS)

.PHONY: compiler
compiler:
	@cc=$$($(GO) env CC); command -v $${cc%% *} >/dev/null 2>&1 || \
	{ echo "make: the race detector needs a C compiler and $$cc is missing; install one (Debian, Ubuntu: apt-get install gcc libc6-dev)" >&2; exit 1; }

.PHONY: check
check: test test-bench test-observability cross tidy ## what has to pass before a change is taken: tests, cross-builds, go.mod

.PHONY: cross
cross: ## build for the other platforms, without cgo
	@for platform in $(PLATFORMS); do \
		echo "build $$platform"; \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build ./... || exit 1; \
	done

.PHONY: tidy
tidy:
	$(GO) mod tidy -diff
	cd bench/train && $(GO) mod tidy -diff
	cd deploy/release && $(GO) mod tidy -diff
	cd test/k8s && $(GO) mod tidy -diff
	cd test/observability && $(GO) mod tidy -diff

.PHONY: cover
cover: ## measure the coverage of internal/ by all tests; fails below COVERMIN percent
	$(GO) test -vet=off -timeout $(TIMEOUT) -p $(P) -coverpkg=./internal/... -coverprofile=coverage.out ./...
	@$(GO) tool cover -func=coverage.out | awk -v min=$(COVERMIN) ' \
		/^total:/ { total = $$3; sub(/%/, "", total) } \
		END { printf "total coverage of internal/: %s %%\n", total; \
		      if (total + 0 < min) { printf "that is less than %s %%\n", min; exit 1 } }'

.PHONY: fuzz
fuzz: ## run each fuzzer for FUZZTIME (FUZZ=regexp chooses)
	@for pkg in $$($(GO) list $(PKGS)); do \
		list=$$($(GO) test -list '^Fuzz' $$pkg) || { echo "$$list"; exit 1; }; \
		for fuzzer in $$(echo "$$list" | grep '^Fuzz' | grep -E '$(FUZZ)'); do \
			echo "fuzz $$pkg $$fuzzer"; \
			$(GO) test -run '^$$' -fuzz "^$$fuzzer\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

FOR ?= 1h
.PHONY: simulate
simulate: ## simulate one to five replicas from random seeds (FOR=1h)
	@$(call asserted,$(GO) test $(TAGS) ./test/sim -run '^TestSimulation$$' -sim.from=0 -sim.for=$(FOR) -timeout 0 -count=1 -v)

# The commit that upgrade comes from.
FROM ?= HEAD~1

.PHONY: robustness
robustness: ## have real nodes meet faults under load, print the table of docs/robustness.md, and upgrade from FROM (FOR=1h, SEED=, NODES=3, SHARDS=1, EXTERNAL=1: on an external NATS, PACKETS=1: in network namespaces)
	@$(call asserted,$(GO) test $(TAGS) ./test/cluster -run '^TestRobustness$$' -robust.for=$(FOR) -robust.seed=$(or $(SEED),0) -robust.nodes=$(or $(NODES),3) -robust.shards=$(or $(SHARDS),1) $(if $(EXTERNAL),-robust.external) $(if $(PACKETS),-robust.packets) -timeout 0 -count=1 -v)
	$(MAKE) upgrade

.PHONY: upgrade
upgrade: ## upgrade a cluster of the commit FROM to this one node by node, under load
	$(GO) test ./test/cluster -run '^TestRollingUpgrade$$' -upgrade.from=$(FROM) -robust.nodes=$(or $(NODES),3) -count=1 -v

.PHONY: power
power: ## cut the power of a whole node a thousand times
	$(GO) test -run 'TestPowerLoss$$' -timeout $(TIMEOUT) ./internal/node -power.seeds=200

# Where the programs of Kubernetes are kept that the next two targets build once, from the
# modules in test/k8s/controlplane: minutes of two processors, 700 MB.
K8S_CACHE ?= $(HOME)/.cache/mneme-k8s

# The program, of the version whose engine test/k8s renders the chart with.
.PHONY: helm
helm:
	mkdir -p $(K8S_CACHE)/bin
	cd test/k8s && CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o $(K8S_CACHE)/bin/helm helm.sh/helm/v4/cmd/helm

.PHONY: test-k8s
test-k8s: build helm ## have a real API server take the manifests and the chart (builds etcd, kube-apiserver, kubectl, helm: 10 minutes at first)
	test/k8s/controlplane/build.sh $(K8S_CACHE)/bin
	cd test/k8s && $(GO) test ./apply -count=1 -v -args -apply.programs=$(K8S_CACHE)/bin

.PHONY: test-k8s-node
test-k8s-node: build helm ## run the team overlay on a real node in namespaces (root, Linux, Debian; 15 minutes at first, then 5; STEPS=regexp: only these)
	@if [ "$$(uname)" != Linux ] || [ "$$(id -u)" != 0 ] || ! command -v apt-get unshare ip >/dev/null; then \
		echo "make test-k8s-node: SKIPPED: a kubelet needs root, Linux, unshare, ip and Debian's packages of containerd, runc, nft, iptables, ipset and busybox" >&2; exit 0; fi; \
	test/k8s/controlplane/build.sh $(K8S_CACHE)/bin --node && \
	test/k8s/controlplane/debian.sh $(K8S_CACHE)/debian && \
	( cd test/k8s && CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o $(K8S_CACHE)/bin/ ./internal/certmanager ./internal/policies ) && \
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o $(K8S_CACHE)/bin/nats-server github.com/nats-io/nats-server/v2 && \
	$(MAKE) image IMAGEFLAGS="-tag dev -modified -platforms linux/$$($(GO) env GOARCH)" && \
	cd test/k8s/node && $(GO) test . -count=1 -v -timeout 30m -args -node.programs=$(K8S_CACHE)/bin -node.debian=$(K8S_CACHE)/debian/root $(if $(STEPS),-node.steps="$(STEPS)")

.PHONY: bench
bench: ## measure what docs/benchmarks.md holds: node, vectors, retrieval (10 minutes)
	$(GO) run ./bench/node
	$(GO) run ./bench/vectors
	$(GO) run ./bench/retrieval

.PHONY: bench-sets
bench-sets: ## measure retrieval alone, all sets beside their marks (BENCHFLAGS="-raw FILE": keep the answers, "-beside FILE": compare with kept ones)
	$(GO) run ./bench/retrieval $(BENCHFLAGS)

.PHONY: bench-agents
bench-agents: bench/agents/node_modules/.package-lock.json ## measure what agents wait for: search over MCP, hooks, the graph beside the official memory server, imports, what a recall block holds (15 minutes)
	$(GO) run ./bench/agents $(BENCHFLAGS)
	$(GO) run ./bench/import
	$(GO) run ./bench/retrieval -tokens 600

.PHONY: bench-erase
bench-erase: ## measure erasing one of 1,000 subjects, and searches meanwhile (5 minutes)
	$(GO) run ./bench/erase

.PHONY: bench-cluster
bench-cluster: ## measure three nodes on this machine: faults, captures, reads, coming back, idling (20 minutes)
	$(GO) run ./bench/cluster $(BENCHFLAGS)

.PHONY: bench-quick
bench-quick: ## what bench measures, at a twentieth of the size
	$(GO) run ./bench/node -quick
	$(GO) run ./bench/vectors -quick
	$(GO) run ./bench/retrieval -questions 20

# The revision that bench-compare measures the working tree against, and how often.
BASE  ?= main
PAIRS ?= 10

.PHONY: bench-compare
bench-compare: ## measure the working tree beside another revision, in turns; fails where it is worse (BASE=, PAIRS=)
	$(GO) run ./bench/compare -base $(BASE) -pairs $(PAIRS) $(BENCHFLAGS)

.PHONY: bench-encryption
bench-encryption: ## measure what encrypting files costs: the working tree beside HEAD with its files in clear (PAIRS=)
	$(GO) run ./bench/compare -base HEAD -patch bench/compare/testdata/files-in-clear.patch -pairs $(PAIRS) $(BENCHFLAGS)

# What bench-search measures. A long run: SIZES=10000,100000,1000000 DIMS=384,768,1024
SIZES ?= 10000,100000
DIMS  ?= 384
ONLY  ?= vectors,text,hybrid

.PHONY: bench-search
bench-search: peers ## measure search beside hnswlib, FAISS, bleve, SQLite FTS5, Xapian (SIZES=, DIMS=, ONLY=)
	cd bench/search && $(GO) run . -sizes $(SIZES) -dims $(DIMS) -only $(ONLY) $(BENCHFLAGS)

# The C and C++ libraries that bench-search compares with.
.PHONY: peers
peers:
	@printf '#include <hnswlib/hnswlib.h>\n#include <faiss/IndexHNSW.h>\n#include <sqlite3.h>\n#include <xapian.h>\n' | g++ -x c++ -fsyntax-only - 2>/dev/null || \
	{ command -v apt-get >/dev/null 2>&1 && apt-get update -qq && apt-get install -y -qq --no-install-recommends g++ libhnswlib-dev libfaiss-dev libsqlite3-dev libxapian-dev; } || \
	echo "make bench-search: install g++, hnswlib, FAISS, SQLite and Xapian (Debian: g++ libhnswlib-dev libfaiss-dev libsqlite3-dev libxapian-dev); what is compiled with them is left out" >&2

.PHONY: test-observability
test-observability: ## hold alert rules and dashboards against the metrics, and cause alerts on real nodes; a module of its own
	cd test/observability && $(GO) vet ./... && $(GO) test -timeout $(TIMEOUT) ./...

.PHONY: test-bench
test-bench: ## test bench/search and bench/train, which are modules of their own
	cd bench/search && $(GO) vet ./... && $(GO) test -timeout $(TIMEOUT) ./...
	cd bench/train && $(GO) vet ./... && $(GO) test -timeout $(TIMEOUT) ./...

.PHONY: microbench
microbench: ## run the Go benchmarks of single parts (BENCH=regexp chooses)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout $(TIMEOUT) -p 1 ./internal/...

.PHONY: build
build: ## build memnode and memctl into bin/
	$(GO) build -o bin/ ./cmd/...

.PHONY: image
image: ## make the container image for amd64 and arm64 in dist/, without an engine
	cd deploy/release && $(GO) run . -source ../.. -out ../../dist $(IMAGEFLAGS)

.PHONY: release
release: ## make a release in dist/: archives for each platform, the image, install.sh, SBOM, provenance, checksums (RELEASEFLAGS=)
	rm -rf dist
	cd deploy/release && $(GO) run . -source ../.. -out ../../dist -archives all $(RELEASEFLAGS)

.PHONY: release-check
release-check: ## make the release once more from a clone of HEAD, and hold it against dist/ byte by byte
	@[ -f dist/SHA256SUMS ] || { echo "make release-check: there is no release in dist/: make release, or put there what was downloaded" >&2; exit 1; }
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && git clone --quiet --local . "$$work/clone" && \
	( cd "$$work/clone/deploy/release" && $(GO) run . -source ../.. -out "$$work/dist" -archives all $(RELEASEFLAGS) ) && \
	diff -r dist "$$work/dist" && echo "make release-check: both are the same, byte by byte"

.PHONY: install
install: ## install memnode and memctl where go install puts programs
	$(GO) install ./cmd/...

.PHONY: clean
clean: ## remove what the targets above made
	rm -rf bin coverage.out
