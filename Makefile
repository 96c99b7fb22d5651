# The entry to everything: `make help` lists the targets.

SHELL      := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  := -s -w -X main.version=$(VERSION)
BUILD    := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)'
RIG      := testdata/rig
PROFILE  ?= local

# Tools that only development needs, pinned, built into the clone.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/caisson: static, stripped, version stamped
	$(BUILD) -o bin/caisson ./cmd/caisson

.PHONY: demo
demo: build ## Run the main job over real stdio frames; PROFILE=docker runs it in a container
	$(GO) run ./cmd/demo -caisson bin/caisson -profile $(PROFILE)

.PHONY: test
test: ## Install what the tests need, start it on loopback, pass all tests; RACE=yes with the race detector
	RACE=$(RACE) $(RIG)/run suite

.PHONY: test-race
test-race: ## The Go tests under the race detector
	RACE=yes $(RIG)/run go

.PHONY: bench
bench: build ## Print the table of speeds beside their floors and peers
	$(GO) run ./cmd/bench -caisson bin/caisson

.PHONY: fuzz
fuzz: ## Fuzz every decoder for FUZZTIME (default 30s) each
	FUZZTIME=$${FUZZTIME:-30s} $(RIG)/fuzz

.PHONY: soak
soak: build ## Many sessions and accidents for FOR (default 10m), checked against a model; SEED=… repeats a plan
	$(GO) run ./cmd/soak -caisson bin/caisson -for $${FOR:-10m} -seed $${SEED:-0}

.PHONY: lint
lint: $(GOLANGCI) editor-extension/node_modules ## Formatting, vet, linters, import rules, stale generated files
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -d $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GOLANGCI) run ./...
	GOOS=darwin $(GO) vet ./cmd/caisson ./rpc/... ./session/... ./artifacts/... ./diskfile/... ./backends/...
	GOOS=windows $(GO) vet ./cmd/caisson ./rpc/... ./session/... ./artifacts/... ./diskfile/... ./backends/...
	cd editor-extension && npm run --silent lint
	$(GO) mod tidy -diff
	$(GO) run ./cmd/generate -check

.PHONY: generate
generate: editor-extension/node_modules ## Write the generated schemas and types
	$(GO) run ./cmd/generate

.PHONY: dist
dist: ## Build the release layout for every supported platform into dist/
	$(RIG)/dist '$(VERSION)' '$(LDFLAGS)'

.PHONY: extension
extension: build editor-extension/node_modules ## Build the editor extension with this platform's program: dist/caisson.vsix
	$(RIG)/extension '$(LDFLAGS)'

.PHONY: e2e
e2e: ## The extension in a real workbench; PICTURES=DIR keeps pictures of its views
	$(RIG)/e2e

$(GOLANGCI):
	mkdir -p .tools
	GOBIN=$(CURDIR)/.tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

editor-extension/node_modules: editor-extension/package-lock.json
	cd editor-extension && npm ci --no-audit --no-fund --silent
	touch $@

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist .tools editor-extension/node_modules editor-extension/packages/{*,*/examples}/{dist,bin}
