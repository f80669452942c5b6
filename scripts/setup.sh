#!/usr/bin/env bash
# Makes sure that everything the demo and the unit tests need is there, and
# installs what is missing where that is ours to do (as root, with apt).
# Otherwise it prints the line to run and fails. Repeating it costs nothing.
# The other servers of the integration tests: setup-mysql.sh, setup-postgres18.sh.
set -euo pipefail

# The oldest Go that go.mod accepts is checked by Go itself.
command -v go >/dev/null || { echo "Go is missing: https://go.dev/dl/" >&2; exit 3; }

packages=()

# PostgreSQL's server programs; Debian keeps them outside PATH.
postgres_there() {
    [[ -n "${WEIR_PG_BIN:-}" && -x "$WEIR_PG_BIN/initdb" ]] && return
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return
    command -v initdb >/dev/null && command -v postgres >/dev/null
}
postgres_there || packages+=(postgresql)

# The race detector links C code.
command -v gcc >/dev/null || command -v clang >/dev/null || packages+=(gcc libc6-dev)
command -v git >/dev/null || packages+=(git)

[[ ${#packages[@]} -eq 0 ]] && exit 0

install_line="apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
if [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "installing: ${packages[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2 </dev/null
    apt-get install -q -y --no-install-recommends "${packages[@]}" >&2 </dev/null
    postgres_there || { echo "PostgreSQL's server programs are still missing after the installation" >&2; exit 3; }
    exit 0
fi

{
    echo "missing: ${packages[*]}"
    if command -v apt-get >/dev/null; then
        echo "install with:  sudo sh -c '$install_line'"
    else
        echo "install them with this system's package manager"
    fi
    echo "PostgreSQL elsewhere: set WEIR_PG_BIN to the folder that holds initdb and postgres"
} >&2
exit 3
