// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/plan.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "layout/random_layout.hpp"

namespace carrier {
namespace {

struct Kind {
    const char* name;
    std::size_t width;
    Conversion conversion;
};
constexpr Kind kKinds[] = {{"4 bytes", 4, Conversion::none},
                           {"1 byte", 1, Conversion::none},
                           {"int32 to float32", 4, Conversion::int32_to_float32},
                           {"bool to float32", 4, Conversion::bool_to_float32},
                           {"bool to bool", 1, Conversion::bool_to_bool}};

/// Every way that this machine can go, with streaming stores from the first byte on and never.
std::vector<Tuning> tunings() {
    std::vector<Tuning> all;
    for (const auto vectors : {Tuning::Vectors::baseline, Tuning::Vectors::avx512})
        for (const std::size_t stream : {std::size_t{0}, ~std::size_t{0}})
            if (vectors <= Tuning::best().vectors) all.push_back({vectors, stream});
    return all;
}

/// Random bytes at an address that is `shift` off a cache line, between guards that must not change.
class Memory {
  public:
    Memory(std::size_t bytes, std::size_t shift) : bytes_(bytes), all_(bytes + shift + 2 * kGuard + 64) {
        const auto address = reinterpret_cast<std::uintptr_t>(all_.data() + kGuard);
        at_ = kGuard + (64 - address % 64) % 64 + shift;
    }
    std::byte* data() { return all_.data() + at_; }
    std::size_t size() const { return bytes_; }
    const std::vector<std::byte>& all() const { return all_; }
    void fill(Random& random, bool truths) {
        for (std::byte& b : all_)
            b = static_cast<std::byte>(truths && random.one_in(2) ? 0 : random.between(0, 255));
    }

  private:
    static constexpr std::size_t kGuard = 192;
    std::size_t bytes_;
    std::vector<std::byte> all_;
    std::size_t at_;
};

/// One element, by the definition.
void move_element(const Kind& kind, const std::byte* from, std::byte* to) {
    switch (kind.conversion) {
        case Conversion::none:
            std::memcpy(to, from, kind.width);
            break;
        case Conversion::int32_to_float32: {
            std::int32_t i;
            std::memcpy(&i, from, 4);
            const auto f = static_cast<float>(i);
            std::memcpy(to, &f, 4);
            break;
        }
        case Conversion::bool_to_float32: {
            const float f = *from != std::byte{0} ? 1.0F : 0.0F;
            std::memcpy(to, &f, 4);
            break;
        }
        case Conversion::bool_to_bool:
            *to = *from != std::byte{0} ? std::byte{1} : std::byte{0};
            break;
    }
}

std::size_t bytes_of(std::int64_t slots, std::size_t width) {
    return static_cast<std::size_t>(slots) * width;
}

/// Runs the plan in every way and compares all of the destination's memory, guards included, with the naive
/// loop. A null layout is a dense side.
void check(Random& random, const Kind& kind, const Layout* source, const Layout* destination) {
    const Layout& known = source != nullptr ? *source : *destination;
    const std::size_t from_width = source_width(kind.width, kind.conversion);
    const auto slot = [](const Layout* layout, std::int64_t i) {
        return layout != nullptr ? layout->index(i) : i;
    };
    const auto shift = [&] { return static_cast<std::size_t>(random.one_in(2) ? 0 : random.between(0, 63)); };
    Memory from(bytes_of(source != nullptr ? source->cosize() : known.size(), from_width), shift());
    Memory to(bytes_of(destination != nullptr ? destination->cosize() : known.size(), kind.width), shift());
    from.fill(random, kind.conversion != Conversion::none);
    to.fill(random, false);
    Memory expected = to;
    const std::ptrdiff_t at = to.data() - to.all().data();
    std::byte* const base = const_cast<std::byte*>(expected.all().data()) + at;
    for (std::int64_t i = 0; i < known.size(); ++i)
        move_element(kind, from.data() + bytes_of(slot(source, i), from_width),
                     base + bytes_of(slot(destination, i), kind.width));

    const CopyPlan plan = source == nullptr ? CopyPlan::spread(*destination, kind.width, kind.conversion)
                          : destination == nullptr
                              ? CopyPlan::gather(*source, kind.width, kind.conversion)
                              : CopyPlan(*source, *destination, kind.width, kind.conversion);
    const std::vector<std::byte> before = to.all();
    for (const Tuning& tuning : tunings()) {
        std::memcpy(to.data() - at, before.data(), before.size());
        const std::size_t parts = plan.parts(static_cast<std::size_t>(random.between(1, 5)));
        for (std::size_t i = parts; i-- > 0;) plan.run_part(i, parts, from.data(), to.data(), tuning);
        ASSERT_EQ(to.all(), expected.all())
            << kind.name << ", vectors " << static_cast<int>(tuning.vectors) << ", stream from "
            << tuning.stream_from << ", in " << parts
            << " parts: " << (source != nullptr ? source->repr() : "dense") << " to "
            << (destination != nullptr ? destination->repr() : "dense");
    }
}

class Plan : public testing::TestWithParam<Kind> {};

TEST_P(Plan, CopiesAnyLayoutToAnyOther) {
    Random random(3);
    for (int round = 0; round < 1500; ++round) {
        const Shape shape = random_shape(random, 700);
        const Layout source = random_layout(random, shape);
        const Layout destination = random_layout(random, shape);
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &source, &destination));
    }
}

