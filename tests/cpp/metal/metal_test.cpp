// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// What holds on every machine: with Metal the contract of the other kinds, without it a refusal that helps.

#include "carrier/metal.hpp"

#include <gmock/gmock.h>

#include "carrier/cpu.hpp"
#include "carrier/errors.hpp"
#include "carrier/evictable.hpp"
#include "carrier/tensor.hpp"

namespace carrier {
namespace {

using ::testing::HasSubstr;

TEST(MetalArguments, ComeBeforeTheRuntime) {
    EXPECT_THROW(make<Metal>(-1), ValueError);
    EXPECT_THROW(make<Metal>(1, DType::Int8()), ValueError);
}

TEST(MetalRefusal, SaysWhatToUseInstead) {
    std::string why;
    if (Metal::available(&why)) GTEST_SKIP() << "there is a Metal device here";
    EXPECT_THAT(why, HasSubstr("use CPU"));
    try {
        make<Metal>(3);
        FAIL() << "storage without a device";
    } catch (const StateError& error) {
        EXPECT_EQ(error.what(), why);
    }
}

class MetalStorage : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        if (!Metal::available(&why)) GTEST_SKIP() << why;
    }
};

TEST_F(MetalStorage, StartsWithZerosAndKeepsValues) {
    for (const DType* dtype : Metal::accepted()) {
        const auto c = make<Metal>(1000, *dtype);
        for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(c->get_value(i), storage_zero(*dtype));
        const Value one = dtype == &DType::Bool()    ? Value(true)
                          : dtype == &DType::Int32() ? Value(1)
                                                     : Value(1.0);
        c->set_value(999, one);
        EXPECT_EQ(c->get_value(999), one);
        EXPECT_EQ(c->version(), 1u);
    }
    EXPECT_EQ(make<Metal>(0)->size(), 0);
}

TEST_F(MetalStorage, ScattersOnTheDeviceAsTheHostDoes) {
    const std::int64_t n = 100'000;
    const Layout mapping(Shape{100, n / 100}, Stride{n / 100, 1});
    for (const DType* dtype : Metal::accepted()) {
        const Ref<Carrier> host = make<CPU>(n, *dtype);
        for (std::int64_t i = 0; i < n; ++i)
            host->set_value(i, dtype == &DType::Bool()    ? Value(i % 3 == 0)
                               : dtype == &DType::Int32() ? Value(i)
                                                          : Value(0.5 * static_cast<double>(i)));
        const Layout dense(Shape{100, n / 100}, Stride{1, 100});
        const Ref<Carrier> device = make<Metal>(n + 1, *dtype);
        const Ref<Carrier> want = make<CPU>(n + 1, *dtype);
        device->scatter({host, 0, dense}, {device, 0, dense}, mapping, 1);
        want->scatter({host, 0, dense}, {want, 0, dense}, mapping, 1);
        for (std::int64_t i = 0; i <= n; ++i) ASSERT_EQ(device->get_value(i), want->get_value(i)) << i;
    }
}

TEST_F(MetalStorage, LetsTheLaterIndexWin) {
    const Ref<Carrier> from = make<Metal>(1)->new_like(std::vector<double>{1, 2, 3, 4});
    const Ref<Carrier> onto = make<Metal>(2);
    onto->scatter({from, 0, Layout(Shape{2, 2}, Stride{1, 2})}, {onto, 0, Layout(Shape{2}, Stride{1})},
                  Layout(Shape{2, 2}, Stride{1, 0}));
    EXPECT_EQ(onto->get_value(0), Value(3.0));
    EXPECT_EQ(onto->get_value(1), Value(4.0));
}

TEST_F(MetalStorage, IsATier) {
    const auto c = make<Evictable>(make<Metal>(1)->new_like(std::vector<double>{1, 2}), make<CPU>(1));
    c->evict();
    c->promote();
    EXPECT_EQ(c->get_value(1), Value(2.0));
}

}  // namespace
}  // namespace carrier
