#!/usr/bin/env bash
# Runs every fuzz target of the workspace for a while each.
#
#   scripts/fuzz.sh 30s
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

budget=${1:-10s}
status=0
while IFS=: read -r file target; do
    package="./$(dirname "$file")"
    echo "== $package $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$budget" "$package" || status=1
done < <(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' pkg services itest |
    sed -E 's/^([^:]+):[0-9]+:func (Fuzz[A-Za-z0-9_]+)$/\1:\2/')
exit $status
