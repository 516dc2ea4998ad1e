// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "carrier/cpu.hpp"
#include "carrier/edit.hpp"
#include "carrier/errors.hpp"
#include "carrier/layout.hpp"
#include "carrier/ownership.hpp"
#include "carrier/tensor.hpp"
#include "support/kinds.hpp"

namespace carrier::testing {
namespace {

std::vector<std::int32_t> read_all(const Carrier& c) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(c.size()));
    c.read(0, c.size(), std::as_writable_bytes(std::span(out)));
    return out;
}

std::span<const std::byte> bytes(const std::vector<std::int32_t>& values) {
    return std::as_bytes(std::span(values));
}

std::vector<KindCase> int32_kinds() {
    std::vector<KindCase> kinds;
    for (const KindCase& kind : all_kinds())
        for (const DType* dtype : kind.dtypes)
            if (dtype == &DType::Int32()) kinds.push_back(kind);
    return kinds;
}

class BulkAccess : public ::testing::TestWithParam<KindCase> {
  protected:
    Ref<Carrier> fresh(std::int64_t size) const { return GetParam().make(size, DType::Int32(), true); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, BulkAccess, ::testing::ValuesIn(int32_kinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(BulkAccess, WritesAndReadsRangesInOneStep) {
    // Small, and large enough for the way that gives the host's lock up.
    for (const std::int64_t size : {std::int64_t{10}, std::int64_t{100'000}}) {
        if (size > 10 && GetParam().name.find("Custom") != std::string::npos) continue;
        const Ref<Carrier> c = fresh(size);
        std::vector<std::int32_t> values(static_cast<std::size_t>(size) - 3);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7 + 1);
        const std::uint64_t version = c->version();
        c->write(2, bytes(values));
        EXPECT_EQ(c->version(), version + 1);
        c->write(1, {});
        EXPECT_EQ(c->version(), version + 1);
        const std::vector<std::int32_t> all = read_all(*c);
        EXPECT_EQ(all[0], 0);
        EXPECT_EQ(all[1], 0);
        EXPECT_EQ(std::vector(all.begin() + 2, all.end() - 1), values);
        EXPECT_EQ(all.back(), 0);
        c->fill(Value(-5), 1, size);
        EXPECT_EQ(c->version(), version + 2);
        EXPECT_EQ(c->get_value(size - 1), Value(-5));
        EXPECT_EQ(c->get_value(0), Value(0));
    }
}

TEST_P(BulkAccess, RefusesRangesThatAreNotInside) {
    const Ref<Carrier> c = fresh(4);
    std::vector<std::int32_t> two(2);
    const auto room = std::as_writable_bytes(std::span(two));
    for (const auto& [start, stop] : {std::pair{-1, 1}, std::pair{3, 5}, std::pair{3, 2}, std::pair{5, 5}}) {
        EXPECT_THROW(c->read(start, stop, room), IndexError);
        EXPECT_THROW(c->fill(Value(1), start, stop), IndexError);
    }
    EXPECT_THROW(c->write(3, bytes(two)), IndexError);
    EXPECT_THROW(c->write(-1, bytes(two)), IndexError);
    EXPECT_THROW(c->fill(Value(1.5), 0, 4), TypeError);
    EXPECT_THROW(c->read(0, 1, room), ValueError);
    EXPECT_EQ(read_all(*c), std::vector<std::int32_t>(4));
    EXPECT_EQ(c->version(), 0U);
    c->release();
    EXPECT_THROW(c->read(0, 0, {}), StateError);
    EXPECT_THROW(c->write(0, bytes(two)), StateError);
}

TEST_P(BulkAccess, TensorsCountInLogicalOrder) {
    const Ref<Carrier> c = fresh(8);
    Tensor t(c, 1, Layout(Shape{2, 3}, Stride{3, 1}));
    const std::vector<std::int32_t> values{1, 2, 3, 4, 5, 6};
    t.write(0, bytes(values));
    EXPECT_EQ(read_all(*c), (std::vector<std::int32_t>{0, 1, 3, 5, 2, 4, 6, 0}));
    std::vector<std::int32_t> part(3);
    t.read(2, 5, std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part, (std::vector<std::int32_t>{3, 4, 5}));
    t.write(4, bytes({50, 60}));
    t.fill(Value(9), 0, 1);
    std::vector<std::int32_t> all(6);
    t.read(0, 6, std::as_writable_bytes(std::span(all)));
    EXPECT_EQ(all, (std::vector<std::int32_t>{9, 2, 3, 4, 50, 60}));
    EXPECT_EQ(c->version(), 3U);
    EXPECT_THROW(t.write(5, bytes({1, 2})), IndexError);
}

TEST_P(BulkAccess, TensorsFillWholeAndInPart) {
    const Ref<Carrier> c = fresh(9);
    Tensor t(c, 1, Layout(Shape{2, 3}, Stride{1, 3}));
    t.fill(Value(4), 0, 6);
    EXPECT_EQ(read_all(*c), (std::vector<std::int32_t>{0, 4, 4, 0, 4, 4, 0, 4, 4}));
    t.fill(Value(5), 3, 5);
    EXPECT_EQ(read_all(*c), (std::vector<std::int32_t>{0, 4, 4, 0, 4, 5, 0, 5, 4}));
    EXPECT_EQ(c->version(), 2U);
    t.fill(Value(6), 2, 2);
    t.write(6, {});
    EXPECT_EQ(c->version(), 2U);
    EXPECT_THROW(t.fill(Value(6), 2, 7), IndexError);
}

TEST(BulkOverlap, TensorsReadTheirOwnMemoryAsItWas) {
    for (const std::int64_t size : {std::int64_t{6}, std::int64_t{60'000}}) {
        const auto c = make<CPU>(size, DType::Int32());
        std::vector<std::int32_t> values(static_cast<std::size_t>(size));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
        c->write(0, bytes(values));
        Tensor t(c, 0, Layout(Shape{2, size / 2}, Stride{size / 2, 1}));
        const auto* own = reinterpret_cast<const std::byte*>(c->pointer());
        t.write(0, {own, static_cast<std::size_t>(size) * 4});
        std::vector<std::int32_t> read(values.size());
        t.read(0, size, std::as_writable_bytes(std::span(read)));
        EXPECT_EQ(read, values);
        t.write(1, {own, static_cast<std::size_t>(size - 1) * 4});
        EXPECT_EQ(c->version(), 3U);
    }
}

TEST_P(BulkAccess, EditsCountAtBothEndsAndShutOthersOut) {
    const Ref<Carrier> c = fresh(3);
    const std::int32_t seven = 7;
    {
        Edit edit(c);
        EXPECT_EQ(c->version(), 1U);
        EXPECT_THROW(Edit{c}, StateError);
        EXPECT_THROW(c->release(), StateError);
        EXPECT_THROW(c->claim(), StateError);
        std::memcpy(edit.block()->data() + 4, &seven, 4);
        edit.finish(true);
        EXPECT_THROW(edit.finish(true), StateError);
    }
    EXPECT_EQ(c->version(), 2U);
    EXPECT_EQ(c->get_value(1), Value(7));
    {
        Edit dropped(c);
        if (dropped.is_staged()) std::memset(dropped.block()->data(), 1, 4);
    }
    EXPECT_EQ(c->version(), 4U);
    EXPECT_EQ(c->get_value(0), Value(0));
    c->release();
    EXPECT_THROW(Edit{c}, StateError);
}

TEST(BulkAtomicity, AHookThatRefusesLeavesTheOldValues) {
    for (int k = 0;; ++k) {
        ASSERT_LT(k, 200);
        const auto script = std::make_shared<HookScript>();
        const Ref<Carrier> c = make<VectorCarrier>(std::vector<Value>{Value(1), Value(2), Value(3)},
                                                   DType::Int32(), true, script);
        script->calls = 0;
        script->fail_at = k;
        bool failed = false;
        try {
            c->write(0, bytes({7, 8, 9}));
        } catch (const HookFailure&) {
            failed = true;
        }
        script->fail_at = -1;
        EXPECT_EQ(read_all(*c),
                  failed ? (std::vector<std::int32_t>{1, 2, 3}) : (std::vector<std::int32_t>{7, 8, 9}))
            << k;
        EXPECT_EQ(c->version(), failed ? 0U : 1U);
        if (!failed) break;
    }
}

TEST(BulkSizes, BytesThatWouldWrapAroundAreNotTaken) {
    const Layout vast(Shape{std::int64_t{1} << 62}, Stride{0});
    for (const DType* dtype : {&DType::Float32(), &DType::Int32()}) {
        const Tensor t(Ref<Carrier>(make<CPU>(1, *dtype)), 0, vast);
        EXPECT_THROW(t.read(0, t.size(), {}), ValueError);
        EXPECT_THROW(HostBlock::allocate(bytes_of(t.size(), encoding_of(*dtype)), Fill::none), MemoryError);
    }
}

}  // namespace
}  // namespace carrier::testing
