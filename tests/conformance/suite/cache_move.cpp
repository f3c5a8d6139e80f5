// SPDX-License-Identifier: MIT
//
// Group cache, cache_move_rows: values and unrotated keys to the byte, rotated keys against double precision.
#include <cmath>

#include "reference/limits.h"
#include "suite/cache_world.h"

namespace kvasir::conformance {
namespace {

struct Rope {
  kvb_rope header;
  double frequency[20];  // as many as a head of 40 elements can turn
};

Rope make_rope(uint32_t pairing, uint32_t first, uint32_t pairs) {
  Rope rope{{pairing, first, pairs, 1.0f}, {}};
  for (uint32_t i = 0; i < pairs; ++i) rope.frequency[i] = std::pow(10000.0, -static_cast<double>(i) / pairs);
  return rope;
}

std::vector<double> turn(const Rope& rope, int32_t delta, const std::vector<float>& head) {
  std::vector<double> result(head.begin(), head.end());
  for (uint32_t i = 0; i < rope.header.pairs; ++i) {
    const bool adjacent = rope.header.pairing == KVB_ROPE_ADJACENT;
    const uint32_t a = rope.header.first + (adjacent ? 2 * i : i);
    const uint32_t b = adjacent ? a + 1 : a + rope.header.pairs;
    const double angle = delta * rope.frequency[i];
    result[a] = head[a] * std::cos(angle) - head[b] * std::sin(angle);
    result[b] = head[a] * std::sin(angle) + head[b] * std::cos(angle);
  }
  return result;
}

double limit_of_element(uint32_t type, const std::vector<double>& head, size_t i) {
  const size_t elements = block_elements(type), first = elements == 1 ? 0 : i / elements * elements;
  const size_t end = elements == 1 ? head.size() : std::min(head.size(), first + elements);
  double largest = 0;
  for (size_t j = first; j < end; ++j) largest = std::max(largest, std::fabs(head[j]));
  return moved_key_limit(type, head[i], largest);
}

struct MoveTest {
  CacheWorld& world;
  std::vector<kvb_cache_move> moves;
  Rope ropes[2];  // of layers 0 and 2
  bool rotated;

  void run() {
    const auto before = world.content;
    const kvb_rope* pointers[2] = {&ropes[0].header, nullptr};  // the second layer of the group is not rotated
    succeeds("cache_move_rows", [&](kv_error* e) {
      return world.api().cache_move_rows(world.queue.get(), world.cache.get(), 0, moves.data(),
                                         static_cast<uint32_t>(moves.size()), rotated ? pointers : nullptr, e);
    });
    for (const uint32_t layer : {0u, 2u}) {
      for (const uint32_t what : {KVB_ROWS_K, KVB_ROWS_V}) {
        for (const kvb_cache_move& move : moves) {
          for (uint32_t row = 0; row < move.count; ++row) expect_row(before, layer, what, move, row);
        }
      }
    }
    world.expect_content("after rows were moved");  // everything that was no target, too
  }

 private:
  Bytes row_of(const Bytes& page, uint32_t what, uint32_t row) const {
    const auto bytes = static_cast<std::ptrdiff_t>(world.row_bytes(what));
    return {page.begin() + bytes * row, page.begin() + bytes * (row + 1)};
  }

  // Compares one target row, and puts what is there into the world's content.
  void expect_row(const std::vector<std::vector<std::vector<Bytes>>>& before, uint32_t layer, uint32_t what,
                  const kvb_cache_move& move, uint32_t row) {
    const Bytes source = row_of(before[layer][what - 1][move.from_page], what, move.from_row + row);
    const Bytes target = world.read(layer, what, move.to_page, move.to_row + row, 1);
    const bool turned = rotated && layer == 0 && what == KVB_ROWS_K && move.delta != 0;
    const std::string where = "row " + std::to_string(move.to_row + row) + " of page " + std::to_string(move.to_page) +
                              ", layer " + std::to_string(layer);
    if (!turned) check(target == source, where + " has other bytes than the row it was moved from");
    if (turned) expect_turned(source, target, move.delta, where);
    Bytes& page = world.content[layer][what - 1][move.to_page];
    std::copy(target.begin(), target.end(),
              page.begin() + static_cast<std::ptrdiff_t>((move.to_row + row) * target.size()));
  }

