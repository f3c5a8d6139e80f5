// SPDX-License-Identifier: MIT
//
// Reading /proc/meminfo, /proc/cpuinfo, /proc/self/cgroup and the limits of cgroup versions 1 and 2. A file that is
// absent or does not parse means "no limit".
#include "machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace kvasir::cpu {
namespace {

struct FileCloser {
  void operator()(FILE* file) const { std::fclose(file); }
};

// The first `limit` bytes of a file, or nothing.
std::string read_text(const std::string& path, size_t limit = 64 * 1024) {
  const std::unique_ptr<FILE, FileCloser> file(std::fopen(path.c_str(), "re"));
  if (!file) return {};
  std::string text(limit, '\0');
  text.resize(std::fread(text.data(), 1, limit, file.get()));
  return text;
}

// The number at the start of `text` after blanks.
std::optional<uint64_t> leading_number(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const auto result = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

// What follows `key` at the start of a line, up to the line's end.
std::optional<std::string_view> line_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key)) return line.substr(key.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

// The folders that may limit this process for a controller: the cgroup of the process and its ancestors, innermost
// first. Version 2 has one tree ("0::/path"), version 1 one per controller ("4:cpu,cpuacct:/path").
struct CgroupFolders {
  std::vector<std::string> version2, version1;
};

void add_with_ancestors(std::vector<std::string>& out, const std::string& mount, std::string path) {
  for (;;) {
    out.push_back(mount + (path == "/" ? "" : path));
    const size_t slash = path.rfind('/');
    if (path.size() <= 1 || slash == std::string::npos) return;
    path.resize(std::max<size_t>(slash, 1));
  }
}

bool names_controller(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == controller) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

CgroupFolders cgroup_folders(const std::string& root, const std::string& controller) {
  CgroupFolders folders;
  const std::string text = read_text(root + "/proc/self/cgroup");
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty()) add_with_ancestors(folders.version2, root + "/sys/fs/cgroup", path);
    if (names_controller(controllers, controller))
      add_with_ancestors(folders.version1, root + "/sys/fs/cgroup/" + controller, path);
  }
  return folders;
}

uint32_t affinity_count() {
  for (size_t processors = 1024; processors <= 1u << 20; processors *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(processors),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(processors);
    if (sched_getaffinity(0, bytes, set.get()) == 0) return static_cast<uint32_t>(CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

// quota / period rounded up; "max 100000" and -1 are no limit.
std::optional<uint64_t> quota_processors(std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return (*quota - 1) / *period + 1;
}

std::optional<uint64_t> cpu_quota(const std::string& root) {
  std::optional<uint64_t> least;
  const auto note = [&](std::optional<uint64_t> found) {
    if (found && (!least || *found < *least)) least = found;
  };
  const CgroupFolders folders = cgroup_folders(root, "cpu");
  for (const std::string& folder : folders.version2) {
    const std::string text = read_text(folder + "/cpu.max");
    const size_t blank = text.find(' ');
    if (blank != std::string::npos)
      note(quota_processors(leading_number(text), leading_number(std::string_view(text).substr(blank))));
  }
  for (const std::string& folder : folders.version1)
    note(quota_processors(leading_number(read_text(folder + "/cpu.cfs_quota_us")),
                          leading_number(read_text(folder + "/cpu.cfs_period_us"))));
  return least;
}

void apply_limit(MachineMemory& memory, const std::string& limit_file, const std::string& usage_file) {
  const std::optional<uint64_t> limit = leading_number(read_text(limit_file));
  if (!limit || (memory.total != 0 && *limit >= memory.total)) return;
  const uint64_t used = leading_number(read_text(usage_file)).value_or(0);
  const uint64_t left = *limit - std::min(used, *limit);
  memory.available = memory.total == 0 ? left : std::min(memory.available, left);
  memory.total = *limit;
}

uint64_t kilobytes(std::string_view text, std::string_view key) {
  const std::optional<std::string_view> value = line_after(text, key);
  return value ? leading_number(*value).value_or(0) * 1024 : 0;
}

}  // namespace

uint32_t usable_processors(const std::string& root) {
  uint64_t count = std::max(1u, affinity_count());
  if (const std::optional<uint64_t> quota = cpu_quota(root)) count = std::min(count, std::max<uint64_t>(1, *quota));
  return static_cast<uint32_t>(count);
}

MachineMemory machine_memory(const std::string& root) {
  MachineMemory memory;
  const std::string info = read_text(root + "/proc/meminfo");
  memory.total = kilobytes(info, "MemTotal:");
  memory.available = kilobytes(info, "MemAvailable:");
  const CgroupFolders folders = cgroup_folders(root, "memory");
  for (const std::string& folder : folders.version2)
    apply_limit(memory, folder + "/memory.max", folder + "/memory.current");
  for (const std::string& folder : folders.version1)
    apply_limit(memory, folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes");
  return memory;
}

std::string processor_name(const std::string& root) {
  const std::string info = read_text(root + "/proc/cpuinfo");
  const std::optional<std::string_view> line = line_after(info, "model name");
  if (!line) return "processor";
  const size_t start = line->find_first_not_of(" \t:");
  return start == std::string_view::npos ? "processor" : std::string(line->substr(start));
}

}  // namespace kvasir::cpu
