#!/usr/bin/env bash
# Lints every module of the workspace with .golangci.yml. golangci-lint knows
# no workspace, so it runs once inside each.
#
#   scripts/lint.sh            report
#   scripts/lint.sh fmt        rewrite the files in house format
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

linter="$(scripts/tools.sh golangci-lint)"
config="$PWD/.golangci.yml"
status=0
for module in $(go list -m -f '{{.Dir}}'); do
    case "${1:-run}" in
    fmt) (cd "$module" && GOWORK=off "$linter" fmt --config "$config") || status=1 ;;
    run)
        echo "== $(basename "$module"): golangci-lint"
        (cd "$module" && GOWORK=off "$linter" run --allow-parallel-runners --config "$config" ./...) || status=1
        ;;
    *)
        echo "usage: $0 [run|fmt]" >&2
        exit 2
        ;;
    esac
done
exit $status
