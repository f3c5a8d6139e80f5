// SPDX-License-Identifier: MIT
//
// A seccomp filter around one call. A process that breaks it dies of SIGSYS; the handler passes the call's number on.
#include "suite/system_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <vector>

#include "suite/suite.h"

namespace kvasir::conformance {
namespace {

struct NamedCall {
  long number;
  const char* name;
};

constexpr NamedCall kForbidden[] = {
#ifdef SYS_open
    {SYS_open, "open"},
#endif
    {SYS_openat, "openat"}, {SYS_openat2, "openat2"}, {SYS_clone, "clone"},
    {SYS_clone3, "clone3"}, {SYS_socket, "socket"},   {SYS_connect, "connect"},
    {SYS_ioctl, "ioctl"},   {SYS_execve, "execve"},   {SYS_memfd_create, "memfd_create"},
};

constexpr int kNoFilter = 200, kNoCopy = 201, kRefused = 202, kForbiddenCall = 210;  // + index; exit statuses

void exit_with_call(int, siginfo_t* info, void*) {
  int index = 0;
  for (const NamedCall& call : kForbidden) {
    if (call.number == info->si_syscall) _exit(kForbiddenCall + index);
    ++index;
  }
  _exit(kForbiddenCall + index);
}

bool install_filter() {
  struct sigaction action {};
  action.sa_sigaction = exit_with_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const NamedCall& call : kForbidden) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A copy has variables of its own, so that the query is the first one that they see.
kvb_query_fn open_copy(const std::string& path) {
  const int file = memfd_create("plugin", 0);
  std::ifstream original(path, std::ios::binary);
  std::vector<char> buffer(1 << 16);
  while (original.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), original.gcount() > 0) {
    if (write(file, buffer.data(), static_cast<size_t>(original.gcount())) != original.gcount()) return nullptr;
  }
  void* library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<kvb_query_fn>(dlsym(library, KVB_ENTRY_SYMBOL));
}

[[noreturn]] void query_in_cage(const std::string& path, kvb_query_fn fallback) {
  alarm(20);
  testing::TestHost host;
  kvb_query_fn query = open_copy(path);
  if (query == nullptr) query = fallback;
  if (!install_filter()) _exit(kNoFilter);
  kv_error error{};
  _exit(query(&host.table, &error) != nullptr && query(&host.table, nullptr) != nullptr ? 0 : kRefused);
}

}  // namespace

std::string forbidden_call_of_query(const std::string& path, kvb_query_fn fallback) {
  const pid_t child = fork();
  check(child >= 0, "no process for the query");
  if (child == 0) query_in_cage(path, fallback);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  check(!WIFSIGNALED(status), "the query died of signal " + std::to_string(WTERMSIG(status)));
  const int code = WEXITSTATUS(status);
  if (code == kNoFilter) throw Unsupported("this system has no seccomp filters");
  check(code == 0 || code >= kForbiddenCall,
        "the query in a process of its own ended with status " + std::to_string(code));
  if (code == 0) return "";
  const auto index = static_cast<size_t>(code - kForbiddenCall);
  return index < std::size(kForbidden) ? kForbidden[index].name : "unknown";
}

}  // namespace kvasir::conformance
