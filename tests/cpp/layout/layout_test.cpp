// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "carrier/errors.hpp"
#include "layout/random_layout.hpp"

namespace carrier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// What a call throws, or "" when it throws nothing of that class.
template <class E, class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const E& e) {
        return e.what();
    }
    return "";
}

std::vector<std::int64_t> slots(const Layout& layout) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < layout.size(); ++i) all.push_back(layout.index(i));
    return all;
}

bool injective_by_counting(const Layout& layout) {
    const auto all = slots(layout);
    return std::set<std::int64_t>(all.begin(), all.end()).size() == all.size();
}

TEST(Shape, CountsItsIndices) {
    EXPECT_EQ(Shape{}.size(), 1);
    EXPECT_EQ(Shape{}.rank(), 0U);
    const Shape nested{2, {3, 4}};
    EXPECT_EQ(nested.size(), 24);
    EXPECT_EQ(nested.rank(), 2U);
    EXPECT_THAT(nested.leaves(), ElementsAre(2, 3, 4));
}

TEST(Shape, EqualityKeepsTheNesting) {
    EXPECT_EQ(Shape(2), Shape{2});
    EXPECT_EQ(Shape(IntTree(std::vector<IntTree>{2, IntTree{3, 4}})), (Shape{2, {3, 4}}));
    EXPECT_NE(Shape{4}, (Shape{2, 2}));
    EXPECT_NE((Shape({{2, 3}})), (Shape{2, 3}));
    EXPECT_NE((Shape{2, {3, 4}}), (Shape{{2, 3}, 4}));
    EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
    EXPECT_EQ((Shape{2, {3, 4}}).hash(), (Shape{2, {3, 4}}).hash());
    EXPECT_NE((Shape{2, {3, 4}}).hash(), (Shape{{2, 3}, 4}).hash());
    EXPECT_NE((Shape({{2, 3}})).hash(), (Shape{2, 3}).hash());
}

TEST(Shape, PrintsWhatPythonReads) {
    EXPECT_EQ(Shape{}.repr(), "Shape()");
    EXPECT_EQ(Shape(4).repr(), "Shape(4)");
    EXPECT_EQ((Shape{2, {3, 4}}).repr(), "Shape(2, [3, 4])");
    EXPECT_EQ((Shape({{2, 3}})).repr(), "Shape([[2, 3]])");
    EXPECT_EQ((Shape{{2}, 3}).repr(), "Shape([2], 3)");
    EXPECT_EQ((Stride{1, {2, 6}}).repr(), "Stride(1, [2, 6])");
    EXPECT_EQ(Layout(Shape{2, 3}, Stride{3, 1}).repr(), "Layout(Shape(2, 3), Stride(3, 1))");
}

TEST(Shape, GivesItsTreeBack) {
    const IntTree tree{2, {3, {4}}, IntTree(std::vector<IntTree>{})};
    EXPECT_EQ(Shape(tree).modes().tree(), tree);
    EXPECT_EQ(Shape(7).modes().tree(), IntTree(std::vector<IntTree>{7}));
    EXPECT_EQ(tree.repr(), "[2, [3, [4]], []]");
    EXPECT_EQ(tree.items()[1].items()[0].value(), 3);
}

TEST(Shape, RefusesExtentsBelowOne) {
    EXPECT_THAT(message_of<ValueError>([] { Shape{2, {0, 4}}; }), HasSubstr("at least 1; got 0"));
    EXPECT_THROW(Shape(-1), ValueError);
    EXPECT_THAT(message_of<ValueError>([] { Stride{-3}; }), HasSubstr("at least 0; got -3"));
    EXPECT_NO_THROW(Stride(0));
}

TEST(Shape, RefusesWhatDoesNotFit) {
    EXPECT_EQ((Shape{kMax, 1}).size(), kMax);
    EXPECT_THROW((Shape{kMax, 2}), OverflowError);
    EXPECT_THROW((Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}), OverflowError);
    EXPECT_THROW(IntTree(std::uint64_t{1} << 63), OverflowError);
    IntTree deep = 1;
    EXPECT_THAT(message_of<ValueError>([&] {
                    for (int i = 0; i <= IntTree::kMaxDepth; ++i) deep = IntTree(std::vector<IntTree>{deep});
                }),
                HasSubstr("128 deep"));
}

