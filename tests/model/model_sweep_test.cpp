// SPDX-License-Identifier: MIT
//
// The deterministic sweep through the public API, with 256 MB of memory: every byte of the header flipped, every number
// of it set to the values at which programs break, every truncation; of several models. A damaged file is refused with
// a sentence, or it is a model: then every question is answered and it runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "support/gguf_fields.h"
#include "support/kv.h"
#include "support/memory_limit.h"
#include "support/small_models.h"

KV_ASAN_MEMORY_LIMIT

namespace kvasir {
namespace {

using test::Error;
using test::sized;
using Bytes = std::vector<uint8_t>;

class Sweep {
 public:
  explicit Sweep(const char* device) : runtime_(test::make_runtime()), device_(device) {}

  size_t refused = 0;
  size_t ran = 0;

  void memory(const Bytes& file, const std::string& what) {
    what_ = what;
    kv_model_options options = sized<kv_model_options>();
    options.flags = KV_MODEL_BORROW_MEMORY;
    kv_model* model = nullptr;
    Error e;
    const kv_status status = kv_model_load_memory(runtime_.get(), file.data(), file.size(), &options, &model, &e);
    take(status, e, test::ModelPtr(model));
  }
  void path(const std::string& path, const std::string& what) {
    what_ = what;
    kv_model* model = nullptr;
    Error e;
    const kv_status status = kv_model_load_file(runtime_.get(), path.c_str(), nullptr, &model, &e);
    take(status, e, test::ModelPtr(model));
  }

  // The models are what the sweep is about: it must have refused and run some.
  bool passed() const {
    std::printf("%zu refused, %zu ran, %zu faults\n", refused, ran, faults_);
    return faults_ == 0 && refused > 0 && ran > 0;
  }

 private:
  void fault(const std::string& sentence) {
    if (++faults_ <= 10) std::fprintf(stderr, "%s: %s\n", what_.c_str(), sentence.c_str());
  }

  // Whether the call succeeded; its failure must be a refusal of what the file says.
  bool answered(kv_status status, const Error& e) {
    if (status == KV_OK) return true;
    constexpr kv_status kExpected[] = {KV_CORRUPT,   KV_UNSUPPORTED,      KV_INCOMPATIBLE,
                                       KV_NOT_FOUND, KV_INVALID_ARGUMENT, KV_BAD_LOGITS};
    const bool expected = std::find(std::begin(kExpected), std::end(kExpected), status) != std::end(kExpected);
    if (!expected || e.message[0] == '\0') fault(std::string(kv_status_name(status)) + " '" + e.message + "'");
    return false;
  }

  void take(kv_status status, const Error& e, const test::ModelPtr& model) {
    if ((status == KV_OK) != (model != nullptr)) fault("a model and a failure");
    if (!answered(status, e)) {
      ++refused;
      return;
    }
    ask(model.get());
    run(model.get());
  }

  void ask(const kv_model* model) {
    Error e;
    kv_model_info info = sized<kv_model_info>();
    if (kv_model_get_info(model, &info, &e) != KV_OK) return fault(e.message);
    for (uint32_t i = 0; i < info.metadata; ++i) {
      kv_metadata pair = sized<kv_metadata>();
      (void)answered(kv_model_metadata_at(model, i, &pair, &e), e);
    }
    for (uint32_t i = 0; i < info.tensors; ++i) {
      kv_tensor_info tensor = sized<kv_tensor_info>();
      if (kv_model_tensor_at(model, i, &tensor, &e) != KV_OK) fault(e.message);
    }
    const kv_tokenizer* tokenizer = kv_model_tokenizer(model);
    if (tokenizer == nullptr) return;
    int32_t tokens[32];
    size_t count = 0;
    (void)answered(kv_tokenize(tokenizer, "ab a<end>\n", 10, KV_TOKENIZE_PARSE_SPECIAL, tokens, 32, &count, &e), e);
  }

  void run(kv_model* model) {
    Error e;
    if (!answered(kv_model_prepare(model, device_, nullptr, &e), e)) return;
    kv_context_options options = sized<kv_context_options>();
    options.device = device_;
    options.threads = 1;
    options.max_tokens = 8;
    options.max_batch_tokens = 4;
    options.max_sequences = 1;
    kv_context* made = nullptr;
    const kv_status status = kv_context_create(model, &options, &made, &e);
    const test::ContextPtr context(made);
    if (!answered(status, e)) return;
    const int32_t tokens[3] = {0, 1, 2};
    if (answered(kv_prefill(made, KV_DEFAULT_SEQUENCE, tokens, 3, nullptr, nullptr, &e), e)) ++ran;
  }

