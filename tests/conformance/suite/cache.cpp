// SPDX-License-Identifier: MIT
//
// Group cache: stored bytes, reading and writing, copying, poison, resizing, reuse of pages. Moving is in
// cache_move.cpp.
#include <cmath>

#include "suite/cache_world.h"

namespace kvasir::conformance {
namespace {

// Keys and values, each as wide as the input row, stored through KV_STORE from rows given as embeddings.
void store_rows(const CacheWorld& world, const testing::CacheSpec& spec, kvb_cache* cache,
                const std::vector<float>& rows, const std::vector<uint32_t>& pages) {
  const uint32_t width = spec.groups[0].kv_heads * spec.groups[0].k_dim;
  ProgramBuilder builder;
  const uint32_t x = builder.tokens(width);
  builder.op(KVB_OP_EMBED, {}, {x});
  builder.op(KVB_OP_KV_STORE, {x, x}, {}, {0});
  builder.op(KVB_OP_SELECT_ROWS, {x}, {builder.output(width)});
  const TestProgram program(world.device, builder, spec);
  TestSequence sequence{0, {pages}};
  StepData step;
  std::vector<int32_t> ids;
  for (auto row = rows.begin(); row != rows.end(); row += width) ids.push_back(step.embed({row, row + width}));
  step.append(sequence, ids);
  testing::run_step(world.device, world.queue.get(), program, cache, step);
}

// Rows that are hard to round: zeros, values beyond and below every type, ties, signs, NaN and infinity in one head.
std::vector<float> hard_rows(uint32_t rows, uint32_t width, std::mt19937& random) {
  const float inf = HUGE_VALF, nan = std::nanf("");
  const float special[] = {0,      -0.0f,  1e-8f,          -6e-8f, 1e5f, -7e4f,   65504, 65519.9f, 65520, 3e38f,
                           -1e30f, 1e-40f, 1.00048828125f, 0.5f,   127,  -127.5f, 8,     -8,       7.5f,  1e-45f};
  std::vector<float> data(size_t{rows} * width);
  std::normal_distribution<float> value;
  for (uint32_t row = 0; row < rows; ++row) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 60) - 30);
    for (uint32_t i = 0; i < width; ++i) {
      float& x = data[size_t{row} * width + i];
      x = value(random) * scale;
      if (row % 4 == 1) x = special[random() % std::size(special)];
      if (row % 4 == 2) x = row == 2 ? 0 : std::nearbyint(value(random) * 4) * 0.5f;
    }
    if (row == 3) data[size_t{row} * width + width / 2] = nan;
    if (row == 7) data[size_t{row} * width] = -inf;
  }
  return data;
}

// A backend may store any NaN for a NaN.
bool same_stored(uint32_t type, const Bytes& actual, const Bytes& wanted, uint32_t width) {
  if (actual == wanted) return true;
  if (block_elements(type) != 1) return false;
  const std::vector<float> a = dequantize_head(type, actual.data(), width);
  const std::vector<float> w = dequantize_head(type, wanted.data(), width);
  for (uint32_t i = 0; i < width; ++i) {
    const size_t bytes = block_bytes(type);
    if (std::isnan(a[i]) && std::isnan(w[i])) continue;
    if (std::memcmp(&actual[i * bytes], &wanted[i * bytes], bytes) != 0) return false;
  }
  return true;
}

