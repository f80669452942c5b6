#!/usr/bin/env bash
# Makes sure that the test of compose/ has a Docker engine to start and a PostgreSQL for its container, neither of them the
# machine's own: two small root file systems of Debian stable in the user's cache folder. Nothing is installed on the
# machine but the program that makes them. Repeating it costs nothing.
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/weir/servers"
suite=trixie

there() { [[ -x "$cache/docker-root/usr/sbin/dockerd" && -x "$cache/postgres17-root/usr/lib/postgresql/17/bin/postgres" ]]; }
there && exit 0

if [[ $EUID -ne 0 ]]; then
    echo "the test of compose/ needs root, for this set-up and for the namespaces of its Docker engine" >&2
    exit 3
fi
if ! command -v mmdebstrap >/dev/null; then
    if ! command -v apt-get >/dev/null; then
        echo "missing: mmdebstrap; install it with this system's package manager" >&2
        exit 3
    fi
    echo "installing: mmdebstrap" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2 </dev/null
    apt-get install -q -y --no-install-recommends mmdebstrap >&2 </dev/null
fi

# make NAME PACKAGES [OPTION..] makes a root file system when it is not there.
make() {
    local root="$cache/$1" packages="$2"
    shift 2
    [[ -d "$root" ]] && return
    echo "making a root file system with $packages in $root (a minute)" >&2
    partial="$(mktemp -d "$root.XXXXXX")"
    trap 'rm -rf "$partial"' EXIT
    mmdebstrap --quiet --variant=minbase --include="$packages" \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$@" "$suite" "$partial" >&2 </dev/null
    chmod 755 "$partial"
    mv "$partial" "$root"
}

mkdir -p "$cache"
make docker-root docker.io,docker-cli,docker-compose,iptables,iproute2
# Debian makes a database for the machine at once; the image is to make its own.
make postgres17-root postgresql-17 --customize-hook='rm -rf "$1"/var/lib/postgresql/17 "$1"/etc/postgresql/17'
there || { echo "the root file systems in $cache lack their programs" >&2; exit 3; }
