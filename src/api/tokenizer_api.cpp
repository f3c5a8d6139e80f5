// SPDX-License-Identifier: MIT
#include "api/boundary.h"
#include "api/handles.h"

using kvasir::Status;
using kvasir::Vocabulary;
using kvasir::api::check_out;
using kvasir::api::copy_out;
using kvasir::api::copy_text;
using kvasir::api::guard;

namespace {

Status check_flags(const char* call, uint32_t flags, uint32_t known) {
  KV_CHECK((flags & ~known) == 0, KV_UNSUPPORTED, "%s: flags 0x%x are not known", call, flags & ~known);
  return {};
}

Status check_stream(const kv_text_stream* stream, const char** text, const size_t* length) {
  KV_CHECK(stream != nullptr, KV_INVALID_ARGUMENT, "stream is NULL");
  KV_CHECK(text != nullptr && length != nullptr, KV_INVALID_ARGUMENT, "%s is NULL",
           text == nullptr ? "text" : "length");
  return {};
}

}  // namespace

extern "C" {

const kv_tokenizer* kv_model_tokenizer(const kv_model* model) {
  if (model == nullptr || model->shared->tokenizer.tokenizer == nullptr) return nullptr;
  return &model->shared->tokenizer;
}

kv_status kv_tokenizer_get_info(const kv_tokenizer* tokenizer, kv_tokenizer_info* out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(tokenizer != nullptr, KV_INVALID_ARGUMENT, "tokenizer is NULL");
    KV_RETURN_IF_ERROR(check_out("kv_tokenizer_info", out));
    const Vocabulary& v = tokenizer->tokenizer->vocabulary();
    kv_tokenizer_info info = {};
    info.vocab = static_cast<uint32_t>(v.pieces.size());
    info.kind = v.model.c_str();
    info.pre = v.pre.c_str();
    info.bos = v.bos;
    info.eos = v.eos;
    info.eot = v.eot;
    info.unk = v.unk;
    info.add_bos = v.add_bos ? 1 : 0;
    info.add_eos = v.add_eos ? 1 : 0;
    copy_out(info, out);
    return {};
  });
}

kv_status kv_tokenize(const kv_tokenizer* tokenizer, const char* text, size_t length, uint32_t flags, int32_t* tokens,
                      size_t capacity, size_t* count, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(tokenizer != nullptr, KV_INVALID_ARGUMENT, "tokenizer is NULL");
    KV_CHECK(text != nullptr || length == 0, KV_INVALID_ARGUMENT, "text is NULL, its length %zu", length);
    KV_CHECK(tokens != nullptr || capacity == 0, KV_INVALID_ARGUMENT, "tokens is NULL, its capacity %zu", capacity);
    KV_CHECK(count != nullptr, KV_INVALID_ARGUMENT, "count is NULL");
    KV_RETURN_IF_ERROR(check_flags("kv_tokenize", flags, KV_TOKENIZE_ADD_SPECIAL | KV_TOKENIZE_PARSE_SPECIAL));
    std::vector<int32_t> ids;
    KV_RETURN_IF_ERROR(tokenizer->tokenizer->encode({text, length}, (flags & KV_TOKENIZE_ADD_SPECIAL) != 0,
                                                    (flags & KV_TOKENIZE_PARSE_SPECIAL) != 0, &ids));
    *count = ids.size();
    KV_CHECK(ids.size() <= capacity, KV_BUFFER_TOO_SMALL, "%zu tokens do not fit a buffer of %zu", ids.size(),
             capacity);
    std::copy(ids.begin(), ids.end(), tokens);
    return {};
  });
}

kv_status kv_token_text(const kv_tokenizer* tokenizer, int32_t token, uint32_t flags, char* text, size_t capacity,
                        size_t* length, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(tokenizer != nullptr, KV_INVALID_ARGUMENT, "tokenizer is NULL");
    KV_RETURN_IF_ERROR(check_flags("kv_token_text", flags, KV_TEXT_SPECIAL));
    std::string_view piece;
    KV_RETURN_IF_ERROR(tokenizer->tokenizer->piece(token, (flags & KV_TEXT_SPECIAL) != 0, &piece));
    return copy_text(piece, text, capacity, length);
  });
}

kv_status kv_detokenize(const kv_tokenizer* tokenizer, const int32_t* tokens, size_t count, uint32_t flags, char* text,
                        size_t capacity, size_t* length, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(tokenizer != nullptr, KV_INVALID_ARGUMENT, "tokenizer is NULL");
    KV_CHECK(tokens != nullptr || count == 0, KV_INVALID_ARGUMENT, "tokens is NULL, count %zu", count);
    KV_RETURN_IF_ERROR(check_flags("kv_detokenize", flags, KV_TEXT_SPECIAL));
    std::string all;
    KV_RETURN_IF_ERROR(tokenizer->tokenizer->decode({tokens, count}, (flags & KV_TEXT_SPECIAL) != 0, &all));
    return copy_text(all, text, capacity, length);
  });
}

int32_t kv_token_ends_generation(const kv_tokenizer* tokenizer, int32_t token) {
  return tokenizer != nullptr && tokenizer->tokenizer->is_end_of_generation(token) ? 1 : 0;
}

kv_status kv_text_stream_create(const kv_tokenizer* tokenizer, uint32_t flags, kv_text_stream** out, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_CHECK(tokenizer != nullptr, KV_INVALID_ARGUMENT, "tokenizer is NULL");
    KV_CHECK(out != nullptr, KV_INVALID_ARGUMENT, "out is NULL");
    KV_RETURN_IF_ERROR(check_flags("kv_text_stream_create", flags, KV_TEXT_SPECIAL));
    *out = new kv_text_stream{tokenizer->model.lock(),
                              kvasir::TextStream(*tokenizer->tokenizer, (flags & KV_TEXT_SPECIAL) != 0)};
    return {};
  });
}

kv_status kv_text_stream_push(kv_text_stream* stream, int32_t token, const char** text, size_t* length,
                              kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_RETURN_IF_ERROR(check_stream(stream, text, length));
    std::string_view chunk;
    KV_RETURN_IF_ERROR(stream->stream.push(token, &chunk));
    *text = chunk.data();
    *length = chunk.size();
    return {};
  });
}

kv_status kv_text_stream_flush(kv_text_stream* stream, const char** text, size_t* length, kv_error* error) {
  return guard(error, [&]() -> Status {
    KV_RETURN_IF_ERROR(check_stream(stream, text, length));
    const std::string_view rest = stream->stream.flush();
    *text = rest.data();
    *length = rest.size();
    return {};
  });
}

void kv_text_stream_release(kv_text_stream* stream) { delete stream; }

}  // extern "C"
