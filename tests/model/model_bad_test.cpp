// SPDX-License-Identifier: MIT
//
// Hostile model files as an application meets them, with the whole sentence: absurd small values (P14), counts and
// lengths that overflow (P15), vocabularies and tensors that do not fit (P14's kind). With 256 MB of memory, see
// model_sweep_test.cpp; here each culprit is named.
#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/gguf_document.h"
#include "support/kv.h"
#include "support/memory_limit.h"
#include "support/small_models.h"

namespace kvasir {
namespace {

using fuzz::GgufDocument;
using testing::GgufWriter;
using testing::RawBytes;
using Bytes = std::vector<uint8_t>;

class ModelBad : public ::testing::Test {
 protected:
  void refused(const Bytes& file, kv_status code, const std::string& sentence) {
    kv_model* model = nullptr;
    test::Error e;
    EXPECT_EQ(kv_model_load_memory(runtime_.get(), file.data(), file.size(), nullptr, &model, &e), code);
    EXPECT_EQ(e.code, code);
    EXPECT_EQ(std::string(e.message), sentence);
    EXPECT_EQ(model, nullptr);
  }
  void refused(const GgufDocument& document, kv_status code, const std::string& sentence) {
    const std::string file = document.write();
    refused(Bytes(file.begin(), file.end()), code, sentence);
  }

  static GgufDocument document(const Bytes& file) {
    GgufDocument read;
    EXPECT_TRUE(GgufDocument::parse(file.data(), file.size(), &read));
    return read;
  }
  static fuzz::GgufTensor& tensor(GgufDocument& document, const std::string& name) {
    for (fuzz::GgufTensor& candidate : document.tensors) {
      if (candidate.name == name) return candidate;
    }
    ADD_FAILURE() << "no tensor " << name;
    return document.tensors[0];
  }

  test::RuntimePtr runtime_ = test::make_runtime();
};

RawBytes one_tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  RawBytes file;
  file.header(3, 1, 0).string(name).u32(dims.size());
  for (const uint64_t dim : dims) file.u64(dim);
  file.u32(type).u64(offset);
  return file;
}

TEST_F(ModelBad, P14TheRecords) {
  refused(one_tensor("t", {1, 0}, 0, 0).bytes(), KV_CORRUPT, "tensor 't' is [1, 0]: dimension 1 is zero");
  for (const char* number : {"0", "3", "2147483648"}) {
    refused(GgufWriter().u32("general.alignment", static_cast<uint32_t>(std::stoul(number))).bytes(), KV_CORRUPT,
            std::string("key 'general.alignment' is ") + number + ", expected a power of two of at most 65536");
  }
  refused(GgufWriter().string("general.alignment", "32").bytes(), KV_CORRUPT,
          "key 'general.alignment' is of type string, expected u32");
  RawBytes twice;
  twice.header(3, 2, 0);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{32}}) twice.string("t").u32(1).u64(8).u32(0).u64(offset);
  refused(twice.append(Bytes(160)).bytes(), KV_CORRUPT, "tensor 't' is there twice");
  refused(RawBytes().header(3, 0, 1).string("").u32(0).letters("x").bytes(), KV_CORRUPT,
          "the file has an empty key at byte 24");
}

TEST_F(ModelBad, P14TheConfiguration) {
  const auto refused_with = [&](const std::string& sentence, void (*edit)(ModelConfig*)) {
    ModelConfig config = testing::small_config();
    edit(&config);
    refused(testing::gguf_keys(config).bytes(), KV_CORRUPT, sentence);
  };
  refused_with("key 'llama.block_count' is 0", [](ModelConfig* c) { c->layers = 0; });
  refused_with("key 'llama.attention.head_count' is 0", [](ModelConfig* c) { c->heads = 0; });
  refused_with(
      "key 'llama.attention.head_count' is 3 and 'llama.attention.head_count_kv' is 2: the heads cannot share them "
      "evenly",
      [](ModelConfig* c) { c->heads = 3; });
  refused_with("key 'llama.attention.key_length' is 0", [](ModelConfig* c) { c->head_dim = 0; });
  refused_with("key 'llama.vocab_size' is 0", [](ModelConfig* c) { c->vocab = 0; });
  refused_with("key 'llama.rope.freq_base' is nan, expected a positive number",
               [](ModelConfig* c) { c->rope.theta = NAN; });
}

