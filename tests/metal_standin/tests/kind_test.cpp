// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// The kind on the process's device, through the loader and the module beside this program.

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "carrier/cpu.hpp"
#include "carrier/errors.hpp"
#include "carrier/evictable.hpp"
#include "carrier/file_backed.hpp"
#include "carrier/generic.hpp"
#include "carrier/metal.hpp"
#include "carrier/tensor.hpp"
#include "kinds/metal/scatter.hpp"
#include "metal_standin.hpp"
#include "support/vector_carrier.hpp"

namespace carrier {
namespace {

using ::testing::HasSubstr;

class OnMetal : public ::testing::Test {
  protected:
    void SetUp() override {
        standin::reset();
        std::string why;
        ASSERT_TRUE(Metal::available(&why)) << why;
        before_ = standin::live()["StandinBuffer"];
    }
    void TearDown() override {
        EXPECT_EQ(standin::violations(), std::vector<std::string>());
        EXPECT_EQ(standin::live()["StandinBuffer"], before_);
    }

  private:
    long before_ = 0;
};

std::vector<double> floats(const Carrier& c) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < c.size(); ++i) all.push_back(c.get_value(i).floating());
    return all;
}

Tensor whole(const Ref<Carrier>& c) { return {c, 0, Layout(Shape{c->size()}, Stride{1})}; }

TEST_F(OnMetal, StoresThreeDtypesAndStartsWithZeros) {
    for (const DType* dtype : Metal::accepted()) {
        const auto c = make<Metal>(3, *dtype);
        EXPECT_EQ(c->get_value(2), storage_zero(*dtype));
        c->set_value(1, dtype == &DType::Float32() ? Value(2.5)
                        : dtype == &DType::Int32() ? Value(-7)
                                                   : Value(true));
        EXPECT_FALSE(c->get_value(1) == storage_zero(*dtype));
        EXPECT_EQ(c->version(), 1u);
    }
    EXPECT_THROW(make<Metal>(3, DType::Int8()), ValueError);
    EXPECT_THROW(make<Metal>(-1, DType::Int8()), ValueError);
}

TEST_F(OnMetal, HasEmptyStorage) {
    const auto c = make<Metal>(0);
    EXPECT_EQ(c->size(), 0);
    EXPECT_THROW(c->get_value(0), IndexError);
    EXPECT_EQ(c->new_like(std::vector<double>{})->size(), 0);
    EXPECT_EQ(c->new_like(std::vector<double>{1, 2})->size(), 2);
}

TEST_F(OnMetal, TooMuchIsAMemoryErrorThatLeavesTheReceiver) {
    const auto c = make<Metal>(3);
    EXPECT_THROW(c->allocate_like(INT64_C(1) << 40), MemoryError);
    standin::plan().allocations_left = 0;
    EXPECT_THROW(c->allocate_like(3), MemoryError);
    EXPECT_THROW(c->new_like(std::vector<double>{1}), MemoryError);
    standin::plan().allocations_left = -1;
    EXPECT_EQ(c->new_like(std::vector<double>{1})->size(), 1);
}

TEST_F(OnMetal, ScattersBetweenItsOwnByTheKernel) {
    const auto from = make<Metal>(3)->new_like(std::vector<double>{1, 2, 3});
    const Ref<Carrier> onto = make<Metal>(6);
    onto->scatter(whole(from), whole(onto), Layout(Shape{3}, Stride{2}), 1);
    EXPECT_EQ(floats(*onto), (std::vector<double>{0, 1, 0, 2, 0, 3}));
    EXPECT_EQ(onto->version(), 1u);
    EXPECT_EQ(standin::calls("commit"), 1);
}

TEST_F(OnMetal, ScattersFromEveryKind) {
    const Ref<Carrier> metal = make<Metal>(3, DType::Int32())->new_like(std::vector<int>{7, 8, 9});
    const Ref<Carrier> sources[] = {
        metal, make<CPU>(3, DType::Int32())->new_like(std::vector<int>{7, 8, 9}),
        make<FileBacked>(DType::Int32())->new_like(std::vector<int>{7, 8, 9}),
        make<Evictable>(make<Metal>(1, DType::Int32())->new_like(std::vector<int>{7, 8, 9}),
                        make<CPU>(0, DType::Int32())),
        make<testing::VectorCarrier>(std::vector<Value>{7, 8, 9}, DType::Int32(), true)};
    for (const Ref<Carrier>& source : sources) {
        const Ref<Carrier> onto = make<Metal>(4);  // Float32: converted on the way
        onto->scatter(whole(source), whole(onto), Layout(Shape{3}, Stride{1}), 1);
        EXPECT_EQ(floats(*onto), (std::vector<double>{0, 7, 8, 9})) << source->kind();
    }
}

TEST_F(OnMetal, ScattersOntoItselfAsFromASnapshot) {
    const Ref<Carrier> c = make<Metal>(4)->new_like(std::vector<double>{1, 2, 3, 4});
    c->scatter({c, 0, Layout(Shape{3}, Stride{1})}, whole(c), Layout(Shape{3}, Stride{1}), 1);
    EXPECT_EQ(floats(*c), (std::vector<double>{1, 1, 2, 3}));
}

TEST_F(OnMetal, GivesALargeScatterFromTheHostToTheKernel) {
    const std::int64_t n = metal::kLarge;
    const Ref<Carrier> from = make<CPU>(n, DType::Int32());
    for (std::int64_t i = 0; i < n; ++i) from->set_value(i, i);
    const Ref<Carrier> onto = make<Metal>(n, DType::Int32());
    onto->scatter({from, 0, Layout(Shape{n - 1}, Stride{1})}, whole(onto), Layout(Shape{n - 1}, Stride{1}));
    EXPECT_EQ(standin::calls("commit"), 0) << "one less is the host's";
    onto->scatter(whole(from), whole(onto), Layout(Shape{n}, Stride{1}));
    EXPECT_EQ(standin::calls("commit"), 1);
    for (std::int64_t i = 0; i < n; i += 997) EXPECT_EQ(onto->get_value(i), Value(i));
}

