// SPDX-License-Identifier: MIT
//
// The numbers of the three examples. Attention alone: no norm, residual, output projection or feed-forward part, so
// what goes in and comes out are rows.
#include "worked_examples.h"

namespace kvasir::cli {
namespace {

Matrix identity(size_t dim, float scale) {
  Matrix m(dim, std::vector<float>(dim, 0.0F));
  for (size_t i = 0; i < dim; i++) m[i][i] = scale;
  return m;
}

// Tensors are [out, in]: the transpose of a matrix that acts as x W.
std::vector<float> transposed(const Matrix& w) {
  std::vector<float> out;
  for (size_t o = 0; o < w[0].size(); o++) {
    for (const std::vector<float>& row : w) out.push_back(row[o]);
  }
  return out;
}

const ExampleLayer& first_layer() {
  static const ExampleLayer layer = {identity(2, 1), {{1, 1}, {0, 1}}, identity(2, 2)};
  return layer;
}

}  // namespace

const WorkedExample& worked_example(int number) {
  static const Matrix three = {{1, 0}, {0, 1}, {1, 1}};
  static const Matrix four = {
      {1, 0.5F, 0.2F, 0.8F}, {0.3F, 1, 0.6F, 0.1F}, {0.7F, 0.4F, 1, 0.3F}, {0.5F, 0.9F, 0.3F, 0.6F}};
  static const WorkedExample examples[] = {
      {"three tokens, two numbers each", 1.0F, {first_layer()}, three},
      {"four tokens, four numbers each", 0.5F, {{identity(4, 0.5F), identity(4, 1), identity(4, 1)}}, four},
      {"two layers: the second reads what the first wrote",
       1.0F,
       {first_layer(), {identity(2, 1), {{0, 1}, {1, 0}}, {{1, 1}, {0, 1}}}},
       three}};
  return examples[number - 1];
}

ModelPtr build_example(kv_runtime* runtime, const WorkedExample& example) {
  const auto dim = static_cast<uint32_t>(example.tokens[0].size());
  auto config = sized<kv_model_config>();
  config.layers = static_cast<uint32_t>(example.layers.size());
  config.dim = dim;
  config.heads = 1;
  config.norm = KV_NORM_NONE;
  config.attention_scale = example.scale;
  config.no_residual = 1;
  config.no_output_projection = 1;
  const auto builder = make<BuilderPtr>(kv_model_builder_create, runtime, &config);
  for (size_t l = 0; l < example.layers.size(); l++) {
    const std::pair<const char*, const Matrix&> tensors[] = {
        {"attn_q", example.layers[l].q}, {"attn_k", example.layers[l].k}, {"attn_v", example.layers[l].v}};
    for (const auto& [name, matrix] : tensors) {
      const std::string full = "blk." + std::to_string(l) + "." + name + ".weight";
      const std::vector<float> data = transposed(matrix);
      call(kv_model_builder_add, builder.get(), full.c_str(), uint32_t{KV_TYPE_F32}, dim, dim, data.data(),
           data.size() * sizeof(float));
    }
  }
  return make<ModelPtr>(kv_model_builder_finish, builder.get());
}

}  // namespace kvasir::cli