TEST_F(ModelBad, P14TheVersion) {
  for (const uint32_t version : {0U, 1U, 4U}) {
    refused(
        RawBytes().header(version, 0, 0).bytes(), KV_INCOMPATIBLE,
        "'memory buffer' is a GGUF file of version " + std::to_string(version) + ", versions 2 and 3 are supported");
  }
  refused(RawBytes().header(0x03000000, 0, 0).bytes(), KV_UNSUPPORTED,
          "'memory buffer' is a byte-swapped (big-endian) GGUF file of version 3");
  refused(RawBytes().letters("FUGG").u32(0x03000000).u64(0).u64(0).bytes(), KV_UNSUPPORTED,
          "'memory buffer' is a byte-swapped (big-endian) GGUF file");
  refused(RawBytes().letters("G").bytes(), KV_CORRUPT,
          "'memory buffer' is damaged or cut short: the header needs 4 bytes, the file ends 3 bytes short");
}

TEST_F(ModelBad, P15CountsAndLengths) {
  for (const char* count : {"9223372036854775808", "18446744073709551615"}) {
    const uint64_t number = std::stoull(count);
    refused(RawBytes().header(3, number, 0).bytes(), KV_CORRUPT,
            std::string("'memory buffer' claims to hold ") + count + " tensors, its 24 bytes have room for 0 at most");
    refused(RawBytes().header(3, 0, number).bytes(), KV_CORRUPT,
            std::string("'memory buffer' claims to hold ") + count + " keys, its 24 bytes have room for 0 at most");
  }
  RawBytes string;
  string.header(3, 0, 1).string("k").u32(8).u64(uint64_t{1} << 40).letters("0123456789");
  refused(string.append(Bytes(60 - string.size())).bytes(), KV_CORRUPT,
          "'memory buffer' is damaged or cut short: the value of key 'k' needs 1099511627776 bytes, the file ends "
          "1099511627761 bytes short");
  RawBytes array;
  array.header(3, 0, 1).string("k").u32(9).u32(4).u64(uint64_t{1} << 61).u64(0);
  refused(
      array.bytes(), KV_CORRUPT,
      "'memory buffer' is damaged or cut short: the value of key 'k' needs 9223372036854775808 bytes, the file ends "
      "9223372036854775800 bytes short");
  RawBytes deep;
  deep.header(3, 0, 1).string("k").u32(9);
  for (int i = 0; i < 10000; ++i) deep.u32(9).u64(1);
  refused(deep.bytes(), KV_CORRUPT, "the value of key 'k' has arrays nested more than 4 deep");
}

TEST_F(ModelBad, P15Dimensions) {
  const auto with_room = [](RawBytes file) { return file.append(Bytes(64)).bytes(); };
  const uint64_t wide = uint64_t{1} << 32;
  refused(with_room(one_tensor("t", {wide, wide}, 0, 0)), KV_CORRUPT,
          "tensor 't' is [4294967296, 4294967296]: its size does not fit 63 bits");
  refused(with_room(one_tensor("t", {1, 1, 1, 1, 1}, 0, 0)), KV_CORRUPT,
          "tensor 't' has 5 dimensions, between 1 and 4 are possible");
  RawBytes many;
  many.header(3, 1, 0).string("t").u32(0x80000000U).append(Bytes(64));
  refused(many.bytes(), KV_CORRUPT, "tensor 't' has 2147483648 dimensions, between 1 and 4 are possible");
}

TEST_F(ModelBad, TensorsThatAreMissingOrDoNotFit) {
  const GgufDocument whole = document(testing::tiny_llama());
  for (const fuzz::GgufTensor& gone : whole.tensors) {
    if (gone.name == "token_embd.weight" || gone.name == "output.weight") continue;  // decide about the vocabulary
    GgufDocument without = whole;
    std::erase_if(without.tensors, [&](const fuzz::GgufTensor& t) { return t.name == gone.name; });
    std::string dims = "[" + std::to_string(gone.dims[0]);
    if (gone.dims.size() > 1) dims += ", " + std::to_string(gone.dims[1]);
    refused(without, KV_NOT_FOUND, "tensor '" + gone.name + "' " + dims + "] is missing");
  }
  GgufDocument turned = whole;
  tensor(turned, "blk.0.attn_k.weight").dims = {2, 4};
  refused(turned, KV_INVALID_ARGUMENT, "tensor 'blk.0.attn_k.weight' is [2, 4], expected [4, 2]");
  GgufDocument flat = whole;
  tensor(flat, "blk.0.ffn_down.weight").dims = {16};
  refused(flat, KV_INVALID_ARGUMENT, "tensor 'blk.0.ffn_down.weight' is [16], expected [4, 4]");
  GgufDocument unknown = whole;
  tensor(unknown, "blk.0.ffn_up.weight").type = 99;
  refused(unknown, KV_UNSUPPORTED, "tensor 'blk.0.ffn_up.weight' has type 99 (unknown), which is not supported");
  GgufDocument moved = whole;
  tensor(moved, "blk.0.ffn_up.weight").displaced = static_cast<uint64_t>(-32);  // over the end of the one before
  refused(moved, KV_CORRUPT, "tensors 'blk.0.ffn_gate.weight' and 'blk.0.ffn_up.weight' overlap");
  tensor(moved, "blk.0.ffn_up.weight").displaced = 8;
  const std::string file = moved.write();
  kv_model* model = nullptr;
  test::Error e;
  FAILS(KV_CORRUPT, "no multiple of the alignment 32",
        kv_model_load_memory(runtime_.get(), file.data(), file.size(), nullptr, &model, &e));
}