TEST_F(OnMetal, LeavesSlotsBeyond32BitsToTheHost) {
    constexpr std::int64_t kFar = (INT64_C(1) << 32) + 5;
    const Ref<Carrier> onto = make<Metal>(kFar + 2, DType::Bool(), true, true);
    const Ref<Carrier> from = make<Metal>(1, DType::Bool())->new_like(std::vector<bool>{true, true});
    onto->set_value(5, false);
    onto->scatter(whole(from), whole(onto), Layout(Shape{2}, Stride{1}), kFar);
    EXPECT_EQ(onto->get_value(kFar), Value(true));
    EXPECT_EQ(onto->get_value(kFar + 1), Value(true));
    EXPECT_EQ(onto->get_value(5), Value(false)) << "the slot that 32 bits would make of it";
    EXPECT_EQ(standin::calls("commit"), 0);
}

TEST_F(OnMetal, AFailedScatterKeepsValuesAndVersion) {
    const Ref<Carrier> from = make<Metal>(3)->new_like(std::vector<double>{1, 2, 3});
    const Ref<Carrier> onto = make<Metal>(3)->new_like(std::vector<double>{4, 5, 6});
    const auto scatter = [&] { onto->scatter(whole(from), whole(onto), Layout(Shape{3}, Stride{1})); };
    for (const long stop : {0, 1, 2, 300}) {
        standin::plan().stop_after_threads = stop;
        EXPECT_THROW(scatter(), StateError);
        EXPECT_EQ(floats(*onto), (std::vector<double>{4, 5, 6}));
        EXPECT_EQ(onto->version(), 0u);
    }
    standin::reset();
    for (const long left : {0, 1}) {
        standin::plan().allocations_left = left;
        EXPECT_THROW(scatter(), MemoryError);
        EXPECT_EQ(floats(*onto), (std::vector<double>{4, 5, 6}));
    }
    standin::reset();
    scatter();
    EXPECT_EQ(floats(*onto), (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(onto->version(), 1u);
}

TEST_F(OnMetal, IsATierOfHierarchies) {
    const std::vector<double> values{1.5, -2, 3};
    const std::array<Ref<Carrier>, 2> below{make<FileBacked>(DType::Float32()), make<CPU>(1)};
    for (const Ref<Carrier>& secondary : below) {
        const auto c = make<Evictable>(make<Metal>(1)->new_like(values), secondary);
        c->evict();
        EXPECT_THROW(c->get_value(0), StateError);
        c->promote();
        EXPECT_EQ(floats(*c), values);
        EXPECT_EQ(c->primary()->kind(), "Metal");
    }
    const auto c = make<Evictable>(make<CPU>(1)->new_like(values), make<Metal>(1));
    c->evict();
    c->promote();
    EXPECT_EQ(floats(*c), values);
}

TEST_F(OnMetal, AFailedPromotionCanBeRepeated) {
    const std::vector<double> values{1.5, -2, 3};
    const auto c = make<Evictable>(make<Metal>(1)->new_like(values), make<FileBacked>(DType::Float32()));
    c->evict();
    standin::plan().allocations_left = 0;
    EXPECT_THROW(c->promote(), MemoryError);
    EXPECT_TRUE(c->is_evicted());
    standin::reset();
    c->promote();
    EXPECT_EQ(floats(*c), values);
}

TEST_F(OnMetal, IsRefusedInAForkedChild) {
    const Ref<Carrier> c = make<Metal>(3);
    const Ref<Carrier> other = make<Metal>(3);
    const auto tier = make<Evictable>(make<Metal>(3), make<CPU>(1));
    const auto nested = make<Evictable>(make<Evictable>(make<Metal>(3), make<CPU>(1)), make<CPU>(1));
    const auto below = make<Evictable>(make<CPU>(3), make<Metal>(1));
    const pid_t child = fork();
    if (child == 0) {
        int refused = 0;
        const auto refuses = [&](auto call) {
            try {
                call();
            } catch (const StateError& error) {
                refused += std::string(error.what()).find("forked") != std::string::npos;
            }
        };
        refuses([] { make<Metal>(3); });
        refuses([&] { c->allocate_like(3); });
        refuses([&] { c->scatter(whole(other), whole(c), Layout(Shape{3}, Stride{1})); });
        refuses([&] {
            std::array<std::byte, 12> bytes{};
            c->read(0, 3, bytes);
        });
        int singles = 0;
        for (const Ref<Carrier>& each : {c, Ref<Carrier>(tier), Ref<Carrier>(nested)}) {
            singles += each->hot().has(Hot::kIndirect) && each->hot().data == nullptr && each->size() == 3;
            refuses([&] { each->get_value(0); });
            refuses([&] { each->set_value(0, 1.0); });
        }
        // What has nothing on Metal now goes on.
        below->set_value(0, 1.0);
        refuses([&] { below->evict(); });
        c->release();
        _exit(refused == 11 && singles == 3 && !below->hot().has(Hot::kIndirect) ? 0 : refused + 10);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (const Ref<Carrier>& each : {c, Ref<Carrier>(tier), Ref<Carrier>(nested)}) {
        EXPECT_FALSE(each->hot().has(Hot::kIndirect));
        each->set_value(0, 1.0);
    }
}

}  // namespace
}  // namespace carrier
