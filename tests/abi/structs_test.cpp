// SPDX-License-Identifier: MIT
//
// Structs from the past and from the future, for every function of kvasir.h that takes or fills one: zero and non-zero
// tails, sizes that cannot be, arrays with longer elements. What is to be tried is read from the header, so that a new
// struct without an entry fails. Each struct ends where readable memory ends. (Case P29.)
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <set>

#include "support/toy_model.h"

namespace kvasir::test {
namespace {

constexpr size_t kMostBytes = 65536;  // of a struct that the library takes for one

// `size` bytes with unreadable memory behind them.
class Guarded {
 public:
  explicit Guarded(size_t size) : size_(size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (size + page - 1) / page * page;
    total_ = usable + page;
    base_ = static_cast<char*>(mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + usable, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = base_ + usable - size;
  }
  ~Guarded() { munmap(base_, total_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* data() const { return data_; }
  std::string content() const { return {data_, size_}; }

 private:
  size_t size_, total_;
  char* base_;
  char* data_;
};

enum class Way { in, out, both };  // options, results, and what is a bit of each

struct Case {
  std::string function, structure;
  Way way;
  size_t size;                                      // of ours
  std::function<void(void*)> fill;                  // a struct of zeroes gets what the call needs
  std::function<kv_status(void*, kv_error*)> call;  // succeeds with such a struct, and undoes what it did
};

class Structs : public ::testing::Test {
 protected:
  Structs() {
    runtime_ = make_runtime();
    model_ = load_model(runtime_.get(), demo_model());
    kv_context_options o = sized<kv_context_options>();
    o.device = "ref";
    o.max_tokens = 64;
    context_ = make_context(model_.get(), o);
    kv_sampler_options s = sized<kv_sampler_options>();
    kv_sampler* sampler = nullptr;
    kv_sampler_create(&s, &sampler, nullptr);
    sampler_.reset(sampler);
    kv_backend_report* report = nullptr;
    kv_backend_report_create(runtime_.get(), &report, nullptr);
    report_.reset(report);
    while (kv_backend_report_device(report, entry_, 0, &device_, nullptr) != KV_OK && entry_ < 100) ++entry_;
    make_cases();
  }

  template <class T>
  void add(
      const char* function, const char* structure, Way way, std::function<kv_status(T*, kv_error*)> call,
      std::function<void(T*)> fill = [](T*) {}) {
    cases_.push_back({function, structure, way, sizeof(T), [fill](void* p) { fill(static_cast<T*>(p)); },
                      [call](void* p, kv_error* e) { return call(static_cast<T*>(p), e); }});
  }
#define ADD(function, structure, way, ...) \
  add<structure>(#function, #structure, Way::way, [this](structure* s, kv_error* e) { __VA_ARGS__ })
#define ADD_FILLED(function, structure, way, filled, ...) \
  add<structure>(                                         \
      #function, #structure, Way::way, [this](structure* s, kv_error* e) { __VA_ARGS__ }, [&](structure * s) filled)

  void make_cases();

  kv_status undone(kv_status status) {
    EXPECT_EQ(kv_sequence_truncate(context_.get(), KV_DEFAULT_SEQUENCE, 0, nullptr), KV_OK);
    return status;
  }
  template <class T>
  kv_status released(kv_status status, T* made, void (*release)(T*)) {
    if (status == KV_OK) release(made);
    return status;
  }

  // The call with a struct that says it has `size` bytes, of which `present` are there.
  kv_status call(const Case& c, uint32_t size, size_t present, int tail_at = -1) {
    memory_ = std::make_unique<Guarded>(present);
    std::memset(memory_->data(), 0, present);
    c.fill(memory_->data());
    std::memcpy(memory_->data(), &size, sizeof size);
    if (c.way == Way::out) std::memset(memory_->data() + 4, 0xAB, present - 4);
    if (tail_at >= 0) memory_->data()[tail_at] = 1;
    before_ = memory_->content();
    error_ = Error();
    return c.call(memory_->data(), &error_);
  }

  RuntimePtr runtime_;
  ModelPtr model_;
  ContextPtr context_;
  SamplerPtr sampler_;
  ReportPtr report_;
  size_t entry_ = 0;
  kv_device_info device_ = sized<kv_device_info>();
  int32_t token_ = 3;
  kv_decode_input decode_ = {KV_DEFAULT_SEQUENCE, 3, 0};
  kv_step_input step_ = {sizeof(kv_step_input), 0, KV_DEFAULT_SEQUENCE, &token_, nullptr, 1};
  std::vector<Case> cases_;
  std::unique_ptr<Guarded> memory_;
  std::string before_;
  Error error_;
};

void Structs::make_cases() {
  ADD(kv_runtime_create, kv_runtime_options, in, kv_runtime* made = nullptr;
      const kv_status status = kv_runtime_create(s, &made, e); return released(status, made, kv_runtime_release););
  ADD(kv_backend_report_entry, kv_backend_entry, out, return kv_backend_report_entry(report_.get(), entry_, s, e););
  ADD(kv_backend_report_device, kv_device_info, out, return kv_backend_report_device(report_.get(), entry_, 0, s, e););
  ADD(kv_model_load_file, kv_model_options, in, kv_model* made = nullptr;
      const kv_status status = kv_model_load_file(runtime_.get(), demo_model().c_str(), s, &made, e);
      return released(status, made, kv_model_release););
  ADD(
      kv_model_load_memory, kv_model_options, in,
      static const std::string file =
          [] {
            std::ifstream in(demo_model(), std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(in), {});
          }();
      kv_model* made = nullptr;
      const kv_status status = kv_model_load_memory(runtime_.get(), file.data(), file.size(), s, &made, e);
      return released(status, made, kv_model_release););
  ADD(kv_model_prepare, kv_model_options, in, return kv_model_prepare(model_.get(), "ref", s, e););
  ADD(kv_model_get_info, kv_model_info, out, return kv_model_get_info(model_.get(), s, e););
  ADD(kv_model_metadata_at, kv_metadata, out, return kv_model_metadata_at(model_.get(), 0, s, e););
  ADD(kv_model_metadata_find, kv_metadata, out,
      return kv_model_metadata_find(model_.get(), "general.architecture", s, e););
  ADD(kv_model_metadata_element, kv_metadata, out,
      return kv_model_metadata_element(model_.get(), "tokenizer.ggml.tokens", 0, s, e););
  ADD(kv_model_tensor_at, kv_tensor_info, out, return kv_model_tensor_at(model_.get(), 0, s, e););
  ADD_FILLED(
      kv_model_builder_create, kv_model_config, in, { *s = small_config(); }, kv_model_builder* made = nullptr;
      const kv_status status = kv_model_builder_create(runtime_.get(), s, &made, e);
      return released(status, made, kv_model_builder_release););
  ADD(kv_tokenizer_get_info, kv_tokenizer_info, out,
      return kv_tokenizer_get_info(kv_model_tokenizer(model_.get()), s, e););
  const auto device = [](kv_context_options* s) {
    s->device = "ref";
    s->max_tokens = 16;
  };
  add<kv_context_options>(
      "kv_context_create", "kv_context_options", Way::in,
      [this](kv_context_options* s, kv_error* e) {
        kv_context* made = nullptr;
        const kv_status status = kv_context_create(model_.get(), s, &made, e);
        return released(status, made, kv_context_release);
      },
      device);
  add<kv_context_options>(
      "kv_context_plan", "kv_context_options", Way::in,
      [this](kv_context_options* s, kv_error* e) {
        kv_memory_plan plan = sized<kv_memory_plan>();
        return kv_context_plan(model_.get(), s, &plan, e);
      },
      device);
  ADD(kv_context_plan, kv_memory_plan, out, kv_context_options o = sized<kv_context_options>(); o.device = "ref";
      return kv_context_plan(model_.get(), &o, s, e););
  ADD(kv_context_get_info, kv_context_info, out, return kv_context_get_info(context_.get(), s, e););
  ADD(kv_prefill, kv_step_options, in,
      return undone(kv_prefill(context_.get(), KV_DEFAULT_SEQUENCE, &token_, 1, s, nullptr, e)););
  ADD(kv_prefill, kv_step_result, out,
      return undone(kv_prefill(context_.get(), KV_DEFAULT_SEQUENCE, &token_, 1, nullptr, s, e)););
  ADD(kv_decode_step, kv_step_options, in, return undone(kv_decode_step(context_.get(), &decode_, 1, s, nullptr, e)););
  ADD(kv_decode_step, kv_step_result, out, return undone(kv_decode_step(context_.get(), &decode_, 1, nullptr, s, e)););
  ADD_FILLED(
      kv_step, kv_step_input, in, { *s = step_; }, return undone(kv_step(context_.get(), s, 1, nullptr, nullptr, e)););
  ADD(kv_step, kv_step_options, in, return undone(kv_step(context_.get(), &step_, 1, s, nullptr, e)););
  ADD(kv_step, kv_step_result, out, return undone(kv_step(context_.get(), &step_, 1, nullptr, s, e)););
  ADD(kv_sampler_create, kv_sampler_options, in, kv_sampler* made = nullptr;
      const kv_status status = kv_sampler_create(s, &made, e); return released(status, made, kv_sampler_release););
  ADD(kv_sampler_sample, kv_sample, both, const float logits[] = {1, 3, 2};
      return kv_sampler_sample(sampler_.get(), logits, 3, s, e););
}

// The header without its comments.
std::string header_text() {
  std::ifstream file(KV_TEST_HEADER);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (size_t at = 0; (at = text.find("/*", at)) != std::string::npos;) text.erase(at, text.find("*/", at) + 2 - at);
  return text;
}

// Every text between `before` and the next `after`.
std::vector<std::string> all_between(const std::string& text, const std::string& before, const std::string& after) {
  std::vector<std::string> found;
  for (size_t at = 0; (at = text.find(before, at)) != std::string::npos;) {
    at += before.size();
    found.push_back(text.substr(at, text.find(after, at) - at));
  }
  return found;
}

TEST_F(Structs, EveryOneOfTheHeaderIsTried) {
  const std::string text = header_text();
  std::set<std::string> structures, expected, tried;
  for (const std::string& definition : all_between(text, "typedef struct ", ";")) {
    const size_t brace = definition.find(" {");
    if (brace != std::string::npos && definition.find("uint32_t struct_size") != std::string::npos)
      structures.insert(definition.substr(0, brace));
  }
  for (const std::string& prototype : all_between(text, "KV_API ", ";")) {
    const size_t open = prototype.find('(');
    if (open == std::string::npos) continue;  // the definitions of KV_API itself
    const std::string function =
        prototype.substr(prototype.find_last_of(" *", open) + 1, open - 1 - prototype.find_last_of(" *", open));
    for (const std::string& structure : structures)
      if (prototype.find(structure + "* ", open) != std::string::npos) expected.insert(function + " " + structure);
  }
  for (const Case& c : cases_) tried.insert(c.function + " " + c.structure);
  EXPECT_GE(structures.size(), 18u);
  EXPECT_EQ(tried, expected);
}

TEST_F(Structs, OfOurSizeAndFromTheFuture) {
  for (const Case& c : cases_) {
    for (const size_t size : {c.size, c.size + 8, c.size + 4096, kMostBytes}) {
      SCOPED_TRACE(c.function + " " + c.structure + " of " + std::to_string(size) + " bytes");
      EXPECT_EQ(call(c, static_cast<uint32_t>(size), size), KV_OK) << error_.message;
      uint32_t kept = 0;
      std::memcpy(&kept, memory_->data(), sizeof kept);
      EXPECT_EQ(kept, size) << "struct_size is the caller's";
      EXPECT_EQ(memory_->content().substr(c.size), std::string(size - c.size, '\0'));
      if (c.way == Way::in) {
        EXPECT_EQ(memory_->content(), before_) << "options are only read";
      }
    }
  }
}

TEST_F(Structs, WithAFieldWeDoNotKnow) {
  for (const Case& c : cases_) {
    if (c.way == Way::out) continue;
    for (const size_t at : {c.size, c.size + 7, c.size + 15}) {
      SCOPED_TRACE(c.function + " " + c.structure + " byte " + std::to_string(at));
      EXPECT_EQ(call(c, static_cast<uint32_t>(c.size + 16), c.size + 16, static_cast<int>(at)), KV_UNSUPPORTED);
      EXPECT_NE(std::string(error_.message).find(c.structure + ": "), std::string::npos) << error_.message;
      EXPECT_NE(std::string(error_.message).find("byte " + std::to_string(at)), std::string::npos) << error_.message;
      EXPECT_EQ(memory_->content(), before_);
    }
  }
}

TEST_F(Structs, OfSizesThatCannotBe) {
  for (const Case& c : cases_) {
    const auto own = static_cast<uint32_t>(c.size);
    for (const uint32_t size : {0u, 4u, 8u, own - 8, own - 1, own + 1, own + 4, 65537u, 65544u, 1u << 31, UINT32_MAX}) {
      SCOPED_TRACE(c.function + " " + c.structure + " of " + std::to_string(size) + " bytes");
      // Nothing but our part is there: what a wrong size speaks of must not be looked for.
      EXPECT_EQ(call(c, size, c.size), KV_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error_.message).find(c.structure + ": struct_size is " + std::to_string(size)),
                std::string::npos)
          << error_.message;
      EXPECT_EQ(memory_->content(), before_) << "a refused struct is not written";
    }
  }
}

TEST_F(Structs, ArraysWithLongerElements) {
  Error e;
  kv_sequence second = 0;
  OK(kv_sequence_create(context_.get(), &second, &e));
  const int32_t tokens[] = {5, 6};
  for (const size_t more : {size_t{0}, size_t{8}, size_t{64}}) {
    const size_t in_stride = sizeof(kv_step_input) + more, out_stride = sizeof(kv_step_result) + 2 * more;
    Guarded in(2 * in_stride), out(2 * out_stride);
    std::memset(out.data(), 0xAB, 2 * out_stride);
    for (size_t i = 0; i < 2; ++i) {
      kv_step_input input = {static_cast<uint32_t>(in_stride), 0, i == 0 ? 0 : second, &tokens[i], nullptr, 1};
      std::memset(in.data() + i * in_stride, 0, in_stride);
      std::memcpy(in.data() + i * in_stride, &input, sizeof input);
      const auto size = static_cast<uint32_t>(out_stride);
      std::memcpy(out.data() + i * out_stride, &size, sizeof size);
    }
    auto* inputs = reinterpret_cast<kv_step_input*>(in.data());
    auto* results = reinterpret_cast<kv_step_result*>(out.data());
    OK(kv_step(context_.get(), inputs, 2, nullptr, results, &e));
    for (size_t i = 0; i < 2; ++i) {
      kv_step_result result;
      std::memcpy(&result, out.data() + i * out_stride, sizeof result);
      EXPECT_EQ(result.status, KV_OK);
      EXPECT_EQ(result.struct_size, out_stride);
      EXPECT_EQ(result.computed, 1u);
      EXPECT_EQ(out.content().substr(i * out_stride + sizeof result, 2 * more), std::string(2 * more, '\0'));
    }
    if (more == 0) continue;
    in.data()[2 * in_stride - 1] = 1;
    FAILS(KV_UNSUPPORTED, "kv_step_input: the caller uses a field at byte",
          kv_step(context_.get(), inputs, 2, nullptr, nullptr, &e));
    in.data()[2 * in_stride - 1] = 0;
    const uint32_t other = sizeof(kv_step_input);
    std::memcpy(in.data() + in_stride, &other, sizeof other);
    FAILS(KV_INVALID_ARGUMENT, "inputs[1].struct_size is", kv_step(context_.get(), inputs, 2, nullptr, nullptr, &e));
  }
}

TEST_F(Structs, NestedInTheOptionsOfAContext) {
  kv_model_options load = sized<kv_model_options>();
  kv_context_options o = sized<kv_context_options>();
  o.device = "ref";
  o.max_tokens = 16;
  o.load = &load;
  kv_context* made = nullptr;
  kv_memory_plan plan = sized<kv_memory_plan>();
  Error e;
  for (const uint32_t size : {0u, 8u, UINT32_MAX}) {
    load.struct_size = size;
    FAILS(KV_INVALID_ARGUMENT, "kv_model_options: struct_size", kv_context_create(model_.get(), &o, &made, &e));
    FAILS(KV_INVALID_ARGUMENT, "kv_model_options: struct_size", kv_context_plan(model_.get(), &o, &plan, &e));
  }
  EXPECT_EQ(made, nullptr);
}

TEST_F(Structs, ErrorRecordsOfEverySize) {
  for (const uint32_t size : {0u, 512u, 520u, 65536u, UINT32_MAX}) {  // frozen: never more than 512 bytes are written
    Guarded memory(sizeof(kv_error));
    auto* e = reinterpret_cast<kv_error*>(memory.data());
    *e = {size, 77, "untouched"};
    EXPECT_EQ(kv_runtime_create(nullptr, nullptr, e), KV_INVALID_ARGUMENT);
    EXPECT_EQ(e->code, KV_INVALID_ARGUMENT);
    EXPECT_STREQ(e->message, "out is NULL");
    EXPECT_EQ(e->struct_size, size);
  }
  for (const uint32_t size : {4u, 8u, 504u}) {  // cannot be one of ours: nothing is written
    kv_error e = {size, 77, "untouched"};
    EXPECT_EQ(kv_runtime_create(nullptr, nullptr, &e), KV_INVALID_ARGUMENT);
    EXPECT_STREQ(e.message, "untouched");
  }
}

TEST_F(Structs, HandedToCallbacksSayTheirSize) {
  uint32_t size = 0;
  const kv_trace_fn note = [](void* user, const kv_trace_record* r) { *static_cast<uint32_t*>(user) = r->struct_size; };
  Error e;
  OK(kv_context_set_trace(context_.get(), note, &size, &e));
  OK(undone(kv_prefill(context_.get(), KV_DEFAULT_SEQUENCE, &token_, 1, nullptr, nullptr, &e)));
  EXPECT_EQ(size, sizeof(kv_trace_record));
}

}  // namespace
}  // namespace kvasir::test
