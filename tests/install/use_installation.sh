#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs a build into a prefix, moves the prefix, and builds and runs outside projects against it: C and C++ by
# find_package, C by pkg-config. Each must write text with the CPU backend, from a plugin inside the moved prefix, or,
# for `builtin`, from the library itself.
#   use_installation.sh SOURCE BUILD SCRATCH plugins|builtin
set -euo pipefail
source="$1"
build="$2"
scratch="$3"
kind="$4"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
model="$source/examples/demo_model/demo.gguf"
prefix="$scratch/there"
unset KVASIR_BACKEND_PATH LD_LIBRARY_PATH CPATH LIBRARY_PATH CMAKE_PREFIX_PATH

fail() { echo "FAILED: $*"; exit 1; }

install_and_move() {
  rm -rf "$scratch/here" "$prefix" "$scratch"/use_*
  mkdir -p "$scratch"
  cmake --install "$build" --prefix "$scratch/here" >/dev/null
  mv "$scratch/here" "$prefix"
  if grep -rlF "$scratch/here" "$prefix"; then fail "these files name the prefix they were installed to"; fi
}

# The program prints "version V", "backend PATH" and "text ..." (see consumer_c/main.c).
check_output() {
  local name="$1" output="$2" backend
  echo "--- $name"
  echo "$output"
  [[ "$(sed -n 's/^version //p' <<<"$output")" == "$version" ]] || fail "$name: not version $version"
  backend="$(sed -n 's/^backend //p' <<<"$output")"
  case "$kind" in
    plugins) [[ "$backend" == "$prefix"/*/kvasir/backends/libkvasir_backend_cpu.v0.so ]] ;;
    builtin) [[ "$backend" == built-in ]] ;;
  esac || fail "$name: the cpu backend came from '$backend'"
  grep -q '^text .*[a-z]' <<<"$output" || fail "$name: no text"
}

use_cmake() {
  local name="$1"
  cmake -S "$here/$name" -B "$scratch/use_$name" -G Ninja --log-level=WARNING "-DCMAKE_PREFIX_PATH=$prefix"
  cmake --build "$scratch/use_$name" >/dev/null
  check_output "$name" "$("$scratch/use_$name/consumer" "$model")"
}

use_pkg_config() {
  local libdir flags
  libdir="$(dirname "$(find "$prefix" -name kvasir.pc)")"
  export PKG_CONFIG_PATH="$libdir"
  [[ "$(pkg-config --modversion kvasir)" == "$version" ]] || fail "pkg-config: not version $version"
  libdir="$(cd "$(pkg-config --variable=libdir kvasir)" && pwd)"
  [[ "$libdir" == "$prefix"/* ]] || fail "pkg-config: libdir is $libdir"
  [[ "$kind" == builtin || -f "$(pkg-config --variable=plugindir kvasir)/libkvasir_backend_cpu.v0.so" ]] ||
    fail "pkg-config: no plugin in plugindir"
  mkdir -p "$scratch/use_pkg_config"
  read -ra flags < <(pkg-config --cflags --libs kvasir)
  cc -std=c99 -Wall -Werror "$here/consumer_c/main.c" -o "$scratch/use_pkg_config/consumer" "${flags[@]}" \
    "-Wl,-rpath,$libdir"
  check_output pkg_config "$("$scratch/use_pkg_config/consumer" "$model")"
}

version="$(sed -n 's/^#define KV_VERSION_[A-Z]* \([0-9]*\).*/\1/p' "$source/include/kvasir/kvasir.h" | paste -sd.)"
install_and_move
use_cmake consumer_c
use_cmake consumer_cpp
use_pkg_config
if [[ -x "$prefix/bin/kvasir" ]]; then "$prefix/bin/kvasir" devices | grep -w cpu || fail "the tool lists no cpu"; fi
# The author of a backend runs the conformance suite from an installation alone.
if [[ "$kind" == plugins && -x "$prefix/bin/kvasir-backend-test" ]]; then
  plugin="$(find "$prefix" -name libkvasir_backend_cpu.v0.so)"
  (cd "$scratch" && "$prefix/bin/kvasir-backend-test" "$plugin" --filter 'load/*' --json statement.json)
  grep -q '"conforms": true' "$scratch/statement.json" || fail "the installed cpu backend does not conform"
fi
echo "all consumers found version $version in $prefix"
