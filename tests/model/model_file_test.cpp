// SPDX-License-Identifier: MIT
//
// Where a model is looked for and what can happen to a file while it is in use: paths that are no model, files that are
// cut (P16), grow or are larger than memory. The sentence is the whole one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "support/kv.h"
#include "support/memory_limit.h"
#include "support/small_models.h"

KV_ASAN_MEMORY_LIMIT

namespace kvasir {
namespace {

using test::Error;
using test::sized;
namespace fs = std::filesystem;

class ModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("kvasir-model-file-" + std::to_string(getpid()) + "-" +
                                                ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::all);  // the test without permissions changes its user
    path_ = folder_ / "model.gguf";
    testing::write_file(path_, file_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  kv_status load(const std::string& path, kv_model** out, uint32_t flags = 0) {
    kv_model_options options = sized<kv_model_options>();
    options.flags = flags;
    return kv_model_load_file(runtime_.get(), path.c_str(), &options, out, &e);
  }
  void refused(const std::string& path, kv_status code, const std::string& sentence) {
    for (const uint32_t flags : {0U, uint32_t{KV_MODEL_MAP_FILE}}) {
      kv_model* model = nullptr;
      EXPECT_EQ(load(path, &model, flags), code);
      EXPECT_EQ(std::string(e.message), sentence);
      EXPECT_EQ(model, nullptr);
    }
  }
  std::vector<float> run(kv_model* model) {
    kv_context_options options = sized<kv_context_options>();
    options.device = "ref";
    const test::ContextPtr context = test::make_context(model, options);
    return context ? test::prefill(context.get(), 0, {1, 2, 3}) : std::vector<float>();
  }

  const std::vector<uint8_t> file_ = testing::tiny_llama();
  test::RuntimePtr runtime_ = test::make_runtime();
  fs::path folder_;
  std::string path_;
  Error e;
};

TEST_F(ModelFile, PathsThatAreNoFile) {
  refused("", KV_INVALID_ARGUMENT, "the path of the file to open is empty");
  refused(folder_, KV_INVALID_ARGUMENT, "'" + folder_.string() + "' is not a regular file");
  refused("/dev/zero", KV_INVALID_ARGUMENT, "'/dev/zero' is not a regular file");
  refused("/dev/null", KV_INVALID_ARGUMENT, "'/dev/null' is not a regular file");
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, KV_INVALID_ARGUMENT, "'" + pipe + "' is not a regular file");  // and nobody waits for a writer
  const std::string absent = folder_ / "absent";
  refused(absent, KV_NOT_FOUND, "cannot open '" + absent + "': No such file or directory");
  const std::string below = path_ + "/x";
  refused(below, KV_NOT_FOUND, "cannot open '" + below + "': Not a directory");
  const std::string loop = folder_ / "loop";
  fs::create_symlink(loop, loop);
  refused(loop, KV_IO, "cannot open '" + loop + "': Too many levels of symbolic links");
  kv_model* model = nullptr;
  FAILS(KV_INVALID_ARGUMENT, "path is NULL", kv_model_load_file(runtime_.get(), nullptr, nullptr, &model, &e));
}

// A sentence is cut to fit its record.
TEST_F(ModelFile, AVeryLongPath) {
  const std::string path(100000, 'x');
  kv_model* model = nullptr;
  EXPECT_EQ(load(path, &model), KV_IO);
  EXPECT_EQ(std::string(e.message), ("cannot open '" + path).substr(0, sizeof e.message - 1));
  std::string umlauts;  // and never in the middle of a character
  for (size_t i = 0; i < 1000; ++i) umlauts += "\xC3\xA4";
  for (const std::string& prefix : {std::string(), std::string("x")}) {
    EXPECT_EQ(load(prefix + umlauts, &model), KV_IO);
    const std::string sentence = e.message;
    EXPECT_GE(sentence.size(), sizeof e.message - 2);
    EXPECT_EQ(sentence.back(), '\xA4');
  }
}

TEST_F(ModelFile, AFileWithoutPermission) {
  fs::permissions(path_, fs::perms::none);
  const pid_t child = fork();
  if (child == 0) {  // root may read everything
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(77);
    kv_model* model = nullptr;
    const bool denied = load(path_, &model) == KV_IO &&
                        std::string(e.message) == "cannot open '" + path_ + "': Permission denied" && model == nullptr;
    _exit(denied ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this process cannot give up its rights";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "not the expected refusal";
}

TEST_F(ModelFile, Empty) {
  testing::write_file(path_, {});
  refused(path_, KV_CORRUPT,
          "'" + path_ + "' is damaged or cut short: the header needs 4 bytes, the file ends 4 bytes short");
}

// Read, not mapped: an error of the call that needed the bytes, and the model works again when the file does.
TEST_F(ModelFile, CutWhileInUse) {
  kv_model* loaded = nullptr;
  OK(load(path_, &loaded));
  const test::ModelPtr model(loaded);
  fs::resize_file(path_, file_.size() - 1);
  const std::string sentence = "'" + path_ + "' had " + std::to_string(file_.size()) +
                               " bytes when it was opened and now ends at " + std::to_string(file_.size() - 1);
  EXPECT_EQ(kv_model_prepare(loaded, "ref", nullptr, &e), KV_IO);
  EXPECT_EQ(std::string(e.message), sentence);
  kv_context_options options = sized<kv_context_options>();
  options.device = "ref";
  kv_context* context = nullptr;
  EXPECT_EQ(kv_context_create(loaded, &options, &context, &e), KV_IO);
  EXPECT_EQ(context, nullptr);
  kv_metadata name = sized<kv_metadata>();
  OK(kv_model_metadata_find(loaded, "general.name", &name, &e));  // the header is in memory
  testing::write_file(path_, file_);
  OK(kv_model_prepare(loaded, "ref", nullptr, &e));
  EXPECT_EQ(run(loaded).size(), 10U);
}

// Once the weights are on the device the file is not needed.
TEST_F(ModelFile, GoneAfterPrepare) {
  kv_model* loaded = nullptr;
  OK(load(path_, &loaded));
  const test::ModelPtr model(loaded);
  OK(kv_model_prepare(loaded, "ref", nullptr, &e));
  fs::resize_file(path_, 0);
  fs::remove(path_);
  EXPECT_EQ(run(loaded).size(), 10U);
}

TEST_F(ModelFile, GrowsWhileInUse) {
  kv_model* loaded = nullptr;
  OK(load(path_, &loaded));
  const test::ModelPtr before(loaded);
  std::vector<uint8_t> longer = file_;
  longer.resize(longer.size() + 5000, 0xEE);
  testing::write_file(path_, longer);
  const std::vector<float> logits = run(loaded);
  EXPECT_EQ(logits.size(), 10U);
  OK(load(path_, &loaded));
  const test::ModelPtr after(loaded);
  EXPECT_EQ(run(loaded), logits);
}

// What kvasir.h says about KV_MODEL_MAP_FILE: a page that is gone kills the process.
TEST_F(ModelFile, CutWhileMapped) {
#ifdef KV_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer handles the signal";
#else
  std::vector<uint8_t> longer = file_;
  longer.resize(1 << 20);
  testing::write_file(path_, longer);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGBUS, SIG_DFL);
    kv_model* model = nullptr;
    if (load(path_, &model, KV_MODEL_MAP_FILE) != KV_OK) _exit(1);
    fs::resize_file(path_, 0);
    (void)kv_model_prepare(model, "ref", nullptr, &e);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGBUS);
#endif
}

// A terabyte that is hardly there: it has what the header claims, but not what a process has room for.
TEST_F(ModelFile, ATerabyte) {
  const uint64_t size = uint64_t{1} << 40;
  std::error_code failure;
  fs::resize_file(path_, size, failure);
  if (failure) GTEST_SKIP() << "no sparse files of a terabyte here: " << failure.message();
  EXPECT_TRUE(testing::with_memory_limit([&] {
    kv_model* model = nullptr;
    if (load(path_, &model) != KV_OK) return false;
    const bool ran = run(model).size() == 10;
    kv_model_release(model);
    return ran;
  }));

  const auto claims = [&](uint64_t bytes) {
    testing::write_file(path_, testing::RawBytes().header(3, 0, 1).string("k").u32(8).u64(bytes).bytes());
    fs::resize_file(path_, size);
  };
  const auto refuses = [&](kv_status code, const std::string& sentence) {
    return testing::with_memory_limit([&] {
      kv_model* model = nullptr;
      const bool refusal = load(path_, &model) == code && model == nullptr && e.message == sentence;
      if (!refusal) std::fprintf(stderr, "said: %s\n", e.message);
      return refusal;
    });
  };
  claims(uint64_t{1} << 39);
  EXPECT_TRUE(refuses(KV_UNSUPPORTED, "'" + path_ +
                                          "' has a header of more than 1073741824 bytes: the value of key 'k' needs "
                                          "549755813888 bytes"));
#ifndef KV_ADDRESS_SANITIZER  // whose operator new does not throw
  claims(uint64_t{900} << 20);
  EXPECT_TRUE(refuses(KV_OUT_OF_MEMORY, "the host has no memory left"));
#endif
}

}  // namespace
}  // namespace kvasir
