#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the library with KVASIR_STATIC_BACKENDS and uses that installation: no plugin files, the same results.
#   build_static.sh SOURCE SCRATCH [CMAKE ARGS ...]
set -euo pipefail
source="$1"
scratch="$2"

cmake -S "$source" -B "$scratch/build" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
  -DKVASIR_STATIC_BACKENDS=ON -DKVASIR_BUILD_TESTS=OFF -DKVASIR_BUILD_EXAMPLES=OFF "${@:3}"
cmake --build "$scratch/build" --parallel "$(nproc)"
exec bash "$(dirname "${BASH_SOURCE[0]}")/use_installation.sh" "$source" "$scratch/build" "$scratch/moved" builtin
