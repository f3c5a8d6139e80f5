// SPDX-License-Identifier: MIT
//
// What the opaque handles of kvasir.h are.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "kvasir/kvasir.h"
#include "runtime/context.h"
#include "runtime/model.h"
#include "runtime/runtime.h"
#include "runtime/sampler.h"
#include "text/stream.h"

struct kv_runtime {
  std::shared_ptr<kvasir::Runtime> runtime;
};

// Lives inside a model's shared part, so that it is valid while the model or a child of it lives.
struct kv_tokenizer {
  std::weak_ptr<kvasir::Model> model;
  const kvasir::Tokenizer* tokenizer = nullptr;
};

namespace kvasir::api {

// A model and what its handle hands out.
struct SharedModel {
  std::shared_ptr<Model> model;
  kv_tokenizer tokenizer;
};

}  // namespace kvasir::api

struct kv_model {
  std::shared_ptr<kvasir::api::SharedModel> shared;
};

struct kv_model_builder {
  std::shared_ptr<kvasir::Runtime> runtime;
  kvasir::ModelConfig config;
  kvasir::WeightsBuilder weights;
};

struct kv_context {
  std::shared_ptr<kvasir::api::SharedModel> model;  // keeps its tokenizer handle valid
  std::unique_ptr<kvasir::Context> context;
  std::vector<kvasir::Context::Result> results;  // of the last step: what borrowed messages point into
  mutable std::atomic<uint32_t> use{0};          // bits of kvasir::api::ContextUse
};

struct kv_text_stream {
  std::shared_ptr<kvasir::Model> model;
  kvasir::TextStream stream;
};

struct kv_sampler {
  std::unique_ptr<kvasir::Sampler> sampler;
};

struct kv_backend_report {
  std::vector<kvasir::CandidateReport> candidates;
};
