// SPDX-License-Identifier: MIT
//
// The split rules, by the names GGUF files give them. Each model family published its own; these are the same languages
// in PCRE2's syntax, changed where that alters no split: \s is written out as Unicode's White_Space (PCRE2's own adds
// U+180E), repetitions that need no backtracking are possessive, and a form that would rescan a long run of spaces from
// each of its characters is rephrased. So every rule runs in time linear in the text.
#include <algorithm>
#include <iterator>

#include "text/pretokenizer.h"

namespace kvasir {
namespace {

// The inside of a character class.
#define KV_SPACE "\\x{9}-\\x{D} \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"

// \s+(?!\S)|\s+ : a run of spaces leaves its last one to the word that follows.
#define KV_SPACE_RUNS "[" KV_SPACE "]+(?![^" KV_SPACE "])|[" KV_SPACE "]+"
// \s*[\r\n]+ : spaces up to the last line end in the run.
#define KV_LINE_ENDS "[" KV_SPACE "]*[\\r\\n]"
#define KV_CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"

#define KV_GPT2 KV_CONTRACTIONS "| ?\\p{L}++| ?\\p{N}++| ?[^" KV_SPACE "\\p{L}\\p{N}]++|" KV_SPACE_RUNS

#define KV_LLAMA3(numbers)                                                            \
  "(?i:" KV_CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|" numbers "| ?[^" KV_SPACE \
  "\\p{L}\\p{N}]++[\\r\\n]*+|" KV_LINE_ENDS "|" KV_SPACE_RUNS

// Letters with upper and lower case, as listed by DeepSeek's first tokenizer.
#define KV_CASED_LETTERS                                                                                      \
  "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"             \
  "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}"      \
  "\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"             \
  "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"           \
  "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}"           \
  "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"   \
  "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}"  \
  "\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}"            \
  "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}"             \
  "\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}"             \
  "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}"            \
  "\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}"           \
  "\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"         \
  "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}" \
  "\\x{1E900}-\\x{1E943}"

#define KV_CJK "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]++"

constexpr PretokenizerRule kRules[] = {
    {{"gpt-2", "phi-2", "olmo"}, {KV_GPT2}, false, false},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3"}, {KV_LLAMA3("\\p{N}{1,3}")}, true, true},
    {{"qwen2", "deepseek-r1-qwen"}, {KV_LLAMA3("\\p{N}")}, false, false},
    {{"starcoder", "refact", "command-r", "smollm", "codeshell"}, {"\\p{N}", KV_GPT2}, false, false},
    {{"falcon"}, {"[\\p{P}$+<=>^~|`]++", KV_GPT2, "[0-9][0-9][0-9]"}, false, false},
    {{"deepseek-coder"},
     {"[\\r\\n]", "[" KV_SPACE "]?\\p{L}++", "[" KV_SPACE "]?\\p{P}++", KV_CJK, "\\p{N}"},
     false,
     false},
    {{"deepseek-llm"},
     {"[\\r\\n]", "[" KV_SPACE "]?[" KV_CASED_LETTERS "]++",
      "[" KV_SPACE "]?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]++",
      "(?<![" KV_SPACE "])[" KV_SPACE "]++\\z", KV_CJK, "\\p{N}++"},
     false,
     false},
};

}  // namespace

const PretokenizerRule* find_pretokenizer_rule(std::string_view name) {
  if (name.empty()) return nullptr;
  const auto has_name = [&](const PretokenizerRule& rule) {
    return std::find(rule.names.begin(), rule.names.end(), name) != rule.names.end();
  };
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), has_name);
  return rule == std::end(kRules) ? nullptr : rule;
}

std::string known_pretokenizers() {
  std::string names;
  for (const PretokenizerRule& rule : kRules) {
    if (!names.empty()) names += ", ";
    names += rule.names[0];
  }
  return names;
}

}  // namespace kvasir
