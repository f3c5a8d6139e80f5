# SPDX-License-Identifier: MIT
#
# Shared by rust.sh and go.sh, which source it with SOURCE BUILD LIBDIR TOOL as arguments.
set -euo pipefail
readonly source_dir="$1" build_dir="$2" library_dir="$3" tool="$4"
readonly model="$KVASIR_TEST_DATA/demo.gguf" prompt="Once upon a time"
mkdir -p "$build_dir"

# skip REASON, in the words of GoogleTest, which ./dev collects.
skip() {
  printf 'ffi: Skipped\n%s\n[  SKIPPED ] ffi\n' "$1"
  exit 77
}

# same_text OUTPUT: the hello program wrote what the tool writes.
same_text() {
  local ours theirs
  ours="$(sed -n 's/^text: //p' "$1")"
  theirs="$("$tool" generate -m "$model" --device cpu -p "$prompt" -n 40 --temp 0 2>/dev/null)"
  if [[ -z "$ours" || "${theirs#"$prompt"}" != "${ours#"$prompt"}"* ]]; then
    printf 'hello: %s\ntool:  %s\n' "$ours" "$theirs"
    return 1
  fi
}
