#!/usr/bin/env bash
# Runs everything: unit, property, race, PostgreSQL, browser. Installs what the
# tests need where it may (root on Debian), else says what is missing.
#   ./test.sh          all of it
#   ./test.sh quick    no race detector, no browser
set -euo pipefail
cd "$(dirname "$0")"
mode=${1:-all}
say() { printf '\n== %s\n' "$*"; }

need=()
have() { command -v "$1" >/dev/null 2>&1; }
have git || need+=(git)
have chromium || have chromium-browser || have google-chrome || need+=(chromium)
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || need+=(postgresql)
have pdftotext || need+=(poppler-utils)
have prometheus || need+=(prometheus)
have python3 || need+=(python3)
have gcc || need+=(gcc libc6-dev)        # the race detector needs cgo
if [ ${#need[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && have apt-get; then
    say "installing ${need[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update -qq
    apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${need[@]}" >/dev/null
  else
    say "missing: ${need[*]} (Debian: sudo apt-get install ${need[*]}); the tests that need them are skipped"
  fi
fi

say "format, generated code, vet, staticcheck"
unformatted=$(git ls-files '*.go' | grep -v _templ.go | xargs gofmt -l)
[ -z "$unformatted" ] || { echo "gofmt would change: $unformatted"; exit 1; }
before=$(git ls-files '*_templ.go' | xargs cat | sha256sum)
go tool templ generate >/dev/null
[ "$before" = "$(git ls-files '*_templ.go' | xargs cat | sha256sum)" ] || { echo "templ's generated code is not what the templates say: commit what 'go tool templ generate' made"; exit 1; }
go vet ./...
(cd bench && go vet ./...) # a module of its own, for what only it is compared with
go tool staticcheck ./...

if [ "$mode" = quick ]; then
  say "tests"
  go test -short -timeout 20m ./...
else
  say "tests, with the race detector"
  go test -race -timeout 25m ./...
fi