void stored_bytes(Subject& subject, uint32_t type) {
  TestHost host;
  CacheWorld world(subject, host, type, type);
  for (const uint32_t dim : {32u, 40u, 64u, 128u}) {
    const kvb_cache_group group{type, type, 2, dim, dim, 0, world.tokens, 0};
    const testing::CacheSpec spec = testing::one_group(1, group);
    const uint32_t pages = (16 + world.tokens - 1) / world.tokens;
    const Owned<kvb_cache> cache = testing::make_cache(world.device, world.queue.get(), spec, {pages});
    std::vector<uint32_t> table;
    for (uint32_t page = pages; page-- > 0;) table.push_back(page);
    const std::vector<float> rows = hard_rows(16, 2 * dim, world.random);
    store_rows(world, spec, cache.get(), rows, table);
    const size_t head_bytes = quantize_head(type, rows.data(), dim).size();
    for (uint32_t position = 0; position < 16; ++position) {
      for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
        Bytes bytes(2 * head_bytes);
        const kvb_cache_rows one =
            CacheWorld::rows_of(0, what, KVB_FORMAT_STORED, table[position / world.tokens], position % world.tokens, 1);
        succeeds("cache_read_rows", [&](kv_error* e) {
          return world.api().cache_read_rows(world.queue.get(), cache.get(), &one, bytes.data(), bytes.size(), e);
        });
        for (uint32_t head = 0; head < 2; ++head) {
          const Bytes wanted = quantize_head(type, &rows[(size_t{position} * 2 + head) * dim], dim);
          const Bytes actual(bytes.begin() + static_cast<std::ptrdiff_t>(head * head_bytes),
                             bytes.begin() + static_cast<std::ptrdiff_t>((head + 1) * head_bytes));
          check(same_stored(type, actual, wanted, dim), std::string(what == KVB_ROWS_K ? "keys" : "values") +
                                                            " of position " + std::to_string(position) + ", head " +
                                                            std::to_string(head) + " of " + std::to_string(dim) +
                                                            " elements are stored as other bytes");
        }
      }
    }
  }
}

void read_and_write(Subject& subject, uint32_t type) {
  TestHost host;
  CacheWorld world(subject, host, type, type);
  world.fill();
  world.expect_content("rows as they were written");
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
      for (uint32_t first = 0; first < world.tokens; first += std::max(1u, world.tokens / 3)) {
        const uint32_t count = world.tokens - first;
        const Bytes& page = world.content[layer][what - 1][2];
        const Bytes part(page.begin() + static_cast<std::ptrdiff_t>(first * world.row_bytes(what)), page.end());
        check(world.read(layer, what, 2, first, count) == part, "a part of a page reads as other bytes");
        same_bits(world.read_f32(layer, what, 2, first, count), world.dequantize(what, part), "rows as f32");
      }
    }
  }
  // One row in the middle; everything else stays.
  const Bytes row = world.quantize(KVB_ROWS_V, world.random_rows(KVB_ROWS_V, 1));
  world.write(2, KVB_ROWS_V, 1, world.tokens / 2, row);
  std::copy(row.begin(), row.end(),
            world.content[2][1][1].begin() + static_cast<std::ptrdiff_t>(world.tokens / 2 * row.size()));
  world.expect_content("after one row was written");
}

void copy_rows(Subject& subject, uint32_t type) {
  TestHost host;
  CacheWorld world(subject, host, type, type);
  world.fill();
  const auto copy = [&](uint32_t group, uint32_t from, uint32_t to, uint32_t first, uint32_t count) {
    succeeds("cache_copy_rows", [&](kv_error* e) {
      return world.api().cache_copy_rows(world.queue.get(), world.cache.get(), group, from, to, first, count, e);
    });
    for (const uint32_t layer : {0u, 1u, 2u}) {
      if ((layer == 1) != (group == 1)) continue;
      for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
        const size_t bytes = world.row_bytes(what);
        const Bytes& source = world.content[layer][what - 1][from];
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(first * bytes), count * bytes,
                    world.content[layer][what - 1][to].begin() + static_cast<std::ptrdiff_t>(first * bytes));
      }
    }
  };
  copy(0, 0, 3, 0, world.tokens);
  world.expect_content("after a page was copied");
  if (world.tokens > 2) copy(0, 1, 2, 1, world.tokens - 2);
  copy(1, 2, 0, world.tokens - 1, 1);
  copy(0, 1, 1, 0, world.tokens);
  copy(0, 1, 0, 0, 0);
  world.expect_content("after rows were copied");
}

void poison(Subject& subject, uint32_t type) {
  TestHost host;
  CacheWorld world(subject, host, type, type);
  world.fill();
  succeeds("cache_poison_page",
           [&](kv_error* e) { return world.api().cache_poison_page(world.queue.get(), world.cache.get(), 0, 1, e); });
  for (const uint32_t layer : {0u, 2u}) {
    for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
      for (const float value : world.read_f32(layer, what, 1, 0, world.tokens)) {
        check(std::isnan(value), "a poisoned page reads as " + std::to_string(value));
      }
      world.content[layer][what - 1][1] = world.quantize(what, world.random_rows(what, world.tokens));
      world.write(layer, what, 1, 0, world.content[layer][what - 1][1]);
    }
  }
  world.expect_content("after a poisoned page was written again");
}

