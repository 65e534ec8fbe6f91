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
have gcc || need+=(gcc libc6-dev)        # the race detector and NVML need cgo
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

if have gcc; then (
  say "NVML: the driver for real cards, over its mock"
  # go-nvml wraps calls that NVIDIA has deprecated; the compiler would say so each time
  export CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations"
  go vet -tags nvml ./agent/device/nvml ./cli
  go tool staticcheck -tags nvml ./agent/device/nvml
  go test -tags nvml -timeout 5m ./agent/device/nvml
  with=$(mktemp -d)
  trap 'rm -rf "$with"' EXIT
  go build -tags nvml -o "$with/berth" .
  if ! ldconfig -p | grep -q libnvidia-ml; then # it starts without a driver, and says that there is none
    said=$("$with/berth" agent --data "$with/data" 2>&1) && { echo "an agent without cards started"; exit 1; }
    [[ $said == *"NVIDIA's driver is not installed here"* ]] || { echo "without a driver it says: $said"; exit 1; }
  fi
) fi

if [ "$mode" = quick ]; then
  say "tests"
  go test -short -timeout 20m ./...
else
  say "tests, with the race detector"
  go test -race -timeout 25m ./...
fi
