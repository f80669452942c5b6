#!/usr/bin/env bash
# Runs a command and fails when it changed, added or removed a file of the
# repository. Works in a dirty tree: it compares before with after.
#
#   scripts/unchanged.sh "run 'make gen' and commit the result" make gen
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

remedy=$1
shift

fingerprints() {
    git ls-files -z --cached --others --exclude-standard -- docs schemas pkg services itest |
        sort -zu | while IFS= read -r -d '' file; do
        if [[ -f "$file" ]]; then sha256sum "$file"; fi
    done
}

before="$(fingerprints)"
"$@"
after="$(fingerprints)"
if [[ "$before" != "$after" ]]; then
    echo "files that '$*' changed ($remedy):" >&2
    diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u >&2
    exit 1
fi
