// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "device.hpp"

namespace carrier::metal {
namespace {

using standin::Order;
using ::testing::HasSubstr;

constexpr Order kOrders[] = {Order::forward, Order::reverse, Order::shuffled};

class Scatter : public OnDevice {};

/// A mapping of 60 values with a nested mode; `slot_of` gives the slots by its definition.
const Layout& nested() {
    static const Layout layout(Shape{IntTree{3, 4}, 5}, Stride{IntTree{20, 1}, 4});
    return layout;
}

TEST_F(Scatter, WritesEachValueToItsSlot) {
    for (const Order order : kOrders) {
        standin::plan().order = order;
        standin::plan().non_uniform = false;
        const auto onto = counted(100);
        auto want = words(*onto);
        std::vector<std::uint32_t> values(60);
        for (std::uint32_t i = 0; i < 60; ++i) {
            values[i] = 1000 + i;
            want[7 + static_cast<std::size_t>(nested().index(std::int64_t{i}))] = 1000 + i;
        }
        scatter(*onto, 7, *filled(values), nested(), 4);
        EXPECT_EQ(words(*onto), want);
    }
    EXPECT_GE(standin::threads_run(), 180u);
    close();
}

TEST_F(Scatter, WritesBytesWithoutTouchingNeighbours) {
    const auto onto = MetalBlock::allocate(device(), 10, false);
    const auto values = MetalBlock::allocate(device(), 3, true);
    std::memset(values->data(), 1, 3);
    scatter(*onto, 2, *values, Layout(Shape{3}, Stride{3}), 1);
    for (std::size_t i = 0; i < 10; ++i)
        EXPECT_EQ(onto->data()[i], std::byte{i == 2 || i == 5 || i == 8}) << i;
    close();
}

TEST_F(Scatter, LetsTheLaterIndexWinInAnyOrderOfThreads) {
    for (const Order order : kOrders) {
        standin::plan().order = order;
        const auto onto = counted(8);
        // Indices 0..5 go to slots 1, 2, 1, 2, 1, 2, and all of the second onto slot 0.
        scatter(*onto, 1, *filled({10, 20, 30, 40, 50, 60}), Layout(Shape{2, 3}, Stride{1, 0}), 4);
        EXPECT_EQ(words(*onto), (std::vector<std::uint32_t>{0, 50, 60, 3, 4, 5, 6, 7}));
        scatter(*onto, 0, *filled({70, 80, 90}), Layout(Shape{3}, Stride{0}), 4);
        EXPECT_EQ(words(*onto), (std::vector<std::uint32_t>{90, 50, 60, 3, 4, 5, 6, 7}));
    }
    close();
}

TEST_F(Scatter, OfOneValueWithoutModes) {
    const auto onto = counted(3);
    scatter(*onto, 2, *filled({9}), Layout(), 4);
    EXPECT_EQ(words(*onto), (std::vector<std::uint32_t>{0, 1, 9}));
    close();
}

TEST_F(Scatter, AgreesWithTheDefinitionOnRandomLayouts) {
    std::mt19937 random(11);
    const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
    for (int round = 0; round < 100; ++round) {
        const Layout mapping(Shape{1 + below(5), IntTree{1 + below(4), 1 + below(6)}},
                             Stride{below(9), IntTree{below(9), below(9)}});
        const auto size = static_cast<std::uint32_t>(mapping.size());
        standin::plan().order = kOrders[round % 3];
        const std::int64_t base = below(5);
        const auto onto = counted(static_cast<std::uint32_t>(base + mapping.cosize()));
        auto want = words(*onto);
        std::vector<std::uint32_t> values(size);
        std::iota(values.begin(), values.end(), 5000u);
        for (std::uint32_t i = 0; i < size; ++i)
            want[static_cast<std::size_t>(base + mapping.index(std::int64_t{i}))] = values[i];
        scatter(*onto, base, *filled(values), mapping, 4);
        ASSERT_EQ(words(*onto), want) << mapping.repr();
    }
    close();
}

TEST_F(Scatter, BuildsEachKernelOnce) {
    const auto onto = counted(4);
    for (int i = 0; i < 3; ++i) scatter(*onto, 0, *filled({1}), Layout(), 4);
    EXPECT_EQ(standin::calls("newLibraryWithSource:options:error:"), 1);
    close();
}

TEST(KernelReach, EndsAt32BitsOfSlots) {
    constexpr std::int64_t kEnd = INT64_C(1) << 32;
    EXPECT_TRUE(fits_kernel(kEnd - 1, Layout()));
    EXPECT_FALSE(fits_kernel(kEnd, Layout()));
    EXPECT_TRUE(fits_kernel(0, Layout(Shape{2}, Stride{kEnd - 1})));
    EXPECT_FALSE(fits_kernel(1, Layout(Shape{2}, Stride{kEnd - 1})));
    EXPECT_FALSE(fits_kernel(0, Layout(Shape{2}, Stride{kEnd})));
    EXPECT_FALSE(fits_kernel(0, Layout(Shape{kEnd}, Stride{0})));
    EXPECT_TRUE(fits_kernel(0, Layout(Shape{kEnd - 1}, Stride{0})));
}

TEST(DenseLayout, CountsIndicesOneByOne) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, IntTree{3, 4}, 1}}) {
        const Layout layout = dense(shape);
        ASSERT_EQ(layout.cosize(), layout.size());
        for (std::int64_t i = 0; i < layout.size(); ++i) EXPECT_EQ(layout.index(i), i);
    }
}