void resize_keeps_content(Subject& subject) {
  TestHost host;
  const uint32_t type = plain_cache_type(subject.open(host));
  CacheWorld world(subject, host, type, type);
  world.fill();
  const auto resize = [&](uint32_t first, uint32_t second) {
    const uint32_t counts[2] = {first, second};
    succeeds("cache_resize",
             [&](kv_error* e) { return world.api().cache_resize(world.queue.get(), world.cache.get(), counts, e); });
  };
  resize(9, CacheWorld::kPages);
  world.expect_content("after one group grew");
  resize(9, 200);
  world.expect_content("after the other group grew");
  resize(2, 3);
  world.expect_content("after both shrank", 2);
  float value = 0;
  const kvb_cache_rows gone = CacheWorld::rows_of(0, KVB_ROWS_K, KVB_FORMAT_F32, 2, 0, 1);
  refuses("reading a page that is gone", {KV_INVALID_ARGUMENT}, [&](kv_error* e) {
    return world.api().cache_read_rows(world.queue.get(), world.cache.get(), &gone, &value,
                                       CacheWorld::width(KVB_ROWS_K) * sizeof(float), e);
  });
  resize(CacheWorld::kPages, CacheWorld::kPages);
  world.expect_content("after both grew again", 2);
  resize(0, 0);
  resize(CacheWorld::kPages, CacheWorld::kPages);
  world.fill();
  world.expect_content("after a cache was emptied and filled");
}

void resize_all_or_nothing(Subject& subject) {
  TestHost host;
  const uint32_t type = plain_cache_type(subject.open(host));
  CacheWorld world(subject, host, type, type);
  world.fill();
  const uint64_t live = host.live_bytes;
  const uint32_t more[2] = {CacheWorld::kPages + 3, CacheWorld::kPages + 2};
  for (int64_t calls = 0; calls < 1000; ++calls) {
    host.calls_until_failure = calls;
    kv_error error{};
    const kv_status status = world.api().cache_resize(world.queue.get(), world.cache.get(), more, &error);
    host.calls_until_failure = -1;
    if (status == KV_OK) break;
    check(status == KV_OUT_OF_MEMORY && error.message[0] != '\0', status_text(status) + " when memory was short");
    check(host.live_bytes == live, "a failed resize keeps memory");
    std::vector<float> row(CacheWorld::width(KVB_ROWS_K));
    for (const uint32_t layer : {0u, 1u}) {
      const kvb_cache_rows beyond = CacheWorld::rows_of(layer, KVB_ROWS_K, KVB_FORMAT_F32, CacheWorld::kPages, 0, 1);
      refuses("reading a page that a failed resize did not make", {KV_INVALID_ARGUMENT}, [&](kv_error* e) {
        return world.api().cache_read_rows(world.queue.get(), world.cache.get(), &beyond, row.data(),
                                           row.size() * sizeof(float), e);
      });
    }
    world.expect_content("after a failed resize");
  }
  world.expect_content("after the resize that succeeded");
}

// A sequence taken back by two tokens and continued otherwise equals one that was never longer.
void rewind_and_rewrite(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const auto feed = [&](TestSequence& sequence, const std::vector<int32_t>& ids) {
    StepData step;
    step.append(sequence, ids);
    return testing::run_step(world.device, world.queue.get(), *world.program, world.cache.get(), step);
  };
  TestSequence straight{0, {{0, 1, 2}, {0, 1, 2}}}, back{0, {{3, 4, 5}, {3, 4, 5}}};
  feed(straight, {1, 2, 3});
  const std::vector<float> wanted = feed(straight, {7});
  feed(back, {1, 2, 3, 4, 5});
  back.length = 3;
  same_bits(feed(back, {7}), wanted, "a sequence that was taken back");
}

