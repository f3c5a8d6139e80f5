// SPDX-License-Identifier: MIT
//
// Every key of the configuration, in each family, with values that no model can have and of types that it is not (case
// P14 and its kind). The sentence names the key and has the value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/config.h"
#include "model/gguf.h"
#include "support/gguf_writer.h"

namespace kvasir {
namespace {

using testing::GgufWriter;

constexpr const char* kFamilies[] = {"llama", "qwen2", "qwen3"};
constexpr const char* kCounts[] = {"block_count",
                                   "embedding_length",
                                   "feed_forward_length",
                                   "attention.head_count",
                                   "attention.head_count_kv",
                                   "attention.key_length",
                                   "attention.value_length",
                                   "rope.dimension_count",
                                   "vocab_size",
                                   "rope.scaling.original_context_length"};
constexpr const char* kByLayer[] = {"feed_forward_length", "attention.head_count", "attention.head_count_kv"};
constexpr const char* kReals[] = {"attention.layer_norm_rms_epsilon",
                                  "rope.freq_base",
                                  "rope.scaling.attn_factor",
                                  "rope.scaling.yarn_attn_factor",
                                  "rope.scaling.yarn_beta_fast",
                                  "rope.scaling.yarn_beta_slow",
                                  "rope.scaling.factor",
                                  "rope.scale_linear"};

// All keys a configuration has, but for one, which `add` writes.
class Keys {
 public:
  Keys(const std::string& family, const std::string& but) : family_(family), but_(family + "." + but) {
    writer_.string("general.architecture", family);
    count("block_count", 2), count("embedding_length", 32), count("feed_forward_length", 64);
    count("attention.head_count", 4), count("attention.head_count_kv", 2), count("attention.key_length", 8);
    count("attention.value_length", 8), count("rope.dimension_count", 8), count("vocab_size", 64);
    count("context_length", 64), count("rope.scaling.original_context_length", 32);
    real("attention.layer_norm_rms_epsilon", 1e-5F), real("rope.freq_base", 10000.0F);
    real("rope.scaling.yarn_beta_fast", 32.0F), real("rope.scaling.yarn_beta_slow", 1.0F);
    if (but != "rope.scale_linear") real("rope.scaling.factor", 2.0F);
    if (but_ != family + ".rope.scaling.type") writer_.string(family + ".rope.scaling.type", "yarn");
  }

  const std::string& key() const { return but_; }
  GgufWriter& writer() { return writer_; }

  Status read() {
    std::shared_ptr<const Gguf> gguf;
    KV_RETURN_IF_ERROR(testing::parse_bytes(writer_.bytes(), &gguf));
    ModelConfig config;
    return config_from_gguf(*gguf, &config);
  }

  // The file is refused, with this after "key '<name>' ".
  void refused(const std::string& predicate) {
    const Status status = read();
    EXPECT_EQ(status.code(), KV_CORRUPT) << but_;
    EXPECT_EQ(status.message(), "key '" + but_ + "' " + predicate);
  }

 private:
  void count(const char* name, uint32_t value) {
    if (family_ + "." + name != but_) writer_.u32(family_ + "." + name, value);
  }
  void real(const char* name, float value) {
    if (family_ + "." + name != but_) writer_.f32(family_ + "." + name, value);
  }

