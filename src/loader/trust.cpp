// SPDX-License-Identifier: MIT
#include "loader/trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <system_error>

namespace kvasir {
namespace {

constexpr uid_t kRoot = 0;

struct Standard {
  uid_t user;           // the effective user
  uid_t library_owner;  // of the library's directory, where that counts; otherwise root
  bool open_to_all;     // the library itself lies where everybody may replace it
};

Status status_of_errno(int code, const char* what, const std::string& path) {
  const std::string text = std::generic_category().message(code);
  kv_status status = code == ENOENT || code == ENOTDIR ? KV_NOT_FOUND : KV_IO;
  if (is_shortage(code)) status = KV_OUT_OF_MEMORY;
  return Status::error(status, "%s '%.250s': %s", what, path.c_str(), text.c_str());
}

bool lies_below(const std::string& path, std::string_view directory) {
  if (directory.empty()) return false;
  if (directory == "/") return true;
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

Status judge_element(const std::string& element, const struct stat& facts, const Standard& standard) {
  const uid_t owner = facts.st_uid;
  KV_CHECK(owner == kRoot || owner == standard.user || owner == standard.library_owner, KV_DENIED,
           "'%.250s' is not trusted: it belongs to user %u, neither to root nor to user %u", element.c_str(),
           static_cast<unsigned>(owner), static_cast<unsigned>(standard.user));
  KV_CHECK((facts.st_mode & S_IWOTH) == 0 || standard.open_to_all, KV_DENIED,
           "'%.250s' is not trusted: everybody may write to it (mode %04o)", element.c_str(),
           static_cast<unsigned>(facts.st_mode & 07777));
  return {};
}

Status facts_about(const std::string& path, struct stat* out) {
  if (lstat(path.c_str(), out) != 0) return status_of_errno(errno, "cannot examine", path);
  return {};
}

Status standard_for(const std::string& real_path, std::string_view library_directory, Standard* out, size_t* first) {
  *out = {geteuid(), kRoot, false};
  *first = 0;
  if (!lies_below(real_path, library_directory)) return {};
  struct stat facts;
  KV_RETURN_IF_ERROR(facts_about(std::string(library_directory), &facts));
  out->library_owner = facts.st_uid;
  out->open_to_all = (facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0;
  *first = library_directory == "/" ? 1 : library_directory.size() + 1;
  return {};
}

}  // namespace

bool is_shortage(int error) { return error == ENOMEM || error == EMFILE || error == ENFILE; }

Status resolve_path(const std::string& path, std::string* out) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path.c_str(), nullptr), std::free);
  if (!resolved) return status_of_errno(errno, "cannot find", path);
  *out = resolved.get();
  return {};
}

Status check_trust(const std::string& real_path, std::string_view library_directory, std::string* warning) {
  struct stat facts;
  KV_RETURN_IF_ERROR(facts_about(real_path, &facts));
  KV_CHECK(S_ISREG(facts.st_mode), KV_INVALID_ARGUMENT, "'%.250s' is not a regular file", real_path.c_str());
  Standard standard;
  size_t position = 0;  // one past the slash before the element that comes next
  KV_RETURN_IF_ERROR(standard_for(real_path, library_directory, &standard, &position));

  std::string group_writable;
  for (bool last = false; !last;) {
    const size_t slash = position == 0 ? 0 : real_path.find('/', position);
    last = slash == std::string::npos;
    const std::string element = slash == 0 ? "/" : real_path.substr(0, slash);
    KV_RETURN_IF_ERROR(facts_about(element, &facts));
    // Resolved paths have no links: this one was put there a moment ago.
    KV_CHECK(last || S_ISDIR(facts.st_mode), KV_DENIED, "'%.250s' is not a directory any more", element.c_str());
    KV_RETURN_IF_ERROR(judge_element(element, facts, standard));
    if ((facts.st_mode & S_IWGRP) != 0 && group_writable.empty()) group_writable = element;
    position = slash + 1;
  }
  if (!group_writable.empty()) *warning = "'" + group_writable + "' may be written by its group";
  return {};
}

}  // namespace kvasir
