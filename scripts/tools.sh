#!/usr/bin/env bash
# Finds or installs a tool we need besides Go, and prints its path. It is kept
# outside the repository and outside GOBIN, so that its version is ours and no
# user's tool is replaced.
#
#   $(scripts/tools.sh golangci-lint) run ./...
#   $(scripts/tools.sh nats) stream ls      # the NATS CLI, for docs/inspect.md
set -euo pipefail

GOLANGCI_LINT_VERSION=2.15.0
NATSCLI_VERSION=0.5.0

cache="${XDG_CACHE_HOME:-$HOME/.cache}/weir/bin"

case "${1:-}" in
golangci-lint)
    version=$GOLANGCI_LINT_VERSION
    package="github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$version"
    says="version $version "
    ;;
nats)
    version=$NATSCLI_VERSION
    package="github.com/nats-io/natscli/nats@v$version"
    says="v$version "
    ;;
*)
    echo "usage: $0 golangci-lint|nats" >&2
    exit 2
    ;;
esac

has_version() { [[ -x "$1" && "$("$1" --version 2>/dev/null) " == *"$says"* ]]; }

for candidate in "$cache/$1" "$(command -v "$1" || true)" "$(go env GOPATH)/bin/$1"; do
    if [[ -n "$candidate" ]] && has_version "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done

echo "installing $1 $version (once; a few minutes)" >&2
mkdir -p "$cache"
# From an empty folder: neither this workspace nor its go.mod has a say.
(cd "$cache" && GOWORK=off GOBIN="$cache" GOFLAGS=-mod=mod go install "$package" >&2)
has_version "$cache/$1" || { echo "$cache/$1 is not version $version after its installation" >&2; exit 1; }
echo "$cache/$1"
