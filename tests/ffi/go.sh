#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The package of bindings/go: vet, its tests under the race detector and the pointer checks, and hello.
source "${BASH_SOURCE%/*}/common.sh"
command -v go >/dev/null || skip "no go here: the Go binding is not tested"
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOCACHE="$build_dir/cache" GODEBUG=cgocheck=1 CGO_ENABLED=1
export CGO_CFLAGS="-I$source_dir/include" CGO_LDFLAGS="-L$library_dir -Wl,-rpath,$library_dir"
export HOME="${HOME:-$build_dir}"
cd "$source_dir/bindings/go"

unformatted="$(gofmt -l .)"
[[ -z "$unformatted" ]] || { echo "gofmt would change: $unformatted"; exit 1; }
go vet ./...
go test -race -count=1 .
go run ./hello "$model" "$prompt" "$KVASIR_TEST_PLUGINS" | tee "$build_dir/hello.txt"
same_text "$build_dir/hello.txt"
grep -qx "error: KV_NOT_FOUND: .*no such file.gguf.*" "$build_dir/hello.txt"
grep -qx "cancelled: the sequence holds 0 tokens" "$build_dir/hello.txt"
