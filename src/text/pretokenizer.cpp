// SPDX-License-Identifier: MIT
//
// PCRE2 (8 bits, UTF, Unicode properties; compiled to machine code where the system allows). PCRE2 only ever sees
// well-formed UTF-8: the text is cut at other bytes beforehand.
#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace kvasir {
namespace {

// The rules are linear in the text, so these are nets, not knobs: backtracking steps in one match, and KiB of heap.
constexpr uint32_t kHeapLimit = 65536;

uint32_t match_limit(size_t bytes) {
  constexpr uint64_t kStepsPerByte = 4;
  return static_cast<uint32_t>(std::min<uint64_t>(1000 + kStepsPerByte * bytes, UINT32_MAX));
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[128];
  if (pcre2_get_error_message(code, text, sizeof text) < 0) return "error " + std::to_string(code);
  return reinterpret_cast<const char*>(text);
}

// The longest start of `text` that is well-formed UTF-8, or that has no well-formed character at all.
size_t uniform_run(std::string_view text) {
  const bool valid = utf8_character_length(text) > 0;
  size_t end = 0;
  while (end < text.size()) {
    const size_t length = utf8_character_length(text.substr(end));
    if ((length > 0) != valid) break;
    end += std::max<size_t>(1, length);
  }
  return end;
}

}  // namespace

// Scratch of one split() call, so that patterns are shared between threads.
class Pretokenizer::MatchData {
 public:
  explicit MatchData(size_t bytes)
      : data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
    if (!usable()) return;
    pcre2_set_match_limit(context_, match_limit(bytes));
    pcre2_set_heap_limit(context_, kHeapLimit);
  }
  ~MatchData() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
  }
  MatchData(const MatchData&) = delete;
  MatchData& operator=(const MatchData&) = delete;

  bool usable() const { return data_ != nullptr && context_ != nullptr; }

  pcre2_match_data* data_;
  pcre2_match_context* context_;
};

class Pretokenizer::Pattern {
 public:
  explicit Pattern(pcre2_code* code) : code_(code) {}
  ~Pattern() { pcre2_code_free(code_); }
  Pattern(Pattern&& other) noexcept : code_(std::exchange(other.code_, nullptr)) {}
  Pattern& operator=(Pattern&&) = delete;

  // Cuts `part` into matches and what lies between them.
  Status split(std::string_view part, const MatchData& match, std::vector<std::string_view>* words) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(part.data());
    size_t done = 0;
    while (done < part.size()) {
      const int found = pcre2_match(code_, subject, part.size(), done, PCRE2_NO_UTF_CHECK, match.data_, match.context_);
      if (found == PCRE2_ERROR_NOMATCH) break;
      KV_CHECK(found != PCRE2_ERROR_NOMEMORY, KV_OUT_OF_MEMORY, "no memory to split %zu bytes of text", part.size());
      KV_CHECK(found > 0, KV_INTERNAL, "splitting text failed at byte %zu of %zu: %s", done, part.size(),
               pcre2_message(found).c_str());
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.data_);
      KV_CHECK(bounds[1] > bounds[0], KV_INTERNAL, "a split pattern matched nothing at byte %zu", bounds[0]);
      if (bounds[0] > done) words->push_back(part.substr(done, bounds[0] - done));
      words->push_back(part.substr(bounds[0], bounds[1] - bounds[0]));
      done = bounds[1];
    }
    if (done < part.size()) words->push_back(part.substr(done));
    return {};
  }

 private:
  pcre2_code* code_;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::~Pretokenizer() = default;

Status Pretokenizer::create(const PretokenizerRule& rule, std::unique_ptr<Pretokenizer>* out) {
  std::unique_ptr<Pretokenizer> pretokenizer(new Pretokenizer);
  pretokenizer->patterns_.reserve(rule.patterns.size());
  for (const char* text : rule.patterns) {
    if (text == nullptr) break;
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                     &error, &offset, nullptr);
    KV_CHECK(code != nullptr || error != PCRE2_ERROR_HEAP_FAILED, KV_OUT_OF_MEMORY,
             "no memory for the patterns of pre-tokenizer '%s'", std::string(rule.names[0]).c_str());
    KV_CHECK(code != nullptr, KV_INTERNAL, "a pattern of pre-tokenizer '%s' does not compile at %zu: %s",
             std::string(rule.names[0]).c_str(), static_cast<size_t>(offset), pcre2_message(error).c_str());
    pretokenizer->patterns_.emplace_back(code);
    // Refused where memory cannot be made executable; matching then interprets the pattern, with the same result.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  *out = std::move(pretokenizer);
  return {};
}

Status Pretokenizer::split_valid(std::string_view text, std::vector<std::string_view>* words) const {
  const MatchData match(text.size());
  KV_CHECK(match.usable(), KV_OUT_OF_MEMORY, "no memory to split %zu bytes of text", text.size());
  std::vector<std::string_view> parts{text};
  std::vector<std::string_view> finer;
  for (const Pattern& pattern : patterns_) {
    finer.clear();
    for (const std::string_view part : parts) KV_RETURN_IF_ERROR(pattern.split(part, match, &finer));
    parts.swap(finer);
  }
  words->insert(words->end(), parts.begin(), parts.end());
  return {};
}

Status Pretokenizer::split(std::string_view text, std::vector<std::string_view>* words) const {
  while (!text.empty()) {
    const std::string_view run = text.substr(0, uniform_run(text));
    if (utf8_character_length(run) > 0) {
      KV_RETURN_IF_ERROR(split_valid(run, words));
    } else {
      words->push_back(run);
    }
    text.remove_prefix(run.size());
  }
  return {};
}

}  // namespace kvasir
