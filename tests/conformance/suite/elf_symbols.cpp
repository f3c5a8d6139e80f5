// SPDX-License-Identifier: MIT
//
// Reading the dynamic symbol table of an ELF file by its section headers. Every offset is checked against the file.
#include "suite/elf_symbols.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "suite/suite.h"

#if __has_include(<elf.h>)
#include <elf.h>
#endif

namespace kvasir::conformance {

#if __has_include(<elf.h>)

namespace {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    header_ = at<Elf64_Ehdr>(0);
    check(std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 && header_.e_ident[EI_CLASS] == ELFCLASS64,
          "'" + path + "' is no 64-bit ELF file");
  }

  std::vector<std::string> exported() const {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = this->section(i);
      if (section.sh_type != SHT_DYNSYM || section.sh_entsize < sizeof(Elf64_Sym)) continue;
      const auto strings = this->section(section.sh_link);
      for (uint64_t offset = 0; offset + section.sh_entsize <= section.sh_size; offset += section.sh_entsize) {
        const auto symbol = at<Elf64_Sym>(section.sh_offset + offset);
        if (is_exported(symbol)) names.push_back(text(strings.sh_offset + symbol.st_name));
      }
    }
    return names;
  }

 private:
  static bool is_exported(const Elf64_Sym& symbol) {
    const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
    return symbol.st_name != 0 && symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
  }

  Elf64_Shdr section(uint32_t index) const {
    return at<Elf64_Shdr>(header_.e_shoff + uint64_t{index} * header_.e_shentsize);
  }

  template <typename T>
  T at(uint64_t offset) const {
    check(offset <= bytes_.size() && sizeof(T) <= bytes_.size() - offset,
          "the file ends before byte " + std::to_string(offset));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  std::string text(uint64_t offset) const {
    check(offset < bytes_.size(), "a symbol's name lies outside the file");
    const char* start = bytes_.data() + offset;
    return {start, strnlen(start, bytes_.size() - static_cast<size_t>(offset))};
  }

  std::vector<char> bytes_;
  Elf64_Ehdr header_;
};

}  // namespace

std::vector<std::string> exported_symbols(const std::string& path) { return ElfFile(path).exported(); }

#else

std::vector<std::string> exported_symbols(const std::string&) {
  throw Unsupported("the symbols of a library can be read on ELF systems only");
}

#endif

}  // namespace kvasir::conformance
