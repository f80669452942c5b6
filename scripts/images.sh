#!/usr/bin/env bash
# Makes what the Dockerfile's target "prebuilt" copies: every program as a static binary, the machine's certificates of
# public authorities, and an empty folder for temporary files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version="$(git describe --tags --always --dirty 2>/dev/null || echo dev)"
mkdir -p dist/tmp
mapfile -t programs < <(dirname services/*/cmd/*/main.go)
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X weir.dev/weir/pkg/app.version=$version" \
    -o dist/ "${programs[@]/#/./}"

for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
    if [[ -r "$bundle" ]]; then
        cp "$bundle" dist/ca-certificates.crt
        exit 0
    fi
done
echo "no certificates of public authorities here: install the package ca-certificates" >&2
exit 3
