// SPDX-License-Identifier: MIT
//
// What a token list must give: logits of every position and the cached rows, recomputed by one prefill in a context of
// its own and remembered.
#pragma once

#include <map>
#include <vector>

#include "faults/observe.h"

namespace kvasir::test {

constexpr uint32_t kRowCount = 3;  // of the table of embedding rows

class Oracle {
 public:
  struct Answer {
    std::vector<std::vector<float>> logits;  // [tokens]
    std::vector<std::vector<float>> rows;    // [layer * 2 + (V ? 1 : 0)]: [tokens][row width]
  };

  Oracle(kv_model* model, const kv_context_options& options, uint32_t layers, uint32_t dim, uint64_t row_width)
      : layers_(layers), row_width_(row_width) {
    for (uint32_t i = 0; i < kRowCount * dim; i++) table_.push_back(static_cast<float>(i * 7 % 11) * 0.2F - 1.0F);
    dim_ = dim;
    kv_context_options own = sized<kv_context_options>();
    own.device = options.device;
    own.k_type = options.k_type;
    own.v_type = options.v_type;
    own.threads = 1;
    own.max_tokens = 256;
    context_ = make_context(model, own);
  }

  // The embedding rows among the tokens, in order.
  std::vector<float> rows_of(const std::vector<int32_t>& tokens) const {
    std::vector<float> rows;
    for (const int32_t token : tokens) {
      if (token >= 0) continue;
      const auto first = table_.begin() + (-1 - token) * static_cast<ptrdiff_t>(dim_);
      rows.insert(rows.end(), first, first + dim_);
    }
    return rows;
  }
  static std::vector<int32_t> ids_of(const std::vector<int32_t>& tokens) {
    std::vector<int32_t> ids;
    for (const int32_t token : tokens) ids.push_back(token >= 0 ? token : KV_TOKEN_ROW);
    return ids;
  }

  const Answer& of(const std::vector<int32_t>& tokens) {
    const auto found = answers_.find(tokens);
    if (found != answers_.end()) return found->second;
    Answer& answer = answers_[tokens];
    if (tokens.empty()) {
      answer.rows.resize(2 * size_t{layers_});
      return answer;
    }
    Error e;
    const std::vector<int32_t> ids = ids_of(tokens);
    const std::vector<float> rows = rows_of(tokens);
    kv_step_input input = sized<kv_step_input>();
    input.tokens = ids.data();
    input.rows = rows.data();
    input.count = ids.size();
    kv_step_options options = sized<kv_step_options>();
    options.outputs = KV_OUTPUT_ALL;
    options.row_user = &answer;
    options.row = [](void* user, kv_sequence, uint64_t, const float* row, uint32_t width) {
      static_cast<Answer*>(user)->logits.emplace_back(row, row + width);
    };
    kv_step_result result = sized<kv_step_result>();
    if (kv_step(context_.get(), &input, 1, &options, &result, &e) != KV_OK) ADD_FAILURE() << "oracle: " << e.message;
    for (uint32_t layer = 0; layer < layers_; layer++) {
      answer.rows.push_back(cached_rows(context_.get(), 0, layer, KV_CACHE_K, ids.size(), row_width_));
      answer.rows.push_back(cached_rows(context_.get(), 0, layer, KV_CACHE_V, ids.size(), row_width_));
    }
    if (kv_sequence_truncate(context_.get(), 0, 0, &e) != KV_OK) ADD_FAILURE() << "oracle: " << e.message;
    return answer;
  }

 private:
  uint32_t layers_, dim_ = 0;
  uint64_t row_width_;
  std::vector<float> table_;
  ContextPtr context_;
  std::map<std::vector<int32_t>, Answer> answers_;
};

}  // namespace kvasir::test
