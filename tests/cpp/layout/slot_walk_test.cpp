// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/slot_walk.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "layout/plan.hpp"
#include "layout/random_layout.hpp"

namespace carrier {
namespace {

TEST(SlotWalkTest, GivesTheSlotsOfTheLayoutInOrder) {
    Random random(5);
    for (int round = 0; round < 300; ++round) {
        const Layout layout = random_layout(random, random_shape(random, 200));
        const std::int64_t start = random.between(0, layout.size() - 1);
        SlotWalk walk(layout, start);
        for (std::int64_t i = start; i < layout.size(); ++i)
            ASSERT_EQ(walk(), layout.index(i)) << layout.repr() << " " << start << " " << i;
        EXPECT_EQ(walk(), layout.index(0));
    }
}

TEST(SlotWalkTest, StepsOfAxesThatDoNotMoveMayBeAnything) {
    constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
    const Layout layout(Shape{1, 2, 1}, Stride{kGreatest, std::int64_t{1} << 62, kGreatest - 5});
    SlotWalk walk(layout, 0);
    EXPECT_EQ(walk(), 0);
    EXPECT_EQ(walk(), std::int64_t{1} << 62);
    EXPECT_EQ(walk(), 0);
}

TEST(SlotWalkTest, BoundsAreThoseOfTheRange) {
    Random random(6);
    for (int round = 0; round < 300; ++round) {
        const Layout layout = random_layout(random, random_shape(random, 60));
        const std::int64_t start = random.between(0, layout.size() - 1);
        const std::int64_t stop = random.between(start + 1, layout.size());
        std::set<std::int64_t> slots;
        for (std::int64_t i = start; i < stop; ++i) slots.insert(layout.index(i));
        EXPECT_EQ(slot_bounds(layout, start, stop), std::pair(*slots.begin(), *slots.rbegin()));
    }
}

TEST(PlanRepeat, FillsTheLayoutsSlotsAndNoOthers) {
    Random random(7);
    for (int round = 0; round < 300; ++round) {
        const Layout layout = random_layout(random, random_shape(random, 300));
        for (const std::size_t width : {std::size_t{1}, std::size_t{4}}) {
            std::vector<std::byte> expected(static_cast<std::size_t>(layout.cosize() + 3) * width,
                                            std::byte{9});
            std::vector<std::byte> slots = expected;
            const std::byte one[4] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
            for (std::int64_t i = 0; i < layout.size(); ++i)
                std::memcpy(&expected[static_cast<std::size_t>(layout.index(i)) * width], one, width);
            CopyPlan::repeat(layout, width).run(one, slots.data());
            ASSERT_EQ(slots, expected) << layout.repr();
        }
    }
}

}  // namespace
}  // namespace carrier
