#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the demo model from nothing: vocabulary, training, export, evaluation.
#   make.sh [work folder]          (default: a new temporary folder)
# PYTHON  the interpreter, with numpy and torch    (default: python3)
# STEPS   training steps                           (default: 4000, about 40 minutes on a free core)
# The results, demo.gguf and expected.json, replace the ones beside this script.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
python=${PYTHON:-python3}
steps=${STEPS:-4000}
mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$here"
export PYTHONDONTWRITEBYTECODE=1
# glibc: keep large blocks instead of giving them back after each use; training is a third faster
export MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=8000000000 MALLOC_TOP_PAD_=100000000

"$python" train_tokenizer.py --out "$work/tokenizer.json"
"$python" train.py --tokenizer "$work/tokenizer.json" --out "$work/checkpoint.npz" --steps "$steps" |
    tee "$work/train.log"
"$python" export_gguf.py "$work/checkpoint.npz" demo.gguf
"$python" evaluate.py demo.gguf --golden expected.json
