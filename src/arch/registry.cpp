// SPDX-License-Identifier: MIT
#include "arch/arch.h"

namespace kvasir {

namespace {

struct Family {
  const char* architecture;
  void (*build)(Builder&);
};

constexpr Family kFamilies[] = {
    {"llama", arch::build_llama},
    {"qwen2", arch::build_qwen2},
    {"qwen3", arch::build_qwen3},
    {"custom", arch::build_custom},
};

}  // namespace

Status build_program(const ModelConfig& config, const WeightSource& weights, Program* out) {
  for (const Family& family : kFamilies) {
    if (config.architecture != family.architecture) continue;
    Builder builder(config, weights);
    family.build(builder);
    return builder.finish(out);
  }
  return Status::error(KV_UNSUPPORTED, "the architecture '%s' is not supported", config.architecture.c_str());
}

}  // namespace kvasir
