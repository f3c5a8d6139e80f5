// SPDX-License-Identifier: MIT
//
// Session: everything but steps, and the comparison with the model.
#include "faults/session.h"

#include <sstream>

#include "faults/trouble.h"

namespace kvasir::test {

namespace {

constexpr uint32_t kRowWidth = 4, kDim = 8, kLayers = 2, kVocab = 16;

const char* const kTroubles[] = {"none", "allocator", "backend", "malloc", "cancelled", "progress", "row", "thread"};

kv_status injected_by(const Troubled& troubled) { return troubled.fired() ? troubled.status() : KV_OK; }

}  // namespace

std::ostream& operator<<(std::ostream& out, const Command& command) {
  return out << "{Call " << int{static_cast<uint8_t>(command.call)} << ", " << int{command.a} << ", " << int{command.b}
             << ", " << int{command.c} << ", trouble " << kTroubles[static_cast<size_t>(command.trouble)] << ' '
             << int{command.at} << ", keep " << command.keep << ", outputs " << int{command.outputs} << "}";
}

Session::Session(const SessionOptions& options) : options_(options) {
  kv_runtime_options runtime = sized<kv_runtime_options>();
  const kv_allocator allocator = hooked_allocator.table();
  runtime.allocator = &allocator;
  runtime_ = make_runtime(&runtime);
  kv_model_config config = small_config();
  config.layers = kLayers;
  config.dim = kDim;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = kRowWidth;
  config.ffn_dim = 8;
  config.vocab = kVocab;
  config.window = options.window;
  config.context_length = 256;
  model_ = random_model(runtime_.get(), config, 3);
  context_options_ = sized<kv_context_options>();
  context_options_.device = options_.device.c_str();
  context_options_.page_tokens = options.page_tokens;
  context_options_.max_batch_tokens = options.batch;
  context_options_.max_sequences = options.max_sequences;
  context_options_.threads = options.threads;
  context_options_.k_type = options.k_type;
  context_options_.v_type = options.v_type;
  context_options_.max_tokens = options.max_tokens;
  context_options_.flags = options.poison ? KV_CONTEXT_POISON : 0;
  context_ = make_context(model_.get(), context_options_);
  oracle_ = std::make_unique<Oracle>(model_.get(), context_options_, kLayers, kDim, kRowWidth);
  expected_.page_tokens = options.page_tokens;
  expected_.max_sequences = options.max_sequences;
  expected_.layers = kLayers;
  expected_.max_tokens = options.max_tokens;
  expected_.max_pages = expected_.pages_of(options.max_tokens) + options.max_sequences - 1;
  expected_.held[KV_DEFAULT_SEQUENCE] = {};
}

Session::~Session() = default;

kv_sequence Session::pick(uint8_t number) const {
  const size_t index = number % (expected_.held.size() + 1);
  if (index == expected_.held.size()) return number % 2 == 0 ? ids_ : ids_ - 1;  // never was, or maybe was
  return std::next(expected_.held.begin(), static_cast<ptrdiff_t>(index))->first;
}

std::string Session::run(const Command& command) {
  std::string wrong;
  switch (command.call) {
    case Call::kPrefill:
    case Call::kDecode:
    case Call::kStep: wrong = step(command); break;
    case Call::kFork: wrong = fork(command); break;
    case Call::kTruncate: wrong = truncate(command); break;
    case Call::kCreate: wrong = create(command); break;
    case Call::kRelease: wrong = release(command); break;
    case Call::kTokens: wrong = tokens(command); break;
    case Call::kCacheRead: wrong = cache_read(command); break;
    case Call::kTrace: wrong = trace(command); break;
    case Call::kBadStep: wrong = bad_step(command); break;
    case Call::kBadArgument: wrong = bad_argument(command); break;
    default: wrong = other_context(command); break;
  }
  return wrong.empty() ? compare() : wrong;
}

// All that can be seen, against the model and the oracle.
std::string Session::compare() {
  ContextState want;
  want.free_tokens = expected_.free_tokens();
  want.tokens_computed = expected_.computed;
  want.projections = 3 * uint64_t{kLayers} * expected_.computed;
  want.projections_avoided = expected_.avoided;
  want.pages_used = expected_.pages().size();
  want.pages_shared = expected_.shared();
  want.sequences = static_cast<uint32_t>(expected_.held.size());
  for (const auto& [id, sequence] : expected_.held) {
    want.held[id] = {Oracle::ids_of(sequence.tokens), oracle_->of(sequence.tokens).rows};
  }
  ContextState got = observe(context_.get(), ids_ + 1, kLayers, kRowWidth);
  want.scratch_bytes = got.scratch_bytes;
  want.weight_bytes = got.weight_bytes;
  return difference(want, got);
}

std::string Session::finish() {
  while (!expected_.held.empty()) {
    const kv_sequence id = expected_.held.begin()->first;
    if (expected_.predict({{id, {5}, false}})[0] == KV_OK) {
      const std::string wrong = step({Call::kDecode});
      if (!wrong.empty()) return wrong;
    }
    const std::string wrong = release({Call::kRelease});
    if (!wrong.empty()) return wrong;
  }
  return compare();
}

std::string Session::outcome(const std::string& line, kv_status status, kv_status predicted, kv_status injected,
                             const Error& error) {
  note(line + " = " + kv_status_name(status) + (status != KV_OK ? std::string(": ") + error.message : ""));
  if (status != KV_OK && error.message[0] == '\0') return "no sentence";
  if (status == predicted || (injected != KV_OK && status == injected)) return "";
  return std::string("expected ") + kv_status_name(predicted);
}

std::string Session::fork(const Command& command) {
  const kv_sequence parent = pick(command.a);
  const auto found = expected_.held.find(parent);
  const bool there = found != expected_.held.end();
  const uint64_t length = command.b % ((there ? found->second.tokens.size() : 0) + 2);
  const bool fits = there && length <= found->second.tokens.size();
  kv_sequence made = UINT64_MAX;
  Error e;
  Troubled troubled(command);
  const kv_status status = troubled.call([&] { return kv_sequence_fork(context_.get(), parent, length, &made, &e); });
  const std::string line = "kv_sequence_fork(c, " + std::to_string(parent) + ", " + std::to_string(length) + ")";
  if (std::string wrong = outcome(line, status, fits ? KV_OK : KV_INVALID_ARGUMENT, injected_by(troubled), e);
      !wrong.empty()) {
    return wrong;
  }
  if (status != KV_OK) return check(made == UINT64_MAX, "the out parameter was written");
  if (made < ids_) return "an id was used again";
  ids_ = made + 1;
  expected_.fork(parent, length, made);
  return "";
}

std::string Session::truncate(const Command& command) {
  const kv_sequence id = pick(command.a);
  const auto found = expected_.held.find(id);
  const bool there = found != expected_.held.end();
  const uint64_t length = command.b % ((there ? found->second.tokens.size() : 0) + 2);
  const bool fits = there && length <= found->second.tokens.size();
  Error e;
  Troubled troubled(command);
  const kv_status status = troubled.call([&] { return kv_sequence_truncate(context_.get(), id, length, &e); });
  const std::string line = "kv_sequence_truncate(c, " + std::to_string(id) + ", " + std::to_string(length) + ")";
  const std::string wrong = outcome(line, status, fits ? KV_OK : KV_INVALID_ARGUMENT, injected_by(troubled), e);
  if (wrong.empty() && status == KV_OK) expected_.truncate(id, length);
  return wrong;
}

std::string Session::create(const Command& command) {
  if (expected_.held.size() >= 6) return "";
  kv_sequence made = UINT64_MAX;
  Error e;
  Troubled troubled(command);
  const kv_status status = troubled.call([&] { return kv_sequence_create(context_.get(), &made, &e); });
  const std::string wrong = outcome("kv_sequence_create(c)", status, KV_OK, injected_by(troubled), e);
  if (!wrong.empty() || status != KV_OK) return wrong;
  if (made < ids_) return "an id was used again";
  ids_ = made + 1;
  expected_.held[made] = {};
  return "";
}

std::string Session::release(const Command& command) {
  const kv_sequence id = pick(command.a);
  const bool there = expected_.held.count(id) != 0;
  Error e;
  Troubled troubled(command);
  const kv_status status = troubled.call([&] { return kv_sequence_release(context_.get(), id, &e); });
  const std::string wrong = outcome("kv_sequence_release(c, " + std::to_string(id) + ")", status,
                                    there ? KV_OK : KV_INVALID_ARGUMENT, injected_by(troubled), e);
  if (wrong.empty() && status == KV_OK) expected_.held.erase(id);
  return wrong;
}

// Ranges inside and outside; what is asked for comes, and nothing is written when it does not.
std::string Session::tokens(const Command& command) {
  const kv_sequence id = pick(command.a);
  const auto found = expected_.held.find(id);
  const std::vector<int32_t> want = found == expected_.held.end() ? std::vector<int32_t>() : found->second.tokens;
  const uint64_t first = command.b == 255 ? UINT64_MAX : command.b % (want.size() + 2);
  const uint64_t count = command.c == 255 ? UINT64_MAX : command.c % (want.size() + 2);
  const bool fits = found != expected_.held.end() && first <= want.size() && count <= want.size() - first;
  std::vector<int32_t> got(want.size() + 2, -77);
  Error e;
  const kv_status status = kv_sequence_tokens(context_.get(), id, first, count, got.data(), &e);
  const std::string wrong = outcome(
      "kv_sequence_tokens(c, " + std::to_string(id) + ", " + std::to_string(first) + ", " + std::to_string(count) + ")",
      status, fits ? KV_OK : KV_INVALID_ARGUMENT, KV_OK, e);
  if (!wrong.empty()) return wrong;
  const size_t written = fits ? count : 0;
  return check(
      std::all_of(got.begin() + static_cast<ptrdiff_t>(written), got.end(), [](int32_t t) { return t == -77; }),
      "written past the range");
}

std::string Session::cache_read(const Command& command) {
  const kv_sequence id = pick(command.a);
  const auto found = expected_.held.find(id);
  const uint64_t length = found == expected_.held.end() ? 0 : found->second.tokens.size();
  const uint64_t first = command.b % (length + 2), count = command.c % (length + 2);
  const uint32_t layer = command.at % 3U, what = command.outputs % 4U;
  const bool little = command.keep;
  kv_status predicted = KV_OK;
  if (little && count > 0) predicted = KV_BUFFER_TOO_SMALL;
  if (found == expected_.held.end() || layer >= kLayers || what < KV_CACHE_K || what > KV_CACHE_V || first > length ||
      count > length - std::min(first, length)) {
    predicted = KV_INVALID_ARGUMENT;
  }
  std::vector<float> rows((length + 2) * kRowWidth);
  Error e;
  Troubled troubled(command);
  const kv_status status = troubled.call([&] {
    return kv_cache_read(context_.get(), id, layer, what, first, count, rows.data(),
                         little ? count * kRowWidth - 1 : rows.size(), &e);
  });
  std::ostringstream line;
  line << "kv_cache_read(c, " << id << ", " << layer << ", " << what << ", " << first << ", " << count << ")";
  if (little && count == 0) return "";  // a capacity of 2^64 - 1: nothing to refuse
  return outcome(line.str(), status, predicted, injected_by(troubled), e);
}

std::string Session::trace(const Command& command) {
  const bool on = command.a % 2 == 0;
  const kv_trace_fn count = [](void* records, const kv_trace_record* record) {
    *static_cast<uint64_t*>(records) += record->rows;
  };
  Error e;
  Troubled troubled(command);
  const kv_status status =
      troubled.call([&] { return kv_context_set_trace(context_.get(), on ? count : nullptr, &records_, &e); });
  if (status == KV_OK) tracing_ = on;
  return outcome(on ? "kv_context_set_trace(c, f)" : "kv_context_set_trace(c, NULL)", status, KV_OK,
                 injected_by(troubled), e);
}

std::string Session::bad_argument(const Command& command) {
  Error e;
  kv_context* const c = context_.get();
  kv_status status = KV_OK;
  kv_context_info info = {};
  switch (command.b % 8) {
    case 0: status = kv_sequence_create(c, nullptr, &e); break;
    case 1: status = kv_sequence_fork(c, 0, 0, nullptr, &e); break;
    case 2: status = kv_sequence_length(c, 0, nullptr, &e); break;
    case 3: status = kv_sequence_tokens(c, pick(command.a), 0, 1, nullptr, &e); break;
    case 4: status = kv_cache_read(c, pick(command.a), 0, KV_CACHE_K, 0, 1, nullptr, 100, &e); break;
    case 5: status = kv_context_get_info(c, nullptr, &e); break;
    case 6: status = kv_context_get_info(c, &info, &e); break;
    default: status = kv_sequence_truncate(c, UINT64_MAX, 0, &e); break;
  }
  return outcome("bad argument " + std::to_string(command.b % 8), status, KV_INVALID_ARGUMENT, KV_OK, e);
}

// Another context of the same model comes and goes, or fails to come: this one does not notice.
std::string Session::other_context(const Command& command) {
  kv_context_options options = context_options_;
  kv_status predicted = KV_OK;
  switch (command.b % 6) {
    case 0:
      options.flags = 64;
      predicted = KV_UNSUPPORTED;
      break;
    case 1:
      options.k_type = 99;
      predicted = KV_INVALID_ARGUMENT;
      break;
    case 2:
      options.memory_budget = 1;
      predicted = KV_OUT_OF_MEMORY;
      break;
    case 3:
      options.max_tokens = uint64_t{1} << 31;
      predicted = KV_OUT_OF_MEMORY;
      break;
    case 4:
      options.struct_size = 4;
      predicted = KV_INVALID_ARGUMENT;
      break;
    default: break;
  }
  kv_context* made = nullptr;
  Error e;
  Troubled troubled(command);
  const kv_status status = troubled.call([&] { return kv_context_create(model_.get(), &options, &made, &e); });
  const ContextPtr other(made);
  if ((made != nullptr) != (status == KV_OK)) return "the out parameter and the status disagree";
  return outcome("kv_context_create(m, " + std::to_string(command.b % 6) + ")", status, predicted,
                 injected_by(troubled), e);
}

}  // namespace kvasir::test
