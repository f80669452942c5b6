# Weir. `make help` lists the targets; CI runs `make ci` and nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X weir.dev/weir/pkg/app.version=$(VERSION)
PREFIX  ?= /usr/local

# A program is a folder services/<service>/cmd/<name>.
PROGRAMS := $(patsubst %/main.go,./%,$(wildcard services/*/cmd/*/main.go))

# Products: raced. Flows between real processes: not, their time is the servers',
# and never from the cache: go test does not see the programs that they build.
# Two packages at a time: most of it is waiting for leases, epochs and kills.
RACED   := weir.dev/weir/pkg/... weir.dev/weir/services/...
FLOWS   := go list weir.dev/weir/itest/... | grep -v /itest/compose

# Of these only a part runs raced, which costs ten times as much: here the whole.
WHOLE   := weir.dev/weir/pkg/job weir.dev/weir/services/sink/internal/iceberg

# What differs between versions of PostgreSQL, once more against the newest one.
NEWEST  := weir.dev/weir/itest/cdcpostgres weir.dev/weir/itest/types
DIFFERS := Eighteen|Generated|Virtual|SlotOlder|ServerPutBack|UnchangedToast|CopyAndLogAgree|TestTypes|Matrix/snapshot|Matrix/log_as_binary
ARGS    ?=
FUZZTIME ?= 10s

# Where the demo copies from: postgres, mysql or mariadb.
DEMO    ?= postgres

.PHONY: help build install images demo eo-verify test race bubble flows containers fuzz bench bench-snapshot bench-mysql bench-iceberg bench-reports microbench lint fmt vet gen gen-check mod-check setup servers ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build every program into bin/ (default)
	@mkdir -p bin
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS)

install: build ## install the programs into $(PREFIX)/bin
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 bin/* $(DESTDIR)$(PREFIX)/bin/

images: ## programs for images built on this machine, into dist/ (see the Dockerfile)
	@scripts/images.sh

demo: $(if $(filter postgres,$(DEMO)),setup,servers) build ## into PostgreSQL, exactly once, with a kill -9 in the middle (DEMO=mysql, mariadb: from there)
	go run weir.dev/weir/itest/cmd/demo -weir bin/weir -from $(DEMO) $(ARGS)

eo-verify: setup build ## prove exactly once under failures (ARGS="--failure all --seeds 1")
	go run weir.dev/weir/itest/cmd/eoverify -weir bin/weir $(ARGS)

test: setup race bubble flows containers ## run every test; installs what is missing

race: setup ## unit, property and bubble tests under the race detector
	BUBBLE_SEEDS=1 go test -race -timeout 20m $(RACED)

bubble: ## seeded schedules of faults in virtual time (BUBBLE_SEEDS=n of each class)
	go test -timeout 20m weir.dev/weir/services/weir/internal/schedules

flows: servers ## integration tests: real servers, separate processes
	newest="$$(scripts/setup-postgres18.sh)"; \
	go test -p 2 -count 1 -timeout 30m $(WHOLE) $$($(FLOWS)); \
	WEIR_PG_BIN="$$newest" go test -p 1 -count 1 -timeout 10m -run '$(DIFFERS)' $(NEWEST)

containers: ## the mesh of compose/ in an engine of its own (Linux, root; installs it below the cache)
	go test -p 1 -count 1 -timeout 40m weir.dev/weir/itest/compose

fuzz: ## run each fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh $(FUZZTIME)

bench: setup ## measure from end to end, about 10 minutes; writes docs/bench/ (ARGS=-full: longer)
	go test -count 1 -run '^$$' -bench EndToEnd -benchtime 1x -timeout 90m weir.dev/weir/itest/bench -args $(ARGS)

bench-snapshot: setup ## measure the copy of 10,000,000 rows, about 15 minutes; writes docs/bench/snapshot.md
	go test -count 1 -run '^$$' -bench Snapshot -benchtime 1x -timeout 90m weir.dev/weir/itest/bench -args $(ARGS)

bench-mysql: setup ## measure MySQL's log and copy, about 25 minutes; writes docs/bench/mysql.md (ARGS="-mysql-rows 300000 -mysql-copy-rows 500000 -mysql-runs 1": 3)
	go test -count 1 -run '^$$' -bench MySQL -benchtime 1x -timeout 90m weir.dev/weir/itest/bench -args $(ARGS)

bench-iceberg: servers ## measure the way into Iceberg tables, about 15 minutes; writes docs/bench/iceberg.md (ARGS="-iceberg-parts log,copy")
	go test -count 1 -run '^$$' -bench Iceberg -benchtime 1x -timeout 90m weir.dev/weir/itest/bench -args $(ARGS)

bench-reports: setup ## measure what progress reports cost, about 4 minutes; writes docs/bench/reports.md
	go test -count 1 -run '^$$' -bench Reports -benchtime 1x -timeout 30m weir.dev/weir/itest/bench -args $(ARGS)

microbench: setup ## run the benchmarks beside the code
	go test -run '^$$' -bench . -benchmem $(RACED)

lint: ## golangci-lint in each module: rules, walls, format
	scripts/lint.sh

fmt: ## rewrite the code in house format (gofumpt, gci)
	scripts/lint.sh fmt

vet: ## build and vet each module on its own (GOWORK=off)
	scripts/modules.sh go build ./...
	scripts/modules.sh go vet ./...

gen: ## rewrite the generated files (docs/errors.md, schemas/)
	scripts/modules.sh go generate ./...

gen-check: ## fail when a generated file is out of date
	scripts/unchanged.sh "run 'make gen' and commit the result" $(MAKE) --no-print-directory gen

mod-check: ## fail when a go.mod is not tidy
	scripts/modcheck.sh

setup: ## install what demo and unit tests need (PostgreSQL), or say how
	@scripts/setup.sh

servers: setup ## install what the integration tests need besides (MySQL, MariaDB, PostgreSQL 18, Prometheus, the NATS CLI, an S3 server)
	@scripts/setup-mysql.sh
	@scripts/setup-postgres18.sh >/dev/null
	@scripts/tools.sh nats >/dev/null
	@scripts/tools.sh versitygw >/dev/null
	@scripts/setup-prometheus.sh >/dev/null

ci: setup mod-check gen-check vet lint race bubble flows ## everything but the containers, as CI runs it

clean: ## remove bin/ and dist/
	rm -rf bin dist
