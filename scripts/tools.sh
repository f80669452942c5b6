#!/usr/bin/env bash
# Finds or installs a tool we need besides Go, and prints its path. It is kept
# outside the repository and outside GOBIN, so that its version is ours and no
# user's tool is replaced.
#
#   $(scripts/tools.sh golangci-lint) run ./...
#   $(scripts/tools.sh nats) stream ls      # the NATS CLI, for docs/inspect.md
#   $(scripts/tools.sh versitygw) ...       # an S3 server, for the tests
set -euo pipefail

GOLANGCI_LINT_VERSION=2.15.0
NATSCLI_VERSION=0.5.0
VERSITYGW_VERSION=1.8.0

cache="${XDG_CACHE_HOME:-$HOME/.cache}/weir/bin"

identify() { "$1" --version; }

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
versitygw)
    version=$VERSITYGW_VERSION
    package="github.com/versity/versitygw/cmd/versitygw@v$version"
    # It knows its own version only from flags of its release's build.
    identify() { go version -m "$1"; }
    says=$'\tgithub.com/versity/versitygw\tv'"$version"$'\t'
    ;;
*)
    echo "usage: $0 golangci-lint|nats|versitygw" >&2
    exit 2
    ;;
esac

has_version() { [[ -x "$1" && "$(identify "$1" 2>/dev/null) " == *"$says"* ]]; }

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
