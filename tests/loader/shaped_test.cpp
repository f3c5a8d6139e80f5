// SPDX-License-Identifier: MIT
//
// A real plugin whose table and functions are spoiled in one point at a time: its reason each time, and that the good
// plugin beside it loads. The table alone, in more detail, is in negotiate_test.cpp.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <stdexcept>

#include "place.h"
#include "plugins/shaped.h"
#include "plugins/stub.h"

namespace kvasir::test {
namespace {

class Shaped : public PlaceTest {
 protected:
  Shaped() : path_(put("shaped", place_)) {
    void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);  // a copy of its own for each test
    if (library == nullptr) throw std::runtime_error(dlerror());
    shape_ = reinterpret_cast<ShapeFunction>(dlsym(library, "kv_test_shape"))();
  }

  kvb_api& api() { return shape_->api; }
  void reset() { *shape_ = {stub::table("shaped"), nullptr}; }

  // What a scan says of it as it is now; then it is as it was made.
  std::string reason(kv_status status, const std::string& part) {
    const std::string text = scanned(path_, status, part).reason;
    reset();
    return text;
  }
  void refused(const std::string& part) { reason(KV_INCOMPATIBLE, "(" + path_ + ") is refused: " + part); }

  const std::string path_;
  Shape* shape_ = nullptr;
};

// Bytes that end where the address space does, for text that has no end of its own.
class EdgeOfMemory {
 public:
  explicit EdgeOfMemory(size_t length) {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    base_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + page_, page_, PROT_NONE) != 0) throw std::bad_alloc();
    text_ = base_ + page_ - length;
    std::memset(text_, 'x', length);
  }
  ~EdgeOfMemory() { munmap(base_, 2 * page_); }
  EdgeOfMemory(const EdgeOfMemory&) = delete;
  EdgeOfMemory& operator=(const EdgeOfMemory&) = delete;
  const char* text() const { return text_; }

 private:
  size_t page_;
  char* base_;
  char* text_;
};

TEST_F(Shaped, IsGoodAsItIs) { EXPECT_EQ(scanned(path_, KV_OK, "").devices.size(), 1u); }

TEST_F(Shaped, EachMandatoryPointerInTurn) {
  size_t refusals = 0;
  for (size_t offset = offsetof(kvb_api, instance_create); offset < sizeof(kvb_api); offset += sizeof(void*)) {
    if (offset == offsetof(kvb_api, cache_move_rows)) continue;  // optional
    std::memset(reinterpret_cast<char*>(shape_) + offset, 0, sizeof(void*));
    refused("its table lacks the mandatory function ");
    ++refusals;
  }
  EXPECT_EQ(refusals, 28u);
  api().cache_move_rows = nullptr;
  reason(KV_OK, "");
}

TEST_F(Shaped, SizesAndVersionsOfTheTable) {
  for (const uint32_t size : {uint32_t{0}, uint32_t{8}, static_cast<uint32_t>(sizeof(kvb_api) - 8),
                              static_cast<uint32_t>(sizeof(kvb_api) - 1)}) {
    api().struct_size = size;
    refused("its table has " + std::to_string(size) + " bytes, " + std::to_string(sizeof(kvb_api)) + " are needed");
  }
  api().struct_size = UINT32_MAX;  // a table from far in the future: only our part of it is read
  reason(KV_OK, "");
  for (const uint32_t version : {0u, KVB_ABI_VERSION + 1, KVB_ABI_VERSION + 65536, UINT32_MAX}) {
    api().abi_version = version;
    refused("it was built for backend ABI " + std::to_string(version >> 16) + " draft " +
            std::to_string(version & 0xffff) + ", this library has 0 draft ");
  }
}

TEST_F(Shaped, Names) {
  for (const char* name : {"", "other", "Shaped", "shaped ", "shaped.v0", "../shaped", "sh\xC3\xA4ped"}) {
    api().name = name;
    refused("it calls itself '" + std::string(name) + "', its file name says 'shaped'");
  }
  api().name = "shaped\n2030-01-01 fine";
  refused("it calls itself 'shaped 2030-01-01 fine', its file name says");
  api().name = nullptr;
  refused("its table has no name");
  const EdgeOfMemory endless(64);
  api().name = endless.text();
  refused("it calls itself 'xxxxxxxx");
}

TEST_F(Shaped, Versions) {
  for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
    api().version = nothing;
    refused("its table has no version");
  }
  const EdgeOfMemory endless(64);
  api().version = endless.text();
  refused("its version has more than 63 bytes");
  const std::string longest(63, '7');
  api().version = longest.c_str();
  EXPECT_EQ(scanned(path_, KV_OK, "").version, longest);
  api().version = "1\n2";
  EXPECT_EQ(scanned(path_, KV_OK, "").version, "1 2");
}

TEST_F(Shaped, EntriesThatGiveNoTable) {
  shape_->entry = [](const kvb_host*, kv_error*) -> const kvb_api* { return nullptr; };
  refused("it declined to serve this library and gave no reason");
  shape_->entry = [](const kvb_host*, kv_error* error) -> const kvb_api* {
    std::snprintf(error->message, sizeof error->message, "wants another\nprocessor");
    return nullptr;
  };
  refused("it declined to serve this library: wants another processor");
  shape_->entry = [](const kvb_host*, kv_error* error) -> const kvb_api* {
    error->code = KV_UNSUPPORTED;
    std::memset(error->message, 'y', sizeof error->message);
    return nullptr;
  };
  reason(KV_UNSUPPORTED, "it declined to serve this library: yyyy");
}

