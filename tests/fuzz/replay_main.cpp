// SPDX-License-Identifier: MIT
//
// Replays files through a fuzz target without libFuzzer: every file below the given folders (or each given file) once,
// its prefixes at a few lengths, and, where the target has a mutator of its own, a fixed number of mutations of it. For
// compilers that have no libFuzzer, and to look at a single crash in a debugger.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& place) {
  if (!fs::is_directory(place)) return {place};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(place)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Copies the input to a block of exactly its size, so that a sanitizer sees one byte past the end.
void run_one(const std::vector<uint8_t>& bytes, size_t size) {
  const std::vector<uint8_t> exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

// A chain of mutations that begins anew every few steps.
void run_mutations(const std::vector<uint8_t>& bytes) {
  constexpr unsigned kMutations = 100;
  constexpr unsigned kChain = 4;
  const size_t most = 2 * bytes.size() + 1024;
  std::vector<uint8_t> mutated;
  size_t size = 0;
  for (unsigned i = 0; i < kMutations; ++i) {
    if (i % kChain == 0) {
      mutated = bytes;
      mutated.resize(most);
      size = bytes.size();
    }
    size = LLVMFuzzerCustomMutator(mutated.data(), size, most, i);
    run_one(mutated, size);
  }
}

bool replay(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", file.c_str());
    return false;
  }
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  constexpr size_t kPrefixes = 64;
  for (size_t i = 0; i < kPrefixes; ++i) run_one(bytes, bytes.size() * i / kPrefixes);
  run_one(bytes, bytes.size());
  if (LLVMFuzzerCustomMutator != nullptr) run_mutations(bytes);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : files_below(argv[i])) {
      if (!replay(file)) return 1;
      ++count;
    }
  }
  std::printf("replayed %zu files\n", count);
  return count > 0 ? 0 : 1;
}