  void expect_turned(const Bytes& source, const Bytes& target, int32_t delta, const std::string& where) const {
    const std::vector<float> from = world.dequantize(KVB_ROWS_K, source), to = world.dequantize(KVB_ROWS_K, target);
    for (uint32_t head = 0; head < CacheWorld::kHeads; ++head) {
      const auto start = from.begin() + head * CacheWorld::kKeyDim;
      const std::vector<double> wanted = turn(ropes[0], delta, {start, start + CacheWorld::kKeyDim});
      for (uint32_t i = 0; i < CacheWorld::kKeyDim; ++i) {
        const double actual = to[head * CacheWorld::kKeyDim + i];
        check(std::fabs(actual - wanted[i]) <= limit_of_element(world.type(KVB_ROWS_K), wanted, i),
              where + ": element " + std::to_string(i) + " of head " + std::to_string(head) + " is " +
                  std::to_string(actual) + " after a turn by " + std::to_string(delta) + ", it should be " +
                  std::to_string(wanted[i]));
      }
    }
  }
};

void require_move(const CacheWorld& world) {
  if (world.api().cache_move_rows == nullptr) throw Unsupported("the backend does not move rows");
}

void move(Subject& subject, uint32_t type, bool rotated, uint32_t pairing) {
  TestHost host;
  CacheWorld world(subject, host, type, type, 8);
  require_move(world);
  if (world.tokens < 8) throw Unsupported("pages of less than 8 tokens");
  const Rope rope = pairing == KVB_ROPE_HALVES ? make_rope(pairing, 0, 20) : make_rope(pairing, 4, 9);
  const auto run = [&](std::vector<kvb_cache_move> moves) {
    world.fill();
    MoveTest{world, std::move(moves), {rope, rope}, rotated}.run();
  };
  run({{0, 2, 1, 3, 4, 5}});                             // to another page
  run({{0, 3, 0, 1, 5, -2}});                            // down, overlapping itself
  run({{0, 0, 0, 2, 6, 2}});                             // up, overlapping itself
  run({{0, 0, 1, 0, 8, 1000}, {1, 0, 0, 0, 8, -1000}});  // two pages change places
  run({{0, 7, 2, 0, 1, -7}, {1, 0, 2, 1, 7, 0}, {2, 0, 3, 0, 8, -8}, {3, 5, 0, 1, 3, 123456}});  // mixed, in a chain
  run({});
  run({{0, 0, 1, 0, 0, 3}});
}

void move_refusals(Subject& subject) {
  TestHost host;
  const uint32_t type = plain_cache_type(subject.open(host));
  CacheWorld world(subject, host, type, type);
  require_move(world);
  world.fill();
  const uint32_t t = world.tokens, pages = CacheWorld::kPages;
  const auto refused = [&](const char* what, uint32_t group, kvb_cache_move one, const Rope* rope) {
    const kvb_rope* pointers[2] = {rope == nullptr ? nullptr : &rope->header, nullptr};
    refuses(std::string("cache_move_rows with ") + what, {KV_INVALID_ARGUMENT, KV_UNSUPPORTED}, [&](kv_error* e) {
      return world.api().cache_move_rows(world.queue.get(), world.cache.get(), group, &one, 1,
                                         rope == nullptr ? nullptr : pointers, e);
    });
  };
  refused("group 2 of 2", 2, {0, 0, 1, 0, 1, 0}, nullptr);
  refused("a source page that is not there", 0, {pages, 0, 1, 0, 1, 0}, nullptr);
  refused("a target page that is not there", 0, {0, 0, pages, 0, 1, 0}, nullptr);
  refused("source rows beyond the page", 0, {0, t, 1, 0, 1, 0}, nullptr);
  refused("target rows beyond the page", 0, {0, 0, 1, t, 1, 0}, nullptr);
  refused("a count that overflows", 0, {0, 1, 1, 1, UINT32_MAX, 0}, nullptr);
  const Rope unknown = make_rope(9, 0, 4);
  refused("an unknown pairing", 0, {0, 0, 1, 0, 1, 1}, &unknown);
  Rope wide = make_rope(KVB_ROPE_HALVES, 0, 20);
  wide.header.first = 2;
  refused("pairs beyond the head", 0, {0, 0, 1, 0, 1, 1}, &wide);
  refuses("cache_move_rows with moves NULL", {KV_INVALID_ARGUMENT}, [&](kv_error* e) {
    return world.api().cache_move_rows(world.queue.get(), world.cache.get(), 0, nullptr, 1, nullptr, e);
  });
  world.expect_content("after refused moves");
}

void move_failing_allocator(Subject& subject) {
  TestHost host;
  const uint32_t type = plain_cache_type(subject.open(host));
  CacheWorld world(subject, host, type, type);
  require_move(world);
  world.fill();
  const kvb_cache_move moves[2] = {{0, 0, 1, 0, world.tokens, 3}, {1, 0, 0, 0, world.tokens, -3}};
  for (int64_t calls = 0; calls < 1000; ++calls) {
    host.calls_until_failure = calls;
    kv_error error{};
    const kv_status status =
        world.api().cache_move_rows(world.queue.get(), world.cache.get(), 0, moves, 2, nullptr, &error);
    host.calls_until_failure = -1;
    if (status == KV_OK) return;
    check(status == KV_OUT_OF_MEMORY && error.message[0] != '\0', status_text(status) + " when memory was short");
    world.expect_content("after a move that failed");
  }
}

}  // namespace

void add_cache_move_cases(std::vector<Case>& cases) {
  for (uint32_t type = KV_TYPE_F32; type <= KV_TYPE_Q4_0; ++type) {
    const auto add = [&](const char* name, bool rotated, uint32_t pairing) {
      cases.push_back({std::string("cache/") + name + "/" + type_label(type), "KVB-17 KVB-19", Profile::kFull,
                       [=](Subject& subject) { move(subject, type, rotated, pairing); }});
    };
    add("move_rows", false, KVB_ROPE_HALVES);
    add("move_rotated_halves", true, KVB_ROPE_HALVES);
    add("move_rotated_adjacent", true, KVB_ROPE_ADJACENT);
  }
  cases.push_back({"cache/move_refusals", "KVB-7 KVB-11", Profile::kFull, move_refusals});
  cases.push_back({"cache/move_failing_allocator", "KVB-7 KVB-14", Profile::kFull, move_failing_allocator});
}

}  // namespace kvasir::conformance
