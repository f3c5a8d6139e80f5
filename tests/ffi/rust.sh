#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The crate of bindings/rust: its declarations against the C compiler's view, its tests, and hello.
source "${BASH_SOURCE%/*}/common.sh"
command -v cargo >/dev/null || skip "no cargo here: the Rust binding is not tested"
cargo --version >/dev/null 2>&1 || skip "cargo does not run: the Rust binding is not tested"
export KVASIR_LIB_DIR="$library_dir" CARGO_TARGET_DIR="$build_dir"
rm -rf "$build_dir/crate" # a copy, times kept: cargo writes beside its sources
cp -a "$source_dir/bindings/rust" "$build_dir/crate"
cd "$build_dir/crate"

if command -v clang >/dev/null; then
  for kind in rust:src/sys.rs list:tests/layout/list.rs; do
    python3 generate_sys.py "$source_dir/include" "${kind%%:*}" | diff - "${kind#*:}" ||
      { echo "${kind#*:} is not what generate_sys.py makes of the header"; exit 1; }
  done
  python3 generate_sys.py "$source_dir/include" c >"$build_dir/layout.c"
  cc -std=c11 "-I$source_dir/include" "$build_dir/layout.c" -o "$build_dir/layout"
  "$build_dir/layout" >"$build_dir/layout.txt"
  export KVASIR_C_LAYOUT="$build_dir/layout.txt"
else
  echo "no clang here: layouts are not compared"
fi

cargo test --offline --quiet
cargo run --offline --quiet --example hello -- "$model" "$prompt" "$KVASIR_TEST_PLUGINS" | tee "$build_dir/hello.txt"
same_text "$build_dir/hello.txt"
grep -qx "error: KV_NOT_FOUND: .*no such file.gguf.*" "$build_dir/hello.txt"
grep -qx "rows: 3" "$build_dir/hello.txt"
grep -q "^cancelled: KV_CANCELLED: " "$build_dir/hello.txt"
grep -qx "the sequence holds 0 tokens" "$build_dir/hello.txt"
