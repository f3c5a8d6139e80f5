// SPDX-License-Identifier: MIT
//
// vocabulary_from_gguf: GGUF's tokenizer keys to a Vocabulary.
#include <cinttypes>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf.h"
#include "model/vocabulary.h"
#include "text/vocabulary.h"

namespace kvasir {
namespace {

std::string full_key(const char* name) { return std::string("tokenizer.ggml.") + name; }

Status read_strings(const Gguf& gguf, const char* name, std::vector<std::string>* out) {
  const auto found = gguf.find(full_key(name));
  if (!found) return {};
  std::vector<std::string_view> views;
  KV_RETURN_IF_ERROR(found->as_strings(&views));
  out->assign(views.begin(), views.end());
  return {};
}

// Token ids are signed or not, and "none" is written -1 or 4294967295.
Status read_id(const Gguf& gguf, const char* name, int32_t* out) {
  const auto found = gguf.find(full_key(name));
  if (!found) return {};
  int64_t id = 0;
  KV_RETURN_IF_ERROR(found->as_i64(&id));
  if (id == UINT32_MAX) id = -1;
  KV_CHECK(id >= -1 && id <= INT32_MAX, KV_CORRUPT, "key '%s' is %" PRId64 ", which is no token",
           full_key(name).c_str(), id);
  *out = static_cast<int32_t>(id);
  return {};
}

Status read_tables(const Gguf& gguf, Vocabulary* vocabulary) {
  KV_RETURN_IF_ERROR(read_strings(gguf, "tokens", &vocabulary->pieces));
  KV_RETURN_IF_ERROR(read_strings(gguf, "merges", &vocabulary->merges));
  if (const auto scores = gguf.find(full_key("scores"))) KV_RETURN_IF_ERROR(scores->as_f32s(&vocabulary->scores));
  if (const auto types = gguf.find(full_key("token_type"))) {
    std::vector<uint32_t> values;
    KV_RETURN_IF_ERROR(types->as_u32s(&values));
    vocabulary->types.assign(values.begin(), values.end());
  }
  return {};
}

Status read_special(const Gguf& gguf, Vocabulary* vocabulary) {
  KV_RETURN_IF_ERROR(read_id(gguf, "bos_token_id", &vocabulary->bos));
  KV_RETURN_IF_ERROR(read_id(gguf, "eos_token_id", &vocabulary->eos));
  KV_RETURN_IF_ERROR(read_id(gguf, "eot_token_id", &vocabulary->eot));
  KV_RETURN_IF_ERROR(read_id(gguf, "eom_token_id", &vocabulary->eom));
  KV_RETURN_IF_ERROR(read_id(gguf, "unknown_token_id", &vocabulary->unk));
  KV_RETURN_IF_ERROR(read_id(gguf, "seperator_token_id", &vocabulary->sep));  // the format's own spelling
  KV_RETURN_IF_ERROR(read_id(gguf, "padding_token_id", &vocabulary->pad));
  KV_RETURN_IF_ERROR(gguf.get(full_key("add_bos_token"), &vocabulary->add_bos));
  KV_RETURN_IF_ERROR(gguf.get(full_key("add_eos_token"), &vocabulary->add_eos));
  return gguf.get(full_key("add_space_prefix"), &vocabulary->add_space_prefix);
}

}  // namespace

Status vocabulary_from_gguf(const Gguf& gguf, Vocabulary* out, bool* present) {
  if (!gguf.find(full_key("tokens"))) {
    *present = false;
    return {};
  }
  Vocabulary vocabulary;
  KV_RETURN_IF_ERROR(gguf.require(full_key("model"), &vocabulary.model));
  KV_RETURN_IF_ERROR(gguf.get(full_key("pre"), &vocabulary.pre));
  vocabulary.set_defaults();
  KV_RETURN_IF_ERROR(read_tables(gguf, &vocabulary));
  KV_RETURN_IF_ERROR(read_special(gguf, &vocabulary));
  *out = std::move(vocabulary);
  *present = true;
  return {};
}

}  // namespace kvasir
