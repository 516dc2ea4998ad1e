// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <gmock/gmock.h>

#include "device.hpp"

namespace carrier::metal {
namespace {

using ::testing::HasSubstr;

class Opening : public OnDevice {};

TEST_F(Opening, FindsTheDefaultDevice) {
    EXPECT_TRUE(open().ok());
    EXPECT_EQ(standin::calls("MTLCreateSystemDefaultDevice"), 1);
    EXPECT_EQ(standin::calls("MTLCopyAllDevices"), 0);
    close();
}

TEST_F(Opening, FindsADeviceThatIsNoDefault) {
    standin::plan().default_device = false;
    EXPECT_TRUE(open().ok());
    close();
}

TEST_F(Opening, PrefersUnifiedMemoryToTheDefault) {
    standin::plan().devices = 2;
    standin::plan().unified_from = 1;
    EXPECT_TRUE(open().ok());
    close();
}

TEST_F(Opening, ReportsNoDevice) {
    standin::plan().devices = 0;
    EXPECT_EQ(open().fault, Fault::no_device);
}

TEST_F(Opening, ReportsDiscreteDevicesByName) {
    for (const bool usual : {true, false}) {
        standin::plan().devices = 2;
        standin::plan().unified_from = 2;
        standin::plan().default_device = usual;
        const Status status = open();
        EXPECT_EQ(status.fault, Fault::discrete);
        EXPECT_EQ(status.text, "Stand-in GPU");
    }
}

TEST_F(Opening, ReportsADeviceWithoutQueue) {
    standin::plan().queue = false;
    EXPECT_EQ(open().fault, Fault::no_queue);
}

class Blocks : public OnDevice {};

TEST_F(Blocks, AreZeroedUnlessEmpty) {
    EXPECT_EQ(words(*MetalBlock::allocate(device(), 12, false)), std::vector<std::uint32_t>(3, 0));
    EXPECT_EQ(words(*MetalBlock::allocate(device(), 12, true)), std::vector<std::uint32_t>(3, 0xA5A5A5A5u));
    close();
}

TEST_F(Blocks, OfNoBytesHaveAnAddressAndNoBuffer) {
    const auto block = MetalBlock::allocate(device(), 0, false);
    EXPECT_EQ(block->size(), 0u);
    EXPECT_NE(block->data(), nullptr);
    EXPECT_EQ(standin::calls("newBufferWithLength:options:"), 0);
    block->read(0, {});
    block->write(0, {});
    close();
}

TEST_F(Blocks, KeepTheirBytes) {
    const auto block = MetalBlock::allocate(device(), 8, false);
    const std::uint32_t seven = 7;
    block->write(4, std::as_bytes(std::span(&seven, 1)));
    std::uint32_t got = 0;
    block->read(4, std::as_writable_bytes(std::span(&got, 1)));
    EXPECT_EQ(got, 7u);
    EXPECT_EQ(words(*block), (std::vector<std::uint32_t>{0, 7}));
    close();
}

template <class Error, class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    ADD_FAILURE() << "no such error";
    return {};
}

TEST_F(Blocks, BeyondTheDevicesLimitAreMemoryErrorsWithTheNumbers) {
    standin::plan().max_buffer = 64;
    MetalBlock::allocate(device(), 64, false);
    const std::string text = message_of<MemoryError>([&] { MetalBlock::allocate(device(), 65, false); });
    EXPECT_THAT(text, HasSubstr("65 bytes"));
    EXPECT_THAT(text, HasSubstr("exceeds the 64 bytes"));
    close();
}

TEST_F(Blocks, ThatTheDeviceRefusesAreMemoryErrors) {
    standin::plan().allocations_left = 0;
    EXPECT_THAT(message_of<MemoryError>([&] { MetalBlock::allocate(device(), 4, false); }),
                HasSubstr("refused by the device"));
    standin::plan().allocations_left = -1;
    EXPECT_EQ(MetalBlock::allocate(device(), 4, false)->size(), 4u);
    close();
}

}  // namespace
}  // namespace carrier::metal
