// SPDX-License-Identifier: MIT
//
// The files of the operations: tiny models with vocabularies, whole and in two pieces.
#include <filesystem>
#include <string>

#include "faults/operations.h"
#include "support/random_model.h"

namespace kvasir::test {
namespace {

namespace fs = std::filesystem;
using testing::GgufWriter;

ModelConfig tiny_config(uint32_t vocab) {
  ModelConfig config = testing::small_config();
  config.layers = 1;
  config.dim = 8;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = config.v_head_dim = config.rope.dims = 4;
  config.ffn_dim = 8;
  config.vocab = vocab;
  return config;
}

const std::vector<std::string> kPieces = {"<unk>", "<s>", "</s>",   "a",      "b", "c", "ab",
                                          "bc",    "abc", "<0x41>", "<0x42>", "A", "B"};

void add_spm_vocabulary(GgufWriter* writer) {
  writer->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", kPieces);
  writer->f32s("tokenizer.ggml.scores", {0, 0, 0, -9, -8, -7, -2, -3, -1, 0, 0, -5, -6});
  writer->i32s("tokenizer.ggml.token_type", {2, 3, 3, 1, 1, 1, 1, 1, 1, 6, 6, 1, 1});
  writer->u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
}

void add_bpe_vocabulary(GgufWriter* writer) {
  writer->string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "llama-bpe");
  writer->strings("tokenizer.ggml.tokens", kPieces).strings("tokenizer.ggml.merges", {"a b", "b c", "a bc"});
  writer->i32s("tokenizer.ggml.token_type", {3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  writer->u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
}

// The tensors dealt to two files.
void write_pieces(const ModelConfig& config, const std::string& folder) {
  std::vector<testing::RandomTensor> tensors = testing::random_tensors(config, KV_TYPE_F32, 5);
  for (uint16_t piece = 0; piece < 2; piece++) {
    GgufWriter writer = piece == 0 ? testing::gguf_keys(config) : GgufWriter();
    writer.u16("split.no", piece)
        .u16("split.count", 2)
        .i32("split.tensors.count", static_cast<int32_t>(tensors.size()));
    for (size_t i = piece; i < tensors.size(); i += 2) {
      const TensorInfo& info = tensors[i].info;
      writer.tensor(info.name, info.type, {info.dims, info.dims + info.dim_count}, tensors[i].data);
    }
    testing::write_file(folder + "/two-0000" + std::to_string(piece + 1) + "-of-00002.gguf", writer.bytes());
  }
}

}  // namespace

Files::Files() {
  folder = fs::path(::testing::TempDir()) / ("kvasir-faults-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  model = folder + "/model.gguf";
  bpe_model = folder + "/bpe.gguf";
  first_piece = folder + "/two-00001-of-00002.gguf";
  const ModelConfig config = tiny_config(static_cast<uint32_t>(kPieces.size()));
  bytes = testing::random_gguf(config, KV_TYPE_F16, 5, false, add_spm_vocabulary);
  testing::write_file(model, bytes);
  testing::write_file(bpe_model, testing::random_gguf(config, KV_TYPE_F32, 5, false, add_bpe_vocabulary));
  write_pieces(config, folder);
}

Files::~Files() { fs::remove_all(folder); }

}  // namespace kvasir::test