TEST_P(Plan, GathersAndSpreads) {
    Random random(4);
    for (int round = 0; round < 600; ++round) {
        const Layout layout = random_layout(random, random_shape(random, 700));
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &layout, nullptr));
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), nullptr, &layout));
    }
}

/// Extents and pitches around the sides of every tile.
TEST_P(Plan, Transposes) {
    Random random(5);
    const auto extent = [&] { return random.one_in(2) ? random.between(1, 20) : random.between(20, 150); };
    for (int round = 0; round < 150; ++round) {
        const std::int64_t rows = extent();
        const std::int64_t columns = extent();
        const auto pitch = [&](std::int64_t n) {
            return random.one_in(3) ? (n + 15) / 16 * 16 : n + (random.one_in(2) ? 0 : random.between(1, 20));
        };
        const Shape shape{rows, columns};
        const Layout down(shape, Stride{1, pitch(rows)});
        const Layout across(shape, Stride{pitch(columns), 1});
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &across, &down));
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &down, &across));
    }
}

TEST_P(Plan, TransposesWithinMoreAxes) {
    Random random(6);
    for (int round = 0; round < 60; ++round) {
        const Shape shape{random.between(1, 40), random.between(1, 40), random.between(1, 6),
                          random.between(1, 4)};
        const Layout source = layout_of(shape, nesting_steps(random, shape, true, random.one_in(2)));
        const Layout destination = layout_of(shape, nesting_steps(random, shape, true, random.one_in(2)));
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &source, &destination));
    }
}

/// More rows than a panel holds.
TEST_P(Plan, TransposesTallAndWide) {
    Random random(7);
    for (const auto& [rows, columns] : {std::pair{1300, 37}, {37, 1300}, {1041, 65}, {2, 3000}, {3000, 3}}) {
        const Shape shape{rows, columns};
        const Layout down(shape, Stride{1, rows});
        const Layout across(shape, Stride{columns, 1});
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &across, &down));
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &down, &across));
    }
}

TEST_P(Plan, CopiesLongAndStridedRows) {
    Random random(8);
    for (const std::int64_t n :
         {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 1000, 9000})
        for (const std::int64_t from : {0, 1, 2, 3, 17})
            for (const std::int64_t to : {1, 2, 3, 4, 8, 16, 33}) {
                const Layout source(Shape{n}, Stride{from});
                const Layout destination(Shape{n}, Stride{to});
                ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &source, &destination));
                const Layout rows_in(Shape{n, 5}, Stride{from, n * from + 3});
                const Layout rows_out(Shape{n, 5}, Stride{to, n * to + 2});
                ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &rows_in, &rows_out));
            }
}

TEST_P(Plan, TakesMoreAxesThanItHoldsInline) {
    Random random(9);
    for (int round = 0; round < 40; ++round) {
        std::vector<IntTree> extents;
        for (int i = 0; i < 12; ++i) extents.emplace_back(random.one_in(3) ? 1 : 2);
        const Shape shape{IntTree(std::move(extents))};
        const Layout source = layout_of(shape, nesting_steps(random, shape, true, true));
        const Layout destination = random_layout(random, shape);
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &source, &destination));
        ASSERT_NO_FATAL_FAILURE(check(random, GetParam(), &destination, &source));
    }
}

INSTANTIATE_TEST_SUITE_P(, Plan, testing::ValuesIn(kKinds), [](const auto& info) {
    std::string name = info.param.name;
    for (char& c : name)
        if (c == ' ') c = '_';
    return name;
});

TEST(PlanShape, MergesWhatIsContiguous) {
    const Shape shape{4, {5, 6}, 7};
    const Layout dense(shape, Stride{1, {4, 20}, 120});
    EXPECT_EQ(CopyPlan(dense, dense, 4).axes(), 1U);
    EXPECT_EQ(CopyPlan(dense, dense, 4).axis(0).extent, 840);
    EXPECT_EQ(CopyPlan::gather(dense, 4).axes(), 1U);
    EXPECT_EQ(CopyPlan::spread(dense, 4).axes(), 1U);
    // Backwards on both sides: contiguous once sorted.
    const Layout backwards(shape, Stride{210, {42, 7}, 1});
    EXPECT_EQ(CopyPlan(backwards, backwards, 4).axes(), 1U);
    EXPECT_TRUE(CopyPlan(dense, Layout(Shape{4, {5, 6}, 7}, Stride{210, {42, 7}, 1}), 4).is_tiled());
    EXPECT_EQ(CopyPlan(Layout(Shape{1, 1}, Stride{5, 6}), Layout(Shape{1, 1}, Stride{0, 0}), 4).axes(), 0U);
}

TEST(PlanShape, KeepsTheLogicalOrderWhereItShows) {
    const Shape shape{3, 4};
    const CopyPlan plan(Layout(shape, Stride{4, 1}), Layout(shape, Stride{2, 1}), 4);
    EXPECT_EQ(plan.axes(), 2U);
    EXPECT_EQ(plan.axis(0).extent, 3);
    EXPECT_FALSE(plan.is_tiled());
    // A broadcast destination keeps the last of the axis.
    const CopyPlan last(Layout(shape, Stride{4, 1}), Layout(shape, Stride{0, 1}), 4);
    EXPECT_EQ(last.axes(), 1U);
}

}  // namespace
}  // namespace carrier
