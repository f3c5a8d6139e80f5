// SPDX-License-Identifier: MIT
#include "loader/elf_file.h"

#include <elf.h>
#include <link.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/file.h"

namespace kvasir {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using SectionHeader = ElfW(Shdr);

constexpr unsigned char kOwnClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char kOwnOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
constexpr uint64_t kMostMemory = uint64_t{1} << 32;  // of one library in the address space

bool is_own_kind(const Header& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == kOwnClass &&
         header.e_ident[EI_DATA] == kOwnOrder && header.e_phentsize == sizeof(Segment);
}

// `what` of the library is bytes [offset, offset + bytes) of its file.
Status inside(const File& file, const char* what, uint64_t offset, uint64_t bytes) {
  KV_CHECK(range_fits(offset, bytes, file.size()), KV_CORRUPT,
           "'%.250s' is cut short or damaged: its %s is at %llu and has %llu bytes, the file has %llu",
           file.path().c_str(), what, static_cast<unsigned long long>(offset), static_cast<unsigned long long>(bytes),
           static_cast<unsigned long long>(file.size()));
  return {};
}

// Loaded segments rise and each one's file part is at most its memory; all of them fit kMostMemory.
Status check_segments(const File& file, const std::vector<Segment>& segments) {
  uint64_t end = 0;  // of the loaded segment before, in memory
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_NULL || segment.p_type == PT_GNU_STACK) continue;
    KV_RETURN_IF_ERROR(inside(file, "segment", segment.p_offset, segment.p_filesz));
    if (segment.p_type != PT_LOAD) continue;
    const bool sound = segment.p_filesz <= segment.p_memsz && segment.p_vaddr >= end &&
                       range_fits(segment.p_vaddr, segment.p_memsz, kMostMemory) &&
                       (segment.p_align <= 1 || std::has_single_bit(segment.p_align));
    KV_CHECK(sound, KV_CORRUPT, "'%.250s' is damaged: its segments in memory contradict each other",
             file.path().c_str());
    end = segment.p_vaddr + segment.p_memsz;
  }
  return {};
}

// What the system's loader reads by its address in memory: must come from the file, as one piece.
Status check_mapped(const File& file, const std::vector<Segment>& segments) {
  for (const Segment& part : segments) {
    if (part.p_type != PT_DYNAMIC && part.p_type != PT_TLS) continue;
    const uint64_t bytes = part.p_type == PT_DYNAMIC ? part.p_memsz : part.p_filesz;
    bool mapped = bytes == 0 && part.p_type != PT_DYNAMIC;
    for (const Segment& segment : segments) {
      if (segment.p_type != PT_LOAD || part.p_vaddr < segment.p_vaddr) continue;
      mapped = mapped || range_fits(part.p_vaddr - segment.p_vaddr, bytes, segment.p_filesz);
    }
    KV_CHECK(mapped && (part.p_type != PT_DYNAMIC || part.p_vaddr % alignof(ElfW(Dyn)) == 0), KV_CORRUPT,
             "'%.250s' is damaged: a part it is started with (type 0x%x) lies in no loaded segment",
             file.path().c_str(), static_cast<unsigned>(part.p_type));
  }
  return {};
}

}  // namespace

Status check_elf_file(const std::string& path) {
  File file;
  KV_RETURN_IF_ERROR(File::open(path, &file));
  Header header;
  if (file.size() < sizeof header) return {};
  KV_RETURN_IF_ERROR(file.read(0, &header, sizeof header));
  if (!is_own_kind(header)) return {};
  const uint64_t segment_bytes = uint64_t{header.e_phnum} * sizeof(Segment);
  KV_RETURN_IF_ERROR(inside(file, "list of segments", header.e_phoff, segment_bytes));
  if (header.e_shoff != 0) {
    const uint64_t section_bytes = uint64_t{header.e_shnum} * sizeof(SectionHeader);
    KV_RETURN_IF_ERROR(inside(file, "list of sections", header.e_shoff, section_bytes));
  }
  std::vector<Segment> segments(header.e_phnum);
  if (!segments.empty()) KV_RETURN_IF_ERROR(file.read(header.e_phoff, segments.data(), segment_bytes));
  KV_RETURN_IF_ERROR(check_segments(file, segments));
  return check_mapped(file, segments);
}

}  // namespace kvasir
