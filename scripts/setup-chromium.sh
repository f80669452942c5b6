#!/usr/bin/env bash
# Makes sure that a Chromium is there for the tests of the page, and prints its path. Repeating it costs nothing.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name"; then exit 0; fi
done
if [[ $EUID -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "Chromium is missing: apt-get install -y chromium" >&2
    exit 3
fi
echo "installing: chromium" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2 </dev/null
apt-get install -q -y --no-install-recommends chromium >&2 </dev/null
command -v chromium
