// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/snapshot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "carrier/errors.hpp"
#include "carrier/ownership.hpp"
#include "carrier/tensor.hpp"
#include "support/kinds.hpp"

namespace carrier::testing {
namespace {

class Twins : public ::testing::TestWithParam<KindCase> {
  protected:
    Ref<Carrier> numbered(std::int64_t size, bool writable = true) const {
        const Ref<Carrier> c = GetParam().make(size, DType::Int32(), writable);
        for (std::int64_t i = 0; writable && i < size; ++i) c->set_value(i, Value(i * i + 1));
        return c;
    }
};

INSTANTIATE_TEST_SUITE_P(Kinds, Twins, ::testing::ValuesIn([] {
                             std::vector<KindCase> found;
                             for (const KindCase& kind : all_kinds())
                                 for (const DType* dtype : kind.dtypes)
                                     if (dtype == &DType::Int32()) found.push_back(kind);
                             return found;
                         }()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Twins, AreIndependentUnownedAndOfVersionZero) {
    for (const bool writable : {true, false}) {
        const Ref<Carrier> c = numbered(6, writable);
        const std::uint64_t version = c->version();
        const Ref<Ownership> token = c->claim();
        const Ref<Carrier> twin = twin_of(*c);
        EXPECT_EQ(twin->kind(), c->kind());
        EXPECT_EQ(&twin->dtype(), &c->dtype());
        EXPECT_EQ(twin->size(), 6);
        EXPECT_EQ(twin->version(), 0U);
        EXPECT_FALSE(twin->is_owned());
        EXPECT_EQ(twin->is_mutable(), writable);
        for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(twin->get_value(i), c->get_value(i));
        if (writable) twin->set_value(0, Value(-1));
        EXPECT_EQ(c->get_value(0), writable ? Value(1) : Value(0));
        EXPECT_EQ(c->version(), version);
    }
}

TEST_P(Twins, OfReleasedOnesAreReleased) {
    const Ref<Carrier> c = numbered(3);
    c->release();
    const Ref<Carrier> twin = twin_of(*c);
    EXPECT_TRUE(twin->is_released());
    EXPECT_EQ(twin->kind(), c->kind());
    EXPECT_THROW(Snapshot{*c}, StateError);
}

TEST_P(Twins, OfEvictedOnesArePromotedAndTheOriginalStays) {
    const Ref<Carrier> c = numbered(5);
    auto* h = dynamic_cast<Evictable*>(c.get());
    if (h == nullptr) return;
    h->evict();
    const Ref<Carrier> made = twin_of(*c);
    auto* twin = dynamic_cast<Evictable*>(made.get());
    ASSERT_NE(twin, nullptr);
    EXPECT_FALSE(twin->is_evicted());
    EXPECT_TRUE(h->is_evicted());
    EXPECT_EQ(twin->primary()->kind(), h->primary()->kind());
    EXPECT_EQ(twin->secondary()->kind(), h->secondary()->kind());
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(twin->get_value(i), Value(i * i + 1));
}

TEST(SnapshotTest, KeepsWritersOutWhileItStands) {
    const auto c = make<CPU>(100'000, DType::Int32());
    std::atomic<bool> written{false};
    std::thread writer;
    {
        const Snapshot values(*c);
        ASSERT_NE(values.memory(), nullptr);
        EXPECT_EQ(carrier::bytes_of(values.size(), values.encoding()), 400'000U);
        writer = std::thread([&] {
            c->fill(Value(7), 0, 100'000);
            written = true;
        });
        std::vector<std::int32_t> part(100'000);
        for (int round = 0; round < 20; ++round) {
            values.read(0, 100'000, std::as_writable_bytes(std::span(part)));
            EXPECT_EQ(part, std::vector<std::int32_t>(100'000));
            std::this_thread::yield();
        }
        EXPECT_FALSE(written);
    }
    writer.join();
    EXPECT_EQ(c->get_value(99'999), Value(7));
}

TEST(TensorRestored, MayStandOnAReleasedCarrier) {
    const auto c = Ref<Carrier>(make<CPU>(4, DType::Int32()));
    const Layout line(Shape{3}, Stride{1});
    EXPECT_THROW(Tensor::restored(nullptr, {{c, 2, line}}, {}), ValueError);
    EXPECT_THROW(Tensor::restored(nullptr, {{c, -1, line}}, {}), ValueError);
    EXPECT_THROW(Tensor::restored(nullptr, {{c, 0, line}, {c, 0, line}}, {}), ValueError);
    EXPECT_THROW(Tensor::restored(&DType::Int32(), {{c, 0, line}}, {}), ValueError);
    EXPECT_EQ(Tensor::restored(nullptr, {{c, 1, line}}, {}).offset(), 1);
    c->release();
    const Tensor t = Tensor::restored(nullptr, {{c, 1, line}}, {});
    EXPECT_THROW(t.get_value(0), StateError);
    EXPECT_THROW(Tensor(c, 1, line), StateError);
}

}  // namespace
}  // namespace carrier::testing