  test::RuntimePtr runtime_;
  const char* device_;
  std::string what_;
  size_t faults_ = 0;
};

using Visit = std::function<void(const Bytes& damaged, const std::string& what)>;

void each_flip(const Bytes& file, const Visit& visit) {
  const size_t header = testing::GgufFields(file).header_bytes();
  Bytes damaged = file;
  for (size_t at = 0; at < header; ++at) {
    for (const int value : {file[at] ^ 0xFF, file[at] ^ 0x01, file[at] ^ 0x80, 0}) {
      damaged[at] = static_cast<uint8_t>(value);
      if (damaged[at] != file[at]) visit(damaged, "byte " + std::to_string(at) + " is " + std::to_string(damaged[at]));
    }
    damaged[at] = file[at];
  }
}

void each_number(const Bytes& file, const Visit& visit) {
  Bytes damaged = file;
  const testing::GgufFields fields(file);
  for (const testing::GgufField& field : fields.all()) {
    const uint64_t most = field.bytes == 8 ? UINT64_MAX : UINT32_MAX;
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{1}, most, most - 1, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63}) {
      if (value > most) continue;
      std::memcpy(damaged.data() + field.at, &value, field.bytes);
      if (damaged != file) visit(damaged, field.what + " is " + std::to_string(value));
    }
    std::memcpy(damaged.data() + field.at, file.data() + field.at, field.bytes);
  }
}

void each_length(const Bytes& file, const Visit& visit) {
  for (size_t length = 1; length < file.size(); ++length) {
    // A block of exactly this size, so that a sanitizer sees the first byte past it.
    visit(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)), "cut at " + std::to_string(length));
  }
}

// Up to the last byte of the last tensor: to lose what follows does no harm.
Bytes without_padding(Bytes file) {
  std::shared_ptr<const Gguf> gguf;
  if (!testing::parse_bytes(file, &gguf).ok()) return {};
  const size_t last = gguf->tensors().size() - 1;
  file.resize(gguf->extent(last).offset + gguf->tensors()[last].bytes);
  return file;
}

struct Case {
  const char* name;
  Bytes (*make)();
};

class ModelSweep : public ::testing::TestWithParam<Case> {};

TEST_P(ModelSweep, EveryByteOfTheHeader) {
  EXPECT_TRUE(testing::with_memory_limit([] {
    Sweep sweep("ref");
    each_flip(GetParam().make(), [&](const Bytes& file, const std::string& what) { sweep.memory(file, what); });
    return sweep.passed();
  }));
}

TEST_P(ModelSweep, EveryNumberOfTheHeader) {
  for (const char* device : {"ref", "cpu"}) {
    EXPECT_TRUE(testing::with_memory_limit([&] {
      Sweep sweep(device);
      each_number(GetParam().make(), [&](const Bytes& file, const std::string& what) { sweep.memory(file, what); });
      return sweep.passed();
    })) << device;
  }
}

TEST_P(ModelSweep, EveryLength) {
  EXPECT_TRUE(testing::with_memory_limit([] {
    Sweep sweep("ref");
    const Bytes file = without_padding(GetParam().make());
    each_length(file, [&](const Bytes& cut, const std::string& what) { sweep.memory(cut, what); });
    if (sweep.ran != 0 || sweep.refused != file.size() - 1) std::fprintf(stderr, "a cut file ran\n");
    sweep.memory(file, "the whole file");
    return sweep.refused == file.size() - 1 && sweep.passed();
  }));
}

INSTANTIATE_TEST_SUITE_P(Models, ModelSweep,
                         ::testing::Values(Case{"llama_f32_spm", testing::tiny_llama},
                                           Case{"qwen2_f16_bpe", testing::tiny_qwen2},
                                           Case{"qwen3_q4_0", testing::tiny_qwen3}),
                         [](const auto& p) { return p.param.name; });

// A model in two files; each is damaged while the other is whole.
class SplitSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path memory = "/dev/shm";  // thousands of files are written
    const std::filesystem::path place =
        access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::path(::testing::TempDir());
    folder_ = place / ("kvasir-split-sweep-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(size_t piece) const { return folder_ / ("m-0000" + std::to_string(piece + 1) + "-of-00002.gguf"); }

  bool sweep_pieces(void (*each)(const Bytes&, const Visit&)) const {
    const std::vector<Bytes> pieces = testing::tiny_pieces(2);
    return testing::with_memory_limit([&] {
      Sweep sweep("ref");
      for (size_t i = 0; i < 2; ++i) {
        testing::write_file(path(1 - i), pieces[1 - i]);
        each(pieces[i], [&](const Bytes& file, const std::string& what) {
          testing::write_file(path(i), file);
          sweep.path(path(0), "piece " + std::to_string(i) + ", " + what);
        });
        testing::write_file(path(i), pieces[i]);
      }
      sweep.path(path(0), "whole");
      return sweep.passed();
    });
  }

  std::filesystem::path folder_;
};

TEST_F(SplitSweep, EveryByteOfTheHeaders) { EXPECT_TRUE(sweep_pieces(each_flip)); }
TEST_F(SplitSweep, EveryNumberOfTheHeaders) { EXPECT_TRUE(sweep_pieces(each_number)); }
TEST_F(SplitSweep, EveryLength) { EXPECT_TRUE(sweep_pieces(each_length)); }

}  // namespace
}  // namespace kvasir
