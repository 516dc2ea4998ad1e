// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "carrier/cpu.hpp"

namespace carrier::testing {
namespace {

TEST(Serial, StaysAndIsNoOneElses) {
    const Ref<CPU> kept = make<CPU>(1);
    const std::uint64_t mine = kept->serial();
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(make<CPU>(1)->serial());  // mostly at one address
    EXPECT_EQ(seen.size(), 1000U);
    EXPECT_EQ(seen.count(mine), 0U);
    kept->set_value(0, 1.0F);
    EXPECT_EQ(kept->serial(), mine);
    kept->release();
    EXPECT_EQ(kept->serial(), mine);
}

TEST(Serial, IsOneForThreadsThatAskAtOnce) {
    for (int round = 0; round < 100; ++round) {
        const Ref<CPU> carrier = make<CPU>(1);
        std::vector<std::uint64_t> seen(4);
        std::vector<std::jthread> threads;
        for (std::uint64_t& answer : seen) threads.emplace_back([&] { answer = carrier->serial(); });
        threads.clear();
        EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 1U);
    }
}

}  // namespace
}  // namespace carrier::testing