// Pages of an ended sequence serve another one, with nothing of the first in its results.
void page_reuse(Subject& subject) {
  TestHost host;
  SmallWorld world(subject, host);
  const auto run = [&](std::vector<uint32_t> first_group, std::vector<uint32_t> second_group,
                       const std::vector<int32_t>& ids) {
    TestSequence sequence{0, {std::move(first_group), std::move(second_group)}};
    StepData step;
    step.append(sequence, ids, true);
    return testing::run_step(world.device, world.queue.get(), *world.program, world.cache.get(), step);
  };
  const std::vector<float> wanted = run({0, 1}, {0, 1}, {3, 1, 4});
  run({2, 3}, {3, 2}, {9, 9, 9, 9, 9, 9, 9});
  same_bits(run({3, 2}, {2, 3}, {3, 1, 4}), wanted, "a sequence in used pages");
}

void refusals(Subject& subject) {
  TestHost host;
  const uint32_t type = plain_cache_type(subject.open(host));
  CacheWorld world(subject, host, type, type);
  world.fill();
  const kvb_api& api = world.api();
  kvb_queue* queue = world.queue.get();
  kvb_cache* cache = world.cache.get();
  const uint32_t t = world.tokens, pages = CacheWorld::kPages;
  const auto copy = [&](const char* what, uint32_t group, uint32_t from, uint32_t to, uint32_t first, uint32_t count) {
    refuses(std::string("cache_copy_rows with ") + what, {KV_INVALID_ARGUMENT},
            [&](kv_error* e) { return api.cache_copy_rows(queue, cache, group, from, to, first, count, e); });
  };
  copy("group 2 of 2", 2, 0, 1, 0, 1);
  copy("a source page that is not there", 0, pages, 1, 0, 1);
  copy("a target page that is not there", 0, 0, KVB_NONE, 0, 1);
  copy("rows beyond the page", 0, 0, 1, t, 1);
  copy("too many rows", 0, 0, 1, 1, t);
  copy("a count that overflows", 0, 0, 1, 1, UINT32_MAX);
  refuses("cache_poison_page of group 2", {KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return api.cache_poison_page(queue, cache, 2, 0, e); });
  refuses("cache_poison_page of a page that is not there", {KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return api.cache_poison_page(queue, cache, 0, pages, e); });
  refuses("cache_resize without counts", {KV_INVALID_ARGUMENT},
          [&](kv_error* e) { return api.cache_resize(queue, cache, nullptr, e); });

  Bytes bytes(world.row_bytes(KVB_ROWS_K) + 8, 0x77);
  const kvb_cache_rows good = CacheWorld::rows_of(0, KVB_ROWS_K, KVB_FORMAT_STORED, 0, 0, 1);
  const uint64_t size = world.row_bytes(KVB_ROWS_K);
  const auto both = [&](const char* what, kv_status status, void (*change)(kvb_cache_rows&, uint64_t&, const void*&)) {
    kvb_cache_rows rows = good;
    uint64_t length = size;
    const void* data = bytes.data();
    change(rows, length, data);
    refuses(std::string("cache_read_rows with ") + what, {status},
            [&](kv_error* e) { return api.cache_read_rows(queue, cache, &rows, const_cast<void*>(data), length, e); });
    refuses(std::string("cache_write_rows with ") + what, {status},
            [&](kv_error* e) { return api.cache_write_rows(queue, cache, &rows, data, length, e); });
  };
  both("layer 3 of 3", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.layer = 3; });
  both("neither keys nor values", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.what = 3; });
  both("an unknown format", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.format = 7; });
  both("a page that is not there", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.page = KVB_NONE; });
  both("a first row beyond the page", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.first = UINT32_MAX; });
  both("too many rows", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.count = UINT32_MAX; });
  both("a reserved field", KV_UNSUPPORTED, [](auto& r, auto&, auto&) { r.reserved = 1; });
  both("struct_size 0", KV_INVALID_ARGUMENT, [](auto& r, auto&, auto&) { r.struct_size = 0; });
  both("a byte too few", KV_INVALID_ARGUMENT, [](auto&, uint64_t& length, auto&) { --length; });
  both("a byte too many", KV_INVALID_ARGUMENT, [](auto&, uint64_t& length, auto&) { ++length; });
  both("data NULL", KV_INVALID_ARGUMENT, [](auto&, auto&, const void*& data) { data = nullptr; });
  kvb_cache_rows wide = good;
  wide.format = KVB_FORMAT_F32;
  const std::vector<float> row(CacheWorld::width(KVB_ROWS_K));
  refuses("cache_write_rows of f32", {KV_INVALID_ARGUMENT, KV_UNSUPPORTED}, [&](kv_error* e) {
    return api.cache_write_rows(queue, cache, &wide, row.data(), row.size() * sizeof(float), e);
  });
  check(std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0x77; }),
        "a refused read wrote its result");
  world.expect_content("after refused calls");
}

