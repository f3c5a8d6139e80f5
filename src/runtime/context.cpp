// SPDX-License-Identifier: MIT
#include "runtime/context.h"

#include <algorithm>
#include <utility>

#include "runtime/cancel.h"

namespace kvasir {

namespace {
using ull = unsigned long long;
}

Context::Context(std::shared_ptr<Model> model, ContextPlan plan)
    : model_(std::move(model)),
      plan_(std::move(plan)),
      queue_(nothing(plan_.device->api().queue_destroy)),
      cache_(nothing(plan_.device->api().cache_destroy)),
      pages_(plan_.page_tokens) {}

Status Context::create(std::shared_ptr<Model> model, const kv_context_options& options, std::unique_ptr<Context>* out) {
  ContextPlan plan;
  KV_RETURN_IF_ERROR(plan_context(*model, options, &plan));
  LoadControl control;
  if (options.load != nullptr) {
    control = {options.load->progress, options.load->progress_user, stop_word(options.load->cancel)};
  }
  std::unique_ptr<Context> context(new Context(std::move(model), std::move(plan)));
  const Device& device = *context->plan_.device;
  const kvb_api& api = device.api();
  KV_RETURN_IF_ERROR(
      context->model_->weights_on(context->plan_.device, context->plan_.compute_mode, control, &context->weights_));

  kvb_queue_options queue_options = {};
  queue_options.struct_size = sizeof queue_options;
  queue_options.threads = context->plan_.threads;
  kvb_queue* queue = nullptr;
  KV_RETURN_IF_ERROR(
      backend_call([&](kv_error* error) { return api.queue_create(device.handle(), &queue_options, &queue, error); }));
  context->queue_.reset(queue);

  const kvb_cache_desc desc = context->plan_.cache_desc(*context->model_);
  kvb_cache* cache = nullptr;
  KV_RETURN_IF_ERROR(
      backend_call([&](kv_error* error) { return api.cache_create(device.handle(), &desc, &cache, error); }));
  context->cache_.reset(cache);

  for (const Bucket& bucket : context->plan_.buckets) {
    Program program;
    KV_RETURN_IF_ERROR(context->compile(bucket, 0, &program));
    context->programs_.push_back(std::move(program));
  }
  KV_RETURN_IF_ERROR(HostBlock::allocate(device.runtime().allocator(),
                                         size_t{context->plan_.max_sequences} * context->row_width() * sizeof(float),
                                         "output rows", &context->output_));
  kv_sequence first = 0;
  KV_RETURN_IF_ERROR(context->create_sequence(&first));
  *out = std::move(context);
  return {};
}

Status Context::compile(const Bucket& bucket, uint32_t flags, Program* out) const {
  kvb_program_desc desc = plan_.program_desc(*model_, bucket);
  desc.flags = flags;
  const kvb_cache_desc cache = plan_.cache_desc(*model_);
  const std::vector<kvb_weight*>& weights = weights_->handles();
  kvb_program* handle = nullptr;
  KV_RETURN_IF_ERROR(backend_call([&](kv_error* error) {
    return api().program_compile(plan_.device->handle(), &desc, &cache, weights.data(),
                                 static_cast<uint32_t>(weights.size()), &handle, error);
  }));
  out->max_tokens = bucket.max_tokens;
  out->max_outputs = bucket.max_outputs;
  out->handle = Owned<kvb_program>(handle, api().program_destroy);
  return {};
}

const Context::Program& Context::program_for(uint32_t tokens) const {
  if (trace_ != nullptr) return traced_;
  return *std::find_if(programs_.begin(), programs_.end(), [&](const Program& p) { return p.max_tokens >= tokens; });
}

void Context::info(kv_context_info* out) const {
  const Device& device = *plan_.device;
  out->page_tokens = plan_.page_tokens;
  out->backend = device.backend().c_str();
  out->device = device.name().c_str();
  out->variant = device.variant().c_str();
  out->choice = plan_.choice.c_str();
  out->max_tokens = plan_.max_tokens;
  const uint64_t used_pages = pages_.count() - pages_.free();
  out->free_tokens = std::min(plan_.max_tokens - pages_.rows(), (plan_.max_pages - used_pages) * plan_.page_tokens);
  out->k_type = plan_.groups.empty() ? 0 : plan_.groups[0].k_type;
  out->v_type = plan_.groups.empty() ? 0 : plan_.groups[0].v_type;
  out->compute_mode = plan_.compute_mode;
  out->deterministic = static_cast<uint32_t>(device.query(KVB_QUERY_DETERMINISTIC, 0));
  out->max_batch_tokens = plan_.max_batch_tokens;
  out->sequences = static_cast<uint32_t>(sequences_.size());
  out->row_width = row_width();
  out->threads = plan_.threads;
  out->cache_bytes = pages_.count() * plan_.page_bytes;
  out->weight_bytes = plan_.weight_bytes;
  out->scratch_bytes = plan_.scratch_bytes;
  out->tokens_computed = tokens_computed_;
  out->projections = 3 * uint64_t{model_->config().layers} * tokens_computed_;
  out->projections_avoided = projections_avoided_;
  out->pages_used = used_pages;
  out->pages_shared = pages_.shared();
}

Status Context::set_trace(kv_trace_fn trace, void* user) {
  KV_RETURN_IF_ERROR(alive());
  if (trace != nullptr && traced_.handle == nullptr) {
    KV_RETURN_IF_ERROR(compile(plan_.buckets.back(), KVB_PROGRAM_TRACE, &traced_));
  }
  trace_ = trace;
  trace_user_ = user;
  return {};
}

Status Context::read_rows(kv_sequence id, uint32_t layer, uint32_t what, uint64_t first, uint64_t count, float* out,
                          uint64_t floats) {
  KV_RETURN_IF_ERROR(alive());
  const Sequence* sequence = nullptr;
  KV_RETURN_IF_ERROR(std::as_const(*this).find(id, &sequence));
  const auto& layers = model_->program().layer_group;
  KV_CHECK(layer < layers.size(), KV_INVALID_ARGUMENT, "layer %u: the model has %zu", layer, layers.size());
  KV_CHECK(what == KV_CACHE_K || what == KV_CACHE_V, KV_INVALID_ARGUMENT, "rows of kind %u: KV_CACHE_K or KV_CACHE_V",
           what);
  const uint64_t held = sequence->tokens.size();
  KV_CHECK(first <= held && count <= held - first, KV_INVALID_ARGUMENT,
           "rows [%llu, %llu + %llu) of a sequence that holds %llu", ull{first}, ull{first}, ull{count}, ull{held});
  const kvb_cache_group& group = plan_.groups[layers[layer]];
  const uint64_t width = uint64_t{group.kv_heads} * (what == KV_CACHE_K ? group.k_dim : group.v_dim);
  KV_CHECK(count <= floats / width, KV_BUFFER_TOO_SMALL, "%llu rows of %llu floats do not fit a buffer of %llu floats",
           ull{count}, ull{width}, ull{floats});
  while (count > 0) {
    kvb_cache_rows rows = {};
    rows.struct_size = sizeof rows;
    rows.layer = layer;
    rows.what = what == KV_CACHE_K ? KVB_ROWS_K : KVB_ROWS_V;
    rows.format = KVB_FORMAT_F32;
    rows.page = sequence->pages[first / plan_.page_tokens];
    rows.first = static_cast<uint32_t>(first % plan_.page_tokens);
    rows.count = static_cast<uint32_t>(std::min<uint64_t>(count, plan_.page_tokens - rows.first));
    KV_RETURN_IF_ERROR(noted(backend_call([&](kv_error* error) {
      return api().cache_read_rows(queue_.get(), cache_.get(), &rows, out, rows.count * width * sizeof(float), error);
    })));
    out += rows.count * width;
    first += rows.count;
    count -= rows.count;
  }
  return {};
}

Status Context::alive() const {
  KV_CHECK(!lost_, KV_DEVICE_LOST, "the device %s was lost earlier; release the context", plan_.device->name().c_str());
  return {};
}

Status Context::noted(Status status) {
  if (status.code() == KV_DEVICE_LOST) lost_ = true;
  return status;
}

}  // namespace kvasir
