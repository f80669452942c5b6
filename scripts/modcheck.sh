#!/usr/bin/env bash
# Checks that the go.mod files are what `go mod tidy` would write, and that
# every module names the same Go version. Changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
want="$(awk '$1 == "go" {print $2}' go.work)"
for module in $(go list -m -f '{{.Dir}}'); do
    have="$(awk '$1 == "go" {print $2; exit}' "$module/go.mod")"
    if [[ "$have" != "$want" ]]; then
        echo "$module/go.mod says go $have, go.work says go $want" >&2
        status=1
    fi
    (cd "$module" && GOWORK=off go mod tidy -diff) || {
        echo "$module is not tidy: run 'go mod tidy' there with GOWORK=off" >&2
        status=1
    }
done
exit $status
