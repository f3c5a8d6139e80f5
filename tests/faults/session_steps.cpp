// SPDX-License-Identifier: MIT
//
// Session: steps, and what they must have done.
#include <algorithm>
#include <sstream>

#include "faults/session.h"
#include "faults/trouble.h"

namespace kvasir::test {

namespace {
constexpr uint32_t kVocab = 16;
constexpr kv_status kUntouched = -1;
}  // namespace

struct Session::Step {
  std::vector<ModelInput> inputs;
  Call form = Call::kStep;
  kv_step_options options = sized<kv_step_options>();
  std::vector<kv_step_result> results;
  std::vector<float> into;

  // Rows as the callback got them.
  struct Row {
    kv_sequence sequence;
    uint64_t position;
    std::vector<float> values;
  };
  std::vector<Row> rows;
};

Session::Step Session::make_step(const Command& command) {
  Step step;
  step.form = command.call;
  const size_t inputs = command.call == Call::kPrefill ? 1 : command.b % 3U + 1;
  for (size_t i = 0; i < inputs; i++) {
    ModelInput input;
    input.sequence = pick(static_cast<uint8_t>(command.a + i * (command.c % 2 + 1)));
    const size_t count = command.call == Call::kDecode    ? 1
                         : command.call == Call::kPrefill ? command.b % 16
                                                          : (command.c / 4 + i * 3) % 7;
    for (size_t t = 0; t < count; t++) {
      const auto id = static_cast<int32_t>((command.a * 5U + command.c + t * 3 + i) % kVocab);
      const bool row = command.call == Call::kStep && (command.c + t) % 5 == 4;
      input.tokens.push_back(row ? -1 - id % static_cast<int32_t>(kRowCount) : id);
    }
    step.inputs.push_back(std::move(input));
  }
  // Once in a while a token that does not exist.
  if (command.c % 16 == 15 && !step.inputs.back().tokens.empty()) {
    step.inputs.back().tokens.back() = kVocab + command.a;
    step.inputs.back().bad_token = true;
  }
  step.options.keep_chunks = command.keep ? 1 : 0;
  step.options.outputs = command.outputs % 3U;
  step.results.assign(inputs, sized<kv_step_result>());
  for (kv_step_result& result : step.results) result.status = kUntouched;
  if (command.outputs / 3 % 2 == 1) step.into.resize(inputs * kVocab);
  return step;
}

std::string Session::step(const Command& command) { return take(command, make_step(command)); }

std::string Session::take(const Command& command, Step step) {
  Troubled troubled(command);
  struct Callbacks {
    Troubled* troubled;
    Step* step;
    Trouble trouble;
    void count(Trouble which) {
      if (trouble == which && --troubled->countdown == 0) kv_cancel_set(troubled->cancel.get());
    }
  } callbacks{&troubled, &step, command.trouble};
  uint64_t tokens = 0;
  for (const ModelInput& input : step.inputs) tokens += input.tokens.size();
  step.rows.reserve(tokens);
  step.options.cancel = troubled.cancel.get();
  step.options.progress_user = step.options.row_user = &callbacks;
  step.options.progress = [](void* user, uint64_t, uint64_t) {
    static_cast<Callbacks*>(user)->count(Trouble::kCancelAtProgress);
  };
  step.options.row = [](void* user, kv_sequence sequence, uint64_t position, const float* row, uint32_t width) {
    auto& back = *static_cast<Callbacks*>(user);
    const Disarmed ours;
    back.step->rows.push_back({sequence, position, {row, row + width}});
    back.count(Trouble::kCancelAtRow);
  };
  if (!step.into.empty()) step.options.into = step.into.data();
  step.options.into_floats = step.into.size();

  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> embeddings;
  std::vector<kv_step_input> inputs;
  std::vector<kv_decode_input> decodes;
  std::ostringstream line;
  line << (step.form == Call::kPrefill  ? "kv_prefill(c"
           : step.form == Call::kDecode ? "kv_decode_step(c"
                                        : "kv_step(c");
  for (const ModelInput& input : step.inputs) {
    ids.push_back(input.bad_token ? input.tokens : Oracle::ids_of(input.tokens));
    embeddings.push_back(input.bad_token ? std::vector<float>() : oracle_->rows_of(input.tokens));
    line << ", {" << input.sequence << ": ";
    for (const int32_t token : input.tokens) line << token << ' ';
    line << '}';
  }
  for (size_t i = 0; i < step.inputs.size(); i++) {
    inputs.push_back(sized<kv_step_input>());
    inputs[i].sequence = step.inputs[i].sequence;
    inputs[i].tokens = ids[i].data();
    inputs[i].rows = embeddings[i].data();
    inputs[i].count = ids[i].size();
    if (step.form == Call::kDecode) decodes.push_back({step.inputs[i].sequence, ids[i][0], 0});
  }
  records_ = 0;
  const int32_t none = 0;  // a pointer for a prefill of nothing
  Error e;
  const kv_status status = troubled.call([&] {
    if (step.form == Call::kPrefill) {
      return kv_prefill(context_.get(), inputs[0].sequence, ids[0].empty() ? &none : ids[0].data(), ids[0].size(),
                        &step.options, step.results.data(), &e);
    }
    if (step.form == Call::kDecode) {
      return kv_decode_step(context_.get(), decodes.data(), decodes.size(), &step.options, step.results.data(), &e);
    }
    return kv_step(context_.get(), inputs.data(), inputs.size(), &step.options, step.results.data(), &e);
  });
  line << ", outputs " << step.options.outputs << (command.keep ? ", keep" : "") << ") = " << kv_status_name(status);
  if (status != KV_OK) line << ": " << e.message;
  note(line.str());
  return judge(command, step, status, e, troubled.fired() ? troubled.status() : KV_OK);
}

std::string Session::judge(const Command& command, const Step& step, kv_status status, const Error& error,
                           kv_status injected) {
  std::vector<bool> failed;
  for (const kv_step_result& result : step.results) failed.push_back(injected != KV_OK && result.status == injected);
  // Inputs may fail when they are admitted, then they are not in the way of later ones, or when they run.
  const std::vector<kv_status> predicted = expected_.predict(step.inputs);
  const std::vector<kv_status> otherwise = expected_.predict(step.inputs, failed);
  const bool too_many = step.inputs.size() > options_.max_sequences;
  const bool untouched = step.results[0].status == kUntouched;
  if (status != KV_OK && error.message[0] == '\0') return "no sentence";
  if (too_many) return check(untouched && (status == KV_INVALID_ARGUMENT || status == injected), "too many inputs");
  if (untouched) return check(status == injected && injected == KV_OUT_OF_MEMORY, "refused as a whole");

  kv_status first = KV_OK;
  for (size_t i = 0; i < step.inputs.size(); i++) {
    const ModelInput& input = step.inputs[i];
    const kv_step_result& result = step.results[i];
    const std::string name = "input " + std::to_string(i) + ": ";
    if (first == KV_OK) first = result.status;
    const bool expected = result.status == predicted[i] || result.status == otherwise[i];
    if (!expected && !failed[i]) {
      return name + kv_status_name(result.status) + ", expected " + kv_status_name(predicted[i]);
    }
    if ((result.status == KV_OK) != (result.message[0] == '\0')) return name + "status and message disagree";
    const auto found = expected_.held.find(input.sequence);
    if (found == expected_.held.end()) continue;
    const uint64_t start = found->second.tokens.size();
    if (result.status == KV_OK) {
      if (result.computed != input.tokens.size()) return name + "computed " + std::to_string(result.computed);
    } else if (result.computed != 0 && !(command.keep && result.status == injected)) {
      return name + "it failed and kept " + std::to_string(result.computed) + " tokens";
    }
    if (result.computed > input.tokens.size()) return name + "kept more tokens than it was given";
    expected_.append(input.sequence,
                     {input.tokens.begin(), input.tokens.begin() + static_cast<ptrdiff_t>(result.computed)});
    const bool twice = start + result.computed != found->second.tokens.size();
    if (twice || (result.status != KV_INVALID_ARGUMENT && result.length != start + result.computed)) {
      return name + "length " + std::to_string(result.length);
    }
  }
  if (status != first)
    return std::string("the call gave another status than its first failing input, ") + kv_status_name(first);
  const bool ran = std::any_of(step.results.begin(), step.results.end(), [](const auto& r) { return r.computed != 0; });
  if (ran && tracing_ != (records_ != 0)) return "a trace where there should be none, or the other way round";
  return judge_rows(step);
}

// Rows that came back, and rows handed out on the way, of calls that failed too.
std::string Session::judge_rows(const Step& step) {
  for (size_t i = 0; i < step.inputs.size(); i++) {
    const kv_step_result& result = step.results[i];
    const bool wants = result.status == KV_OK && step.options.outputs == KV_OUTPUT_LAST;
    if ((result.rows != nullptr) != wants) return "a row where there should be none, or the other way round";
    if (!wants) continue;
    if (!step.into.empty() && result.rows != step.into.data() + i * kVocab) return "the row is not in `into`";
    const std::vector<float>& want = oracle_->of(expected_.held.at(step.inputs[i].sequence).tokens).logits.back();
    if (!same_bits(want, {result.rows, result.rows + result.width})) return "other logits than recomputed";
  }
  for (const Step::Row& row : step.rows) {
    for (const ModelInput& input : step.inputs) {
      const kv_step_result& result = step.results[static_cast<size_t>(&input - step.inputs.data())];
      const bool refused = result.status == KV_INVALID_ARGUMENT || result.status == KV_CONTEXT_FULL;
      if (input.sequence != row.sequence || refused) continue;
      // What the sequence holds, or held on the way.
      std::vector<int32_t> tokens = expected_.held.at(input.sequence).tokens;
      const size_t position = row.position;
      if (position >= tokens.size()) {
        const size_t kept = result.computed;
        tokens.insert(tokens.end(), input.tokens.begin() + static_cast<ptrdiff_t>(kept), input.tokens.end());
      }
      if (position >= tokens.size()) return "a row of a position that is not there";
      tokens.resize(position + 1);
      if (!same_bits(oracle_->of(tokens).logits.back(), row.values)) return "another row than recomputed";
      break;
    }
  }
  return "";
}

// Refused as a whole: results say so or stay as they are, and everything else does.
std::string Session::bad_step(const Command& command) {
  Step step = make_step({Call::kPrefill, command.a, 2, 0, Trouble::kNone, 0, false, 0});
  kv_step_result* result = step.results.data();
  const int32_t tokens[2] = {1, 2};
  std::vector<kv_decode_input> many(options_.max_sequences + 1, kv_decode_input{0, 1, 0});
  std::vector<kv_step_result> results(many.size(), sized<kv_step_result>());
  const kv_sequence sequence = step.inputs[0].sequence;
  kv_step_options options = step.options;
  kv_status want = KV_INVALID_ARGUMENT;
  Error e;
  const auto prefill_now = [&] { return kv_prefill(context_.get(), sequence, tokens, 2, &options, result, &e); };
  kv_status status = KV_OK;
  switch (command.b % 12) {
    case 0:
      options.outputs = 3;
      status = prefill_now();
      break;
    case 1:
      options.outputs = KV_OUTPUT_ALL;
      status = prefill_now();
      break;
    case 2:
      options.keep_chunks = 2;
      status = prefill_now();
      break;
    case 3:
      options.reserved = 1;
      want = KV_UNSUPPORTED;
      status = prefill_now();
      break;
    case 4: {
      float little = 0;
      options.into = &little;
      options.into_floats = 1;
      want = KV_BUFFER_TOO_SMALL;
      status = prefill_now();
      break;
    }
    case 5:
      options.struct_size = 4;
      status = prefill_now();
      break;
    case 6:
      result->struct_size = 8;
      status = prefill_now();
      result->struct_size = sizeof *result;
      break;
    case 7: status = kv_decode_step(context_.get(), many.data(), many.size(), nullptr, results.data(), &e); break;
    case 8: status = kv_decode_step(context_.get(), nullptr, 0, nullptr, nullptr, &e); break;
    case 9: status = kv_step(context_.get(), nullptr, 2, nullptr, results.data(), &e); break;
    case 10: status = kv_prefill(context_.get(), sequence, nullptr, 4, nullptr, result, &e); break;
    default:
      many[0].reserved = 1;
      want = KV_UNSUPPORTED;
      status = kv_decode_step(context_.get(), many.data(), 1, nullptr, results.data(), &e);
  }
  note("bad step " + std::to_string(command.b % 12) + " = " + kv_status_name(status) + ": " + e.message);
  if (status != want) return std::string("expected ") + kv_status_name(want);
  const bool says_why = result->status == kUntouched || (result->status == status && result->computed == 0);
  return check(says_why && results[0].computed == 0, "the results of a refused call say something else");
}

}  // namespace kvasir::test
