#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes a baseline of both interfaces: the headers and the list of exported symbols as they are now.
#   tests/abi/freeze.sh VERSION        e.g. 0.1; a baseline of that version is replaced
# A baseline holds no binary description: check_frozen.py builds one from the headers where it compares (its comment says
# why). Freeze at each release; do not edit a baseline of a released version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [[ $# -ne 1 || ! "$1" =~ ^[0-9]+\.[0-9]+$ ]]; then
  echo "usage: freeze.sh MAJOR.MINOR" >&2
  exit 2
fi
rm -rf "frozen/$1"
mkdir -p "frozen/$1/kvasir"
cp ../../include/kvasir/*.h "frozen/$1/kvasir/"
cp symbols.txt "frozen/$1/symbols.txt"
chmod -R u+w "frozen/$1"
echo "frozen/$1: $(ls "frozen/$1/kvasir" | wc -l) headers, $(grep -c '^kv' "frozen/$1/symbols.txt") symbols"
