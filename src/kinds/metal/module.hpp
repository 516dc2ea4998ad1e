// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

/// The seam between the library and its Metal module, which alone knows Apple's API. No Objective-C type
/// appears here, and no exception crosses: both sides report by value.
namespace carrier::metal {

enum class Fault : std::uint8_t {
    none,
    no_device,     // nothing that Metal would show to this process
    discrete,      // only GPUs with memory of their own
    no_queue,      // a device that takes no commands
    too_large,     // more bytes than one buffer of the device holds
    no_memory,     // an allocation was refused
    kernel,        // the compiler, the library or the pipeline refused
    not_executed,  // the GPU did not finish what it was given
};

/// What a call came to, and in words what the device said.
struct Status {
    Fault fault = Fault::none;
    std::string text;
    bool ok() const noexcept { return fault == Fault::none; }
};

/// Bytes that host and GPU see at one address each, for the buffer's life.
class Buffer {
  public:
    virtual ~Buffer() = default;
    virtual std::byte* data() noexcept = 0;
};

/// A GPU with unified memory. Calls may come from any thread.
class Device {
  public:
    virtual ~Device() = default;
    /// At least one byte, of whatever the memory held before.
    virtual Status allocate(std::size_t bytes, std::unique_ptr<Buffer>& into) noexcept = 0;
    /// onto[slots[i]] = values[i] for i < count, in no order, for elements of `width` bytes (1 or 4); no slot
    /// comes twice, all lie inside. The first call of each width builds its kernel. Returns when the GPU is
    /// done with the buffers. After a fault any part of the slots may be written.
    virtual Status scatter(Buffer& onto, Buffer& values, Buffer& slots, std::uint32_t count,
                           std::size_t width) noexcept = 0;
};

/// What a module exports, under the name `carrier_metal_module`.
struct Module {
    /// Of the build that made it: both sides of the seam are one build's.
    const char* version;
    Status (*open)(std::unique_ptr<Device>& into) noexcept;
};

}  // namespace carrier::metal

extern "C" __attribute__((visibility("default"))) const carrier::metal::Module carrier_metal_module;