TEST_F(Shaped, EntriesThatThrow) {
  shape_->entry = [](const kvb_host*, kv_error*) -> const kvb_api* { throw std::runtime_error("no\nidea"); };
  reason(KV_INTERNAL, "is refused: its entry function threw an exception: no idea");
  shape_->entry = [](const kvb_host*, kv_error*) -> const kvb_api* { throw 42; };
  reason(KV_INTERNAL, "is refused: its entry function threw an exception");
  shape_->entry = [](const kvb_host*, kv_error*) -> const kvb_api* { throw std::bad_alloc(); };
  reason(KV_OUT_OF_MEMORY, "its entry function found no memory left");
}

TEST_F(Shaped, InstancesThatDoNotCome) {
  api().instance_create = [](const kvb_host*, kvb_instance**, kv_error*) -> kv_status { return KV_DEVICE_LOST; };
  reason(KV_DEVICE_LOST, "backend 'shaped': instance_create failed with status 7: no reason given");
  api().instance_create = [](const kvb_host*, kvb_instance**, kv_error*) -> kv_status { return KV_OK; };
  reason(KV_INTERNAL, "instance_create succeeded without an instance");
  api().instance_create = [](const kvb_host*, kvb_instance**, kv_error*) -> kv_status { throw std::out_of_range("x"); };
  reason(KV_INTERNAL, "backend 'shaped': instance_create threw an exception: x");
  api().instance_create = [](const kvb_host*, kvb_instance**, kv_error*) -> kv_status { return -77; };
  reason(-77, "instance_create failed with status -77");
}

using CountFunction = decltype(kvb_api::device_count);

TEST_F(Shaped, CountsOfDevicesThatFail) {
  const CountFunction fails = [](kvb_instance*, uint32_t* out, char*, size_t, kv_error* error) -> kv_status {
    *out = 3;
    std::snprintf(error->message, sizeof error->message, "the driver\tis asleep");
    return KV_IO;
  };
  api().device_count = fails;
  const CandidateReport report = scanned(path_, KV_IO, "device_count failed with status 15: the driver is asleep");
  EXPECT_TRUE(report.devices.empty());
  api().device_count = [](kvb_instance*, uint32_t*, char*, size_t, kv_error*) -> kv_status { throw 1; };
  reason(KV_INTERNAL, "backend 'shaped': device_count threw an exception");
  api().device_count = [](kvb_instance*, uint32_t* out, char*, size_t, kv_error*) -> kv_status {
    *out = 1000000;
    return KV_OK;
  };
  reason(KV_INTERNAL, "backend 'shaped' claims to have 1000000 devices");
  api().device_count = [](kvb_instance*, uint32_t* out, char*, size_t, kv_error*) -> kv_status {
    *out = 1024;
    return KV_OK;
  };
  EXPECT_EQ(scanned(path_, KV_OK, "").devices.size(), 1024u);
}

TEST_F(Shaped, NoDevices) {
  const auto expect_reason = [&](CountFunction count, const std::string& text) {
    api().device_count = count;
    const CandidateReport report = scanned(path_, KV_OK, text);
    EXPECT_EQ(report.reason.substr(0, text.size() + 1), text) << "nothing follows";
    EXPECT_TRUE(report.devices.empty());
  };
  expect_reason([](kvb_instance*, uint32_t* out, char*, size_t, kv_error*) -> kv_status { return *out = 0, KV_OK; },
                "0 devices: the plugin gives no reason");
  expect_reason(
      [](kvb_instance*, uint32_t* out, char* reason, size_t capacity, kv_error*) -> kv_status {
        std::snprintf(reason, capacity, "libnpu.so\nis not there");
        return *out = 0, KV_OK;
      },
      "0 devices: libnpu.so is not there");
  api().device_count = [](kvb_instance*, uint32_t* out, char* reason, size_t capacity, kv_error*) -> kv_status {
    std::memset(reason, 'z', capacity);  // no end
    return *out = 0, KV_OK;
  };
  EXPECT_LT(scanned(path_, KV_OK, "0 devices: zzz").reason.size(), 600u);
}

TEST_F(Shaped, ASickDeviceAmongGoodOnes) {
  api().device_count = [](kvb_instance*, uint32_t* out, char*, size_t, kv_error*) -> kv_status {
    *out = 4;
    return KV_OK;
  };
  api().device_info = [](kvb_instance*, uint32_t index, kvb_device_info* out, kv_error* error) -> kv_status {
    if (index == 1) throw std::runtime_error("gone");
    std::snprintf(error->message, sizeof error->message, "too hot");
    if (index == 2) return KV_DEVICE_LOST;
    std::memset(out->name, 'n', sizeof out->name);  // no end
    std::snprintf(out->driver, sizeof out->driver, "one\ntwo");
    return KV_OK;
  };
  const CandidateReport report = scanned(path_, KV_OK, "");
  ASSERT_EQ(report.devices.size(), 4u);
  for (const size_t sound : {0u, 3u}) {
    EXPECT_EQ(report.devices[sound].fault, "");
    EXPECT_EQ(report.devices[sound].name, std::string(128, 'n'));
    EXPECT_EQ(report.devices[sound].driver, "one two");
  }
  EXPECT_EQ(report.devices[1].fault, "backend 'shaped': device_info threw an exception: gone");
  EXPECT_EQ(report.devices[2].fault, "backend 'shaped': device_info failed with status 7: too hot");
  Registry registry(only({place_}), host_.services());
  Choice choice;
  EXPECT_TRUE(registry.choose("shaped", &choice).ok());
  EXPECT_TRUE(registry.choose("shaped:3", &choice).ok());
  EXPECT_TRUE(fails_with(registry.choose("shaped:2", &choice), KV_NOT_FOUND, "too hot"));
  EXPECT_TRUE(fails_with(registry.choose("shaped:4", &choice), KV_NOT_FOUND, "has no device 4: it has 4"));
}

}  // namespace
}  // namespace kvasir::test
