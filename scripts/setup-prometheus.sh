#!/usr/bin/env bash
# Makes sure that Prometheus is there for the tests of its rules and of the
# dashboard, and prints the folder of its programs. They are taken out of
# Debian's package into a cache outside the repository: nothing is installed,
# no service begins. Repeating it costs nothing.
set -euo pipefail

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    dirname "$(command -v promtool)"
    exit 0
fi

root="${XDG_CACHE_HOME:-$HOME/.cache}/weir/prometheus"
bin="$root/usr/bin"
there() { "$1/usr/bin/promtool" --version >/dev/null 2>&1 && "$1/usr/bin/prometheus" --version >/dev/null 2>&1; }

if ! there "$root"; then
    if ! command -v apt-get >/dev/null; then
        echo "prometheus and promtool are missing: install Prometheus" >&2
        exit 3
    fi
    echo "fetching prometheus (once; some seconds)" >&2
    mkdir -p "$(dirname "$root")"
    partial="$(mktemp -d "$root.XXXXXX")"
    trap 'rm -rf "$partial"' EXIT
    fetch() { (cd "$partial" && apt-get download -q prometheus >/dev/null 2>&1 </dev/null); }
    if ! fetch && [[ $EUID -eq 0 ]]; then
        apt-get update -q >&2 </dev/null
        fetch || true
    fi
    dpkg-deb --extract "$partial"/prometheus_*.deb "$partial" || { echo "Debian's package of prometheus cannot be had: apt-get update" >&2; exit 3; }
    rm -rf "$partial"/prometheus_*.deb "$partial/usr/share"
    there "$partial" || { echo "what was fetched does not run here" >&2; exit 3; }
    rm -rf "$root"
    mv "$partial" "$root"
fi
echo "$bin"
