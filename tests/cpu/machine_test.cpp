// SPDX-License-Identifier: MIT
//
// What the machine leaves to the process, on machines made of files.
#include "machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace kvasir::cpu {
namespace {

class MachineTest : public ::testing::Test {
 protected:
  MachineTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvasir_machine_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  static uint32_t affinity() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
  }

  std::string root_;
};

TEST_F(MachineTest, NoFilesMeansNoLimits) {
  EXPECT_EQ(usable_processors(root_), affinity());
  EXPECT_EQ(machine_memory(root_).total, 0u);
  EXPECT_EQ(processor_name(root_), "processor");
}

TEST_F(MachineTest, QuotaOfVersion2IsRoundedUp) {
  write("/proc/self/cgroup", "0::/box/inner\n");
  write("/sys/fs/cgroup/box/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_processors(root_), affinity());
  write("/sys/fs/cgroup/box/cpu.max", "50000 100000\n");  // an ancestor's limit counts too
  EXPECT_EQ(usable_processors(root_), 1u);
  write("/sys/fs/cgroup/box/cpu.max", "99900000 100000\n");
  EXPECT_EQ(usable_processors(root_), affinity());
}

TEST_F(MachineTest, QuotaOfVersion1) {
  write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_processors(root_), affinity());
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(usable_processors(root_), 1u);
}

TEST_F(MachineTest, AffinityCounts) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &before)) continue;
    CPU_SET(i, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(root_), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(MachineTest, MemoryAndItsLimits) {
  write("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    600 kB\n");
  EXPECT_EQ(machine_memory(root_).total, 1000u * 1024);
  EXPECT_EQ(machine_memory(root_).available, 600u * 1024);
  write("/proc/self/cgroup", "0::/box\n");
  write("/sys/fs/cgroup/box/memory.max", "max\n");
  EXPECT_EQ(machine_memory(root_).total, 1000u * 1024);
  write("/sys/fs/cgroup/box/memory.max", "512000\n");
  write("/sys/fs/cgroup/box/memory.current", "500000\n");
  EXPECT_EQ(machine_memory(root_).total, 512000u);
  EXPECT_EQ(machine_memory(root_).available, 12000u);
  write("/sys/fs/cgroup/box/memory.current", "600000\n");  // over its limit for a moment
  EXPECT_EQ(machine_memory(root_).available, 0u);
}

TEST_F(MachineTest, NonsenseIsNoLimit) {
  write("/proc/self/cgroup", "garbage\n::\n0::\n");
  write("/proc/meminfo", "MemTotal: lots\n\nMemAvailable:");
  write("/sys/fs/cgroup/cpu.max", "0 0\n");
  EXPECT_EQ(usable_processors(root_), affinity());
  EXPECT_EQ(machine_memory(root_).total, 0u);
}

TEST_F(MachineTest, NameOfTheProcessor) {
  write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 9 \nmodel name\t: other\n");
  EXPECT_EQ(processor_name(root_), "Abacus 9 ");
}

}  // namespace
}  // namespace kvasir::cpu