  std::string family_;
  std::string but_;
  GgufWriter writer_;
};

template <class Names, class Test>
void for_each_key(const Names& names, const Test& test) {
  for (const char* family : kFamilies) {
    for (const char* name : names) test(family, name);
  }
}

TEST(ConfigBad, TheRestIsRight) {
  for (const char* family : kFamilies) EXPECT_STREQ(Keys(family, "no such key").read().message(), "");
}

TEST(ConfigBad, CountsOfZero) {
  for_each_key(kCounts, [](const char* family, const char* name) {
    Keys keys(family, name);
    keys.writer().u32(keys.key(), 0);
    keys.refused("is 0");
  });
}

TEST(ConfigBad, CountsThatAreNone) {
  for_each_key(kCounts, [](const char* family, const char* name) {
    const auto refused = [&](const std::string& predicate, const auto& add) {
      Keys keys(family, name);
      add(&keys.writer(), keys.key());
      keys.refused(predicate);
    };
    using W = GgufWriter*;
    refused("is of type string, expected an integer", [](W w, const std::string& k) { w->string(k, "32"); });
    refused("is of type f32, expected an integer", [](W w, const std::string& k) { w->f32(k, 32.0F); });
    refused("is of type bool, expected an integer", [](W w, const std::string& k) { w->boolean(k, true); });
    refused("is -1, expected a number of 32 bits", [](W w, const std::string& k) { w->i32(k, -1); });
    refused("is -9223372036854775808, expected a number of 32 bits",
            [](W w, const std::string& k) { w->scalar(k, GgufType::i64, INT64_MIN); });
    refused("is 4294967296, expected a number of 32 bits",
            [](W w, const std::string& k) { w->scalar(k, GgufType::u64, uint64_t{1} << 32); });
    refused("is 18446744073709551615, expected a number of 32 bits",
            [](W w, const std::string& k) { w->scalar(k, GgufType::u64, UINT64_MAX); });
  });
}

TEST(ConfigBad, CountsBeyondAnyModel) {
  for_each_key(kCounts, [](const char* family, const char* name) {
    for (const uint32_t value : {UINT32_MAX, UINT32_MAX - 1, uint32_t{1} << 31, uint32_t{1} << 25}) {
      Keys keys(family, name);
      keys.writer().u32(keys.key(), value);
      const Status status = keys.read();
      if (std::string(name) == "rope.scaling.original_context_length") {
        EXPECT_TRUE(status.ok()) << status.message();  // only a wavelength is made of it
        continue;
      }
      EXPECT_EQ(status.code(), KV_CORRUPT) << keys.key();
      const std::string sentence = status.message();
      const bool has_value = sentence.find(std::to_string(value)) != std::string::npos;
      EXPECT_TRUE(has_value || sentence.find(keys.key()) != std::string::npos) << keys.key() << ": " << sentence;
    }
  });
}

// One is a possible number; what does not fit the others is said.
TEST(ConfigBad, CountsOfOne) {
  for (const char* family : kFamilies) {
    for (const char* name : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count_kv",
                             "attention.value_length", "vocab_size"}) {
      Keys keys(family, name);
      keys.writer().u32(keys.key(), 1);
      EXPECT_STREQ(keys.read().message(), "") << keys.key();
    }
    const std::string f = family;
    Keys heads(family, "attention.head_count");
    heads.writer().u32(heads.key(), 1);
    heads.refused("is 1 and '" + f + ".attention.head_count_kv' is 2: the heads cannot share them evenly");
    Keys rope(family, "rope.dimension_count");
    rope.writer().u32(rope.key(), 1);
    rope.refused("is 1, expected an even number of at most 8, the width of a head");
  }
}

TEST(ConfigBad, ArraysWhereOneNumberIsMeant) {
  for_each_key(kCounts, [](const char* family, const char* name) {
    const auto same = [&](const char* other) { return std::string(name) == other; };
    if (std::any_of(std::begin(kByLayer), std::end(kByLayer), same)) return;
    Keys keys(family, name);
    keys.writer().u32s(keys.key(), {8, 8});
    keys.refused("is an array of u32, expected an integer");
  });
}

TEST(ConfigBad, ArraysByLayer) {
  for_each_key(kByLayer, [](const char* family, const char* name) {
    const auto refused = [&](const std::string& predicate, const auto& add) {
      Keys keys(family, name);
      add(&keys.writer(), keys.key());
      keys.refused(predicate);
    };
    using W = GgufWriter*;
    refused("has 0 values, the model has 2 layers", [](W w, const std::string& k) { w->u32s(k, {}); });
    refused("has 1 values, the model has 2 layers", [](W w, const std::string& k) { w->u32s(k, {4}); });
    refused("has 3 values, the model has 2 layers", [](W w, const std::string& k) { w->i32s(k, {4, 4, 4}); });
    refused("is 0", [](W w, const std::string& k) { w->u32s(k, {4, 0}); });
    refused("is -4, expected numbers of 32 bits", [](W w, const std::string& k) { w->i32s(k, {4, -4}); });
    refused("is an array of f32, expected an array of integers", [](W w, const std::string& k) { w->f32s(k, {4, 4}); });
    refused("is an array of string, expected an array of integers", [](W w, const std::string& k) {
      w->strings(k, {"4", "4"});
    });
  });
}

TEST(ConfigBad, RealNumbersThatAreNone) {
  using Limits = std::numeric_limits<float>;
  const std::pair<float, const char*> values[] = {
      {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}, {-1.0F, "-1"}, {Limits::lowest(), "-3.4028235e+38"}};
  for_each_key(kReals, [&](const char* family, const char* name) {
    for (const auto& [value, text] : values) {
      Keys keys(family, name);
      keys.writer().f32(keys.key(), value);
      keys.refused("is " + std::string(text) + ", expected a positive number");
    }
    Keys wide(family, name);
    wide.writer().scalar(wide.key(), GgufType::f64, 1e300);  // infinite as f32
    wide.refused("is inf, expected a positive number");
    Keys whole(family, name);
    whole.writer().u32(whole.key(), 1);
    whole.refused("is of type u32, expected a floating-point number");
    Keys text(family, name);
    text.writer().string(text.key(), "1.0");
    text.refused("is of type string, expected a floating-point number");
  });
}

TEST(ConfigBad, RealNumbersOfZero) {
  for_each_key(kReals, [](const char* family, const char* name) {
    Keys keys(family, name);
    keys.writer().f32(keys.key(), 0.0F);
    if (std::string(name) == "rope.scaling.factor" || std::string(name) == "rope.scale_linear") {
      EXPECT_STREQ(keys.read().message(), "");  // means no scaling
    } else {
      keys.refused("is 0, expected a positive number");
    }
  });
}

TEST(ConfigBad, RopeScalingType) {
  for (const char* family : kFamilies) {
    Keys keys(family, "rope.scaling.type");
    keys.writer().string(keys.key(), std::string("ya\0rn\n\xFF", 7));
    const Status status = keys.read();
    EXPECT_EQ(status.code(), KV_UNSUPPORTED);
    EXPECT_EQ(status.message(), "key '" + keys.key() +
                                    "' is 'ya?rn?"
                                    "?', supported are none, linear and yarn");
    Keys number(family, "rope.scaling.type");
    number.writer().u32(number.key(), 1);
    number.refused("is of type u32, expected a string");
  }
}

}  // namespace
}  // namespace kvasir
