#!/usr/bin/env bash
# Runs one command inside each module of the workspace, as a user of that
# module alone would: GOWORK=off, so that a requirement which only the
# workspace supplies is found missing.
#
#   scripts/modules.sh go build ./...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Read the members from go.work itself: there is no second list to forget.
for module in $(go list -m -f '{{.Dir}}'); do
    printf '== %s: %s\n' "$(basename "$module")" "$*"
    (cd "$module" && GOWORK=off "$@")
done
