// SPDX-License-Identifier: MIT
//
// kvasir tokenize: text to token ids and back.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "session.h"
#include "text.h"

namespace kvasir::cli {
namespace {

struct Flags {
  std::string model;
  PromptFlags prompt;
  std::vector<int32_t> decode;
  bool ids = false;
  bool specials = false;
  bool no_bos = false;
};

void print_ids(const std::vector<int32_t>& tokens) {
  std::string line;
  for (const int32_t token : tokens) line += (line.empty() ? "" : ",") + std::to_string(token);
  std::printf("%s\n", line.c_str());
}

void print_table(const kv_tokenizer* tokenizer, const std::vector<int32_t>& tokens) {
  Table table({">position", ">token", ">bytes", "text"});
  for (size_t i = 0; i < tokens.size(); i++) {
    const std::string text = token_text(tokenizer, tokens[i]);
    table.add(
        {std::to_string(i), std::to_string(tokens[i]), std::to_string(text.size()), "\"" + printable(text) + "\""});
  }
  table.print();
}

int run_tokenize(const Flags& flags) {
  const RuntimePtr runtime = open_runtime();
  const ModelPtr model = open_model(runtime.get(), flags.model, nullptr);
  const kv_tokenizer* tokenizer = tokenizer_of(model.get());
  if (!flags.decode.empty()) {
    const std::string text = detokenize(tokenizer, flags.decode, flags.specials ? KV_TEXT_SPECIAL : 0);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::printf("\n");
    return kSuccess;
  }
  const uint32_t begin = flags.no_bos ? 0 : KV_TOKENIZE_ADD_SPECIAL;
  const uint32_t parse = flags.specials ? KV_TOKENIZE_PARSE_SPECIAL : 0;
  const std::vector<int32_t> tokens = tokenize(tokenizer, flags.prompt.read(), begin | parse);
  if (flags.ids) {
    print_ids(tokens);
  } else {
    print_table(tokenizer, tokens);
  }
  return kSuccess;
}

}  // namespace

Command add_tokenize(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& app = *parent.add_subcommand("tokenize", "text to token ids, and back");
  add_model_flag(app, flags->model)->required();
  add_prompt_flags(app, flags->prompt);
  app.add_option("--decode", flags->decode, "the text of these ids: 1,2,3")->delimiter(',')->type_name("IDS");
  app.add_flag("--ids", flags->ids, "only the ids, as --decode takes them");
  app.add_flag("--specials", flags->specials, "text that spells a special token becomes that token; seen in --decode");
  app.add_flag("--no-bos", flags->no_bos, "do not add the token that begins a text");
  return {&app, [flags] { return run_tokenize(*flags); }};
}

}  // namespace kvasir::cli
