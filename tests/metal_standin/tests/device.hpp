// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "carrier/errors.hpp"
#include "kinds/metal/scatter.hpp"
#include "metal_standin.hpp"

namespace carrier::metal {

/// Each test has a device of its own; whatever it did, nothing may be left alive and no rule of the API
/// broken.
class OnDevice : public ::testing::Test {
  protected:
    void SetUp() override {
        standin::reset();
        before_ = standin::live();
    }
    void TearDown() override {
        EXPECT_EQ(standin::violations(), std::vector<std::string>());
        if (device_ || expects_leaks_) return;
        EXPECT_EQ(standin::live(), before_) << "objects by class";
    }
    Status open() { return carrier_metal_module.open(device_); }
    Device& device() {
        if (!device_) {
            const Status status = open();
            EXPECT_TRUE(status.ok()) << status.text;
        }
        return *device_;
    }
    void close() { device_ = nullptr; }
    /// A block of words 0, 1, 2...
    Ref<MetalBlock> counted(std::uint32_t size) {
        auto block = MetalBlock::allocate(device(), size * 4u, true);
        for (std::uint32_t i = 0; i < size; ++i) std::memcpy(block->data() + 4u * i, &i, 4);
        return block;
    }
    Ref<MetalBlock> filled(const std::vector<std::uint32_t>& words) {
        auto block = MetalBlock::allocate(device(), words.size() * 4, true);
        std::memcpy(block->data(), words.data(), words.size() * 4);
        return block;
    }
    static std::vector<std::uint32_t> words(const MetalBlock& block) {
        std::vector<std::uint32_t> all(block.size() / 4);
        if (!all.empty()) std::memcpy(all.data(), block.data(), block.size());
        return all;
    }

    bool expects_leaks_ = false;

  private:
    std::unique_ptr<Device> device_;
    std::map<std::string, long> before_;
};

}  // namespace carrier::metal