void bad_descriptions(Subject& subject) {
  TestHost host;
  const TestDevice device = subject.open(host);
  const kvb_cache_group good = small_cache(device).groups[0];
  const auto refused = [&](const char* what, std::initializer_list<kv_status> status, auto change) {
    testing::CacheSpec spec{{good, good}, {0, 1}};
    kvb_cache_desc desc = spec.desc();
    change(spec, desc);
    kvb_cache* cache = nullptr;
    refuses(std::string("cache_create with ") + what, status,
            [&](kv_error* e) { return device.api->cache_create(device.get(), &desc, &cache, e); });
    check(cache == nullptr, std::string("cache_create with ") + what + " wrote its result");
  };
  refused("keys of an unknown type", {KV_UNSUPPORTED}, [](auto& s, auto&) { s.groups[0].k_type = 63; });
  refused("values of an unknown type", {KV_UNSUPPORTED}, [](auto& s, auto&) { s.groups[1].v_type = 0; });
  refused("no heads", {KV_INVALID_ARGUMENT}, [](auto& s, auto&) { s.groups[0].kv_heads = 0; });
  refused("keys of no elements", {KV_INVALID_ARGUMENT}, [](auto& s, auto&) { s.groups[0].k_dim = 0; });
  refused("pages of no tokens", {KV_INVALID_ARGUMENT, KV_UNSUPPORTED},
          [](auto& s, auto&) { s.groups[0].page_tokens = 0; });
  refused("pages of UINT32_MAX tokens", {KV_INVALID_ARGUMENT, KV_UNSUPPORTED},
          [](auto& s, auto&) { s.groups[0].page_tokens = UINT32_MAX; });
  refused("unknown flags", {KV_UNSUPPORTED}, [](auto& s, auto&) { s.groups[1].flags = 0x80; });
  refused("a layer in group 2 of 2", {KV_INVALID_ARGUMENT}, [](auto& s, auto&) { s.layer_group[1] = 2; });
  refused("layer_group NULL", {KV_INVALID_ARGUMENT}, [](auto&, auto& d) { d.layer_group = nullptr; });
  refused("groups NULL", {KV_INVALID_ARGUMENT}, [](auto&, auto& d) { d.groups = nullptr; });
  refused("a stride of 4", {KV_INVALID_ARGUMENT}, [](auto&, auto& d) { d.group_stride = 4; });
  refused("struct_size 0", {KV_INVALID_ARGUMENT}, [](auto&, auto& d) { d.struct_size = 0; });
}

}  // namespace

void add_cache_cases(std::vector<Case>& cases) {
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_Q4_0; ++type) {
    const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&, uint32_t)) {
      cases.push_back({std::string("cache/") + name + "/" + type_label(type), obligations, Profile::kFull,
                       [run, type](Subject& subject) { run(subject, type); }});
    };
    add("stored_bytes", "KVB-17", stored_bytes);
    add("read_and_write", "KVB-17", read_and_write);
    add("copy_rows", "KVB-17", copy_rows);
    add("poison", "KVB-16", poison);
  }
  const auto add = [&](const char* name, const char* obligations, void (*run)(Subject&)) {
    cases.push_back({std::string("cache/") + name, obligations, Profile::kCore, run});
  };
  add("resize_keeps_content", "KVB-15", resize_keeps_content);
  add("resize_all_or_nothing", "KVB-7 KVB-14 KVB-15", resize_all_or_nothing);
  add("rewind_and_rewrite", "KVB-16", rewind_and_rewrite);
  add("page_reuse", "KVB-16", page_reuse);
  add("refusals", "KVB-7 KVB-8 KVB-11", refusals);
  add("bad_descriptions", "KVB-7 KVB-8 KVB-11", bad_descriptions);
  add_cache_move_cases(cases);
}

}  // namespace kvasir::conformance