TEST_F(ModelBad, NamesOfTensors) {
  const auto renamed = [](std::string name) {
    GgufDocument document = ModelBad::document(testing::tiny_llama());
    tensor(document, "blk.0.attn_q.weight").name = std::move(name);
    return document;
  };
  refused(renamed(std::string("a\0b", 3)), KV_CORRUPT,
          "the name of tensor 'a"
          "?b' holds a zero byte");
  refused(renamed(std::string(65536, 'n')), KV_CORRUPT,
          "the name of tensor '" + std::string(80, 'n') + "...' has 65536 bytes, at most 255 are possible");
  refused(renamed("blk.0.attn_k.weight"), KV_CORRUPT, "tensor 'blk.0.attn_k.weight' is there twice");
  refused(renamed(""), KV_CORRUPT, "a tensor has an empty name");
  refused(renamed("\xFF\xFE"), KV_NOT_FOUND, "tensor 'blk.0.attn_q.weight' [4, 4] is missing");
}

// Order and gaps do not matter, and tensors nobody needs do no harm.
TEST_F(ModelBad, WhatIsOddButRight) {
  GgufDocument odd = document(testing::tiny_llama());
  std::reverse(odd.tensors.begin(), odd.tensors.end());
  std::reverse(odd.keys.begin(), odd.keys.end());
  odd.tensors.push_back({"\xFF\xFE", {3}, 0, 32, std::string(64, '\0')});
  const std::string file = odd.write();
  kv_model* model = nullptr;
  test::Error e;
  OK(kv_model_load_memory(runtime_.get(), file.data(), file.size(), nullptr, &model, &e));
  const test::ModelPtr owner(model);
  kv_context_options options = test::sized<kv_context_options>();
  options.device = "ref";
  EXPECT_EQ(test::prefill(test::make_context(model, options).get(), 0, {1, 2}).size(), 10U);
}

class VocabularyBad : public ModelBad {
 protected:
  // The keys of a tokenizer, one of them other than it should be.
  void refused_with(kv_status code, const std::string& sentence, void (*add)(GgufWriter*)) {
    refused(testing::random_gguf(testing::tiny_config("llama"), KV_TYPE_F32, 1, false, add), code, sentence);
  }
};

TEST_F(VocabularyBad, Tables) {
  refused_with(KV_CORRUPT, "the vocabulary has no tokens",
               [](GgufWriter* w) { w->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {}); });
  refused_with(KV_CORRUPT, "tokens 3 and 4 are both 'a'", [](GgufWriter* w) {
    w->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "a"});
    w->f32s("tokenizer.ggml.scores", {0, 0, 0, 0, 0});
  });
  refused_with(KV_CORRUPT, "the score of token 2 is not finite", [](GgufWriter* w) {
    w->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
    w->f32s("tokenizer.ggml.scores", {0, 0, NAN});
  });
  refused_with(KV_CORRUPT, "the vocabulary has 3 tokens but 2 scores", [](GgufWriter* w) {
    w->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
    w->f32s("tokenizer.ggml.scores", {0, 0});
  });
  refused_with(KV_CORRUPT, "the vocabulary has 3 tokens but 4 token types", [](GgufWriter* w) {
    w->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
    w->f32s("tokenizer.ggml.scores", {0, 0, 0}).i32s("tokenizer.ggml.token_type", {1, 1, 1, 1});
  });
  refused_with(KV_CORRUPT, "the bos token is 1, but the vocabulary has 1 tokens", [](GgufWriter* w) {
    w->string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"<unk>"});
    w->f32s("tokenizer.ggml.scores", {0});
  });
  refused_with(KV_CORRUPT, "the unk token is 10, but the vocabulary has 10 tokens", [](GgufWriter* w) {
    testing::add_bpe_vocabulary(w);
    w->u32("tokenizer.ggml.unknown_token_id", 10);
  });
  refused_with(KV_CORRUPT, "merge 1 needs the token 'zz', which the vocabulary does not have", [](GgufWriter* w) {
    w->string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "gpt-2");
    w->strings("tokenizer.ggml.tokens", {"a", "b", "ab"}).strings("tokenizer.ggml.merges", {"a b", "a zz"});
  });
}

}  // namespace
}  // namespace kvasir
