// SPDX-License-Identifier: MIT
//
// What the kvasir tool does with text from its command line and from files: sizes ("2GiB"), and bytes made printable.
#include "text.h"

#include "commands.h"
#include "fuzz/bytes.h"

namespace cli = kvasir::cli;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const uint64_t bytes = cli::parse_bytes(text.c_str());  // a command line has no zero bytes
    KV_REQUIRE(bytes <= uint64_t{9000000000000000000U});
    KV_REQUIRE(cli::parse_bytes(std::to_string(bytes >> 11 << 11)) <= bytes);
  } catch (const cli::UsageError& error) {
    KV_REQUIRE(std::string_view(error.what()).find("is not a size") != std::string_view::npos);
  }
  const std::string shown = cli::printable(text);
  KV_REQUIRE(shown.size() <= 4 * text.size());
  for (const char c : shown) KV_REQUIRE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  KV_REQUIRE(cli::display_width(shown) <= shown.size());
  return 0;
}
