#!/usr/bin/env bash
# Makes sure that the tests have a reader of Iceberg tables that shares no code with Weir: ClickHouse, as the npm package chdb, in
# the user's cache folder (half a gigabyte). Prints that folder. Repeating it costs nothing.
set -euo pipefail

version=3.4.0
root="${WEIR_CHDB_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/servers/chdb-$version}"

if [[ ! -f "$root/node_modules/chdb/package.json" ]]; then
    for tool in node npm; do
        if ! command -v "$tool" >/dev/null; then
            echo "missing: $tool; install Node.js 20 or newer with this system's package manager" >&2
            exit 3
        fi
    done
    echo "installing ClickHouse (npm chdb $version) in $root" >&2
    mkdir -p "$(dirname "$root")"
    partial="$(mktemp -d "$root.XXXXXX")"
    trap 'rm -rf "$partial"' EXIT
    npm install --prefix "$partial" --no-audit --no-fund --silent "chdb@$version" >&2 </dev/null
    chmod 755 "$partial"
    mv "$partial" "$root"
fi
echo "$root"