/// What can go wrong on the device, and what has to be said then.
struct Trouble {
    const char* name;
    std::function<void()> arrange;
    bool memory;
    const char* says;
};

std::string name_of(const ::testing::TestParamInfo<Trouble>& info) { return info.param.name; }

class FailedScatter : public OnDevice, public ::testing::WithParamInterface<Trouble> {};

/// Nothing of a failed scatter is left, and the same device works once the trouble is over.
TEST_P(FailedScatter, ChangesNothingAndCanBeRepeated) {
    // Slots 50..949, some of them twice.
    const Layout mapping(Shape{100, 10}, Stride{1, 89});
    for (const Order order : kOrders) {
        close();
        const auto onto = counted(1000);
        const auto before = words(*onto);
        const auto values = filled(std::vector<std::uint32_t>(1000, 0xdeadbeef));
        standin::plan().order = order;
        GetParam().arrange();
        try {
            scatter(*onto, 50, *values, mapping, 4);
            ADD_FAILURE() << "went through";
        } catch (const MemoryError& error) {
            EXPECT_TRUE(GetParam().memory) << error.what();
            EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
        } catch (const StateError& error) {
            EXPECT_FALSE(GetParam().memory) << error.what();
            EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
            EXPECT_THAT(error.what(), HasSubstr("nothing was changed"));
        }
        EXPECT_EQ(words(*onto), before);
        EXPECT_EQ(standin::violations(), std::vector<std::string>());
        standin::reset();
        scatter(*onto, 50, *filled(std::vector<std::uint32_t>(1000, 1)), mapping, 4);
        EXPECT_NE(words(*onto), before);
    }
    close();
}

INSTANTIATE_TEST_SUITE_P(
    Each, FailedScatter,
    ::testing::Values(
        Trouble{"CompilerRefuses", [] { standin::plan().compiler = false; }, false,
                "did not compile: compiler service"},
        Trouble{"SourceIsBroken",
                [] {
                    standin::plan().source_suffix =
                        "\nkernel void b(device uint* p [[buffer(0)]]) { *p = nope; }\n";
                },
                false, "nope"},
        Trouble{"FunctionIsMissing", [] { standin::plan().functions = false; }, false,
                "no function scatter_words"},
        Trouble{"PipelineIsRefused", [] { standin::plan().pipelines = false; }, false,
                "pipeline refused (arranged)"},
        Trouble{"StagingIsRefused", [] { standin::plan().allocations_left = 0; }, true,
                "4000 bytes was refused"},
        Trouble{"StagingExceedsTheLimit", [] { standin::plan().max_buffer = 3999; }, true,
                "exceeds the 3999 bytes"},
        Trouble{"NoCommandBuffer", [] { standin::plan().command_buffer = false; }, false,
                "no compute encoder"},
        Trouble{"NoEncoder", [] { standin::plan().encoder = false; }, false, "no compute encoder"},
        Trouble{"StopsAtOnce", [] { standin::plan().stop_after_threads = 0; }, false, "Timeout"},
        Trouble{"StopsAfterOneWrite", [] { standin::plan().stop_after_threads = 1; }, false, "Timeout"},
        Trouble{"StopsHalfWay", [] { standin::plan().stop_after_threads = 450; }, false, "Timeout"},
        Trouble{"StopsAfterTheLastWrite", [] { standin::plan().stop_after_threads = 4096; }, false,
                "Timeout"}),
    name_of);

}  // namespace
}  // namespace carrier::metal