TEST(Layout, CountsTheFirstModeFastest) {
    EXPECT_THAT(slots(Layout(Shape{2, 3}, Stride{3, 1})), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(slots(Layout(Shape{{2, 2}, 2}, Stride{{4, 1}, 2})), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
    EXPECT_THAT(slots(Layout()), ElementsAre(0));
}

TEST(Layout, KnowsItsGreatestSlot) {
    EXPECT_EQ(Layout().cosize(), 1);
    EXPECT_EQ(Layout(Shape{2, 3}, Stride{3, 1}).cosize(), 6);
    EXPECT_EQ(Layout(Shape{4}, Stride{0}).cosize(), 1);
    EXPECT_EQ(Layout(Shape{1, 2}, Stride{100, 7}).cosize(), 8);
    EXPECT_EQ(Layout(Shape{2}, Stride{kMax - 1}).cosize(), kMax);
    EXPECT_THROW(Layout(Shape{2}, Stride{kMax}), OverflowError);
    EXPECT_THROW(Layout(Shape{3}, Stride{kMax}), OverflowError);
    EXPECT_NO_THROW(Layout(Shape{1}, Stride{kMax}));
}

TEST(Layout, WantsOneTreeOnBothSides) {
    EXPECT_THAT(message_of<ValueError>([] {
                    Layout(Shape{2, 3}, Stride{1});
                }),
                HasSubstr("Shape(2, 3) and Stride(1) must have the same modes"));
    EXPECT_THROW(Layout(Shape({{2, 3}}), Stride{1, 2}), ValueError);
}

TEST(Layout, TakesCoordinates) {
    const Layout layout(Shape{2, {3, 4}}, Stride{12, {4, 1}});
    EXPECT_EQ(layout.index(IntTree{1, {2, 3}}), 23);
    EXPECT_EQ(layout.index(IntTree{1, 5}), 12 + 2 * 4 + 1);
    EXPECT_EQ(layout.index(IntTree(7)), layout.index(7));
    EXPECT_EQ(Layout().index(IntTree(std::vector<IntTree>{})), 0);
    const Layout deep(Shape{{{2, 2}, 3}, 2}, Stride{{{1, 2}, 4}, 12});
    EXPECT_EQ(deep.index(IntTree{{3, 1}, 1}), 3 + 4 + 12);
    EXPECT_EQ(deep.index(IntTree{11, 1}), 23);
}

TEST(Layout, RefusesWhatLiesOutside) {
    const Layout layout(Shape{2, {3, 4}}, Stride{12, {4, 1}});
    EXPECT_THROW(layout.index(24), ValueError);
    EXPECT_THROW(layout.index(-1), ValueError);
    EXPECT_THROW(Layout().index(1), ValueError);
    EXPECT_THAT(message_of<ValueError>([&] {
                    layout.index(IntTree{1, 12});
                }),
                HasSubstr("coordinate 12 lies outside [0, 12) in Shape(2, [3, 4])"));
    EXPECT_THROW(layout.index(IntTree{2, 0}), ValueError);
    EXPECT_THROW(layout.index(IntTree{1, -1}), ValueError);
    EXPECT_THROW(layout.index(IntTree{1, {3, 0}}), ValueError);
    EXPECT_THROW(layout.index(IntTree{1, {0, -1}}), ValueError);
    EXPECT_THROW(layout.index(IntTree{kMax, 0}), ValueError);
    EXPECT_THROW(layout.index(IntTree{1, 2, 3}), ValueError);
    EXPECT_THROW(layout.index(IntTree{{1}, 2}), ValueError);
    EXPECT_THROW(layout.index(IntTree{1, {1, 1, 1}}), ValueError);
}

TEST(Layout, CoordinatesAgreeWithIndices) {
    Random random(7);
    for (int round = 0; round < 300; ++round) {
        const Layout layout = random_layout(random, random_shape(random, 200));
        std::int64_t reach = 0;
        for (std::int64_t i = 0; i < layout.size(); ++i) {
            const IntTree at = coordinate_of(layout.shape().modes().tree(), i);
            ASSERT_EQ(layout.index(at), layout.index(i)) << layout.repr() << " at " << at.repr();
            reach = std::max(reach, layout.index(i));
        }
        ASSERT_EQ(layout.cosize(), reach + 1) << layout.repr();
    }
}

TEST(Layout, InjectivityIsExact) {
    Random random(11);
    int injective = 0;
    for (int round = 0; round < 20'000; ++round) {
        const Layout layout = random_layout(random, random_shape(random, 60));
        const bool expected = injective_by_counting(layout);
        ASSERT_EQ(layout.is_injective(), expected) << layout.repr();
        injective += expected ? 1 : 0;
    }
    EXPECT_GT(injective, 2000);
    EXPECT_LT(injective, 18'000);
}

TEST(Layout, InjectivityOfInterleavedModes) {
    EXPECT_TRUE(Layout(Shape{2, 3}, Stride{3, 2}).is_injective());
    EXPECT_FALSE(Layout(Shape{3, 4}, Stride{3, 2}).is_injective());
    // Subset sums of these steps are all distinct, though none of them steps over those before it.
    EXPECT_TRUE(Layout(Shape{2, 2, 2, 2}, Stride{3, 5, 6, 7}).is_injective());
    EXPECT_FALSE(Layout(Shape{2, 2, 2, 2}, Stride{3, 5, 6, 8}).is_injective());
    // No pair collides; 20 + 24 and 12 + 32 do.
    EXPECT_FALSE(Layout(Shape{2, 2, 2, 2}, Stride{20, 24, 12, 32}).is_injective());
    EXPECT_FALSE(Layout(Shape{4, 2}, Stride{0, 1}).is_injective());
    EXPECT_TRUE(Layout(Shape{1, 2}, Stride{0, 1}).is_injective());
}

TEST(Layout, InjectivityOfManyInterleavedLeaves) {
    Random random(12);
    int injective = 0;
    for (int round = 0; round < 40; ++round) {
        std::vector<IntTree> extents;
        std::vector<IntTree> steps;
        for (int i = 0; i < 12; ++i) {
            extents.emplace_back(2);
            steps.emplace_back(random.between(1, std::int64_t{1} << (16 + round % 8)));
        }
        const Layout layout(Shape(IntTree(std::move(extents))), Stride(IntTree(std::move(steps))));
        const bool expected = injective_by_counting(layout);
        ASSERT_EQ(layout.is_injective(), expected) << layout.repr();
        injective += expected ? 1 : 0;
    }
    EXPECT_GT(injective, 2);
    EXPECT_LT(injective, 38);
}

TEST(Layout, InjectivityOfGreatSpans) {
    const std::int64_t big = std::int64_t{1} << 61;
    EXPECT_TRUE(Layout(Shape{2, 2}, Stride{big, big - 1}).is_injective());
    EXPECT_FALSE(Layout(Shape{2, 2}, Stride{big, big}).is_injective());
    EXPECT_TRUE(Layout(Shape{2, 2, 2}, Stride{big, big - 1, big + 1}).is_injective());
    EXPECT_FALSE(Layout(Shape{2, 2, 2}, Stride{big, big / 2, big / 2}).is_injective());
    EXPECT_FALSE(Layout(Shape{2, 2, 2}, Stride{big + 3, big / 2 + 1, big / 2 + 2}).is_injective());
    const std::int64_t wide = std::int64_t{1} << 30;
    EXPECT_TRUE(Layout(Shape{wide, wide}, Stride{wide + 1, wide}).is_injective());
    EXPECT_FALSE(Layout(Shape{wide + 1, wide}, Stride{wide - 1, wide}).is_injective());
}

TEST(Layout, EqualityIsThatOfItsParts) {
    EXPECT_EQ(Layout(Shape{2, 3}, Stride{3, 1}), Layout(Shape{2, 3}, Stride{3, 1}));
    EXPECT_FALSE(Layout(Shape{2, 3}, Stride{3, 1}) == Layout(Shape{2, 3}, Stride{1, 2}));
    EXPECT_EQ(Layout(Shape{2, 3}, Stride{3, 1}).hash(), Layout(Shape{2, 3}, Stride{3, 1}).hash());
    EXPECT_NE(Layout(Shape{2, 3}, Stride{3, 1}).hash(), Layout(Shape{2, 3}, Stride{1, 2}).hash());
}

}  // namespace
}  // namespace carrier
