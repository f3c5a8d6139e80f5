// SPDX-License-Identifier: MIT
//
// What this process may use of the machine: processors (affinity mask and container quota), memory (machine and
// container limits), and the processor's name. Reads files below /proc and /sys; `root` is put before their paths, so
// that a test can show a machine of its own.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir::cpu {

struct MachineMemory {
  uint64_t total = 0;  // bytes; 0 = unknown
  uint64_t available = 0;
};

// At least 1, at most what the affinity mask of the calling thread and the cgroup's cpu quota (rounded up) leave.
uint32_t usable_processors(const std::string& root = "");

// The smaller of the machine's memory and the limits of the cgroup and its ancestors.
MachineMemory machine_memory(const std::string& root = "");

// "AMD EPYC"; "processor" when the system does not say.
std::string processor_name(const std::string& root = "");

}  // namespace kvasir::cpu
