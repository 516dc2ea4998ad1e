// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "carrier/errors.hpp"
#include "carrier/layout.hpp"
#include "carrier/ownership.hpp"
#include "carrier/tensor.hpp"
#include "support/kinds.hpp"

namespace carrier::testing {
namespace {

struct Case {
    KindCase kind;
    const DType* dtype;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.kind.name << " of " << c.dtype->name(); }

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const KindCase& kind : all_kinds())
        for (const DType* dtype : kind.dtypes) all.push_back({kind, dtype});
    return all;
}

Value sample(const DType& dtype, std::int64_t i) {
    switch (encoding_of(dtype)) {
        case Encoding::float32:
            return Value(static_cast<double>(i) + 0.5);
        case Encoding::int32:
            return Value(i - 2);
        default:
            return Value(i % 2 == 1);
    }
}

/// Every kind and dtype passes the same suite. See docs/contract.md.
class EveryCarrier : public ::testing::TestWithParam<Case> {
  protected:
    Ref<Carrier> fresh(std::int64_t size, bool writable = true) const {
        return GetParam().kind.make(size, dtype(), writable);
    }
    Ref<Carrier> filled(std::int64_t size) const {
        Ref<Carrier> c = fresh(size);
        for (std::int64_t i = 0; i < size; ++i) c->set_value(i, sample(dtype(), i));
        return c;
    }
    const DType& dtype() const { return *GetParam().dtype; }
};

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCarrier, ::testing::ValuesIn(cases()), [](const auto& info) {
    return info.param.kind.name + "_" + info.param.dtype->name();
});

TEST_P(EveryCarrier, ReadsAndWritesOneSlotAndCountsTheWrite) {
    const Ref<Carrier> c = fresh(3);
    EXPECT_EQ(c->size(), 3);
    EXPECT_EQ(&c->dtype(), &dtype());
    for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(c->get_value(i), storage_zero(dtype()));
        const std::uint64_t version = c->version();
        c->set_value(i, sample(dtype(), i));
        EXPECT_EQ(c->version(), version + 1);
        EXPECT_EQ(c->get_value(i), sample(dtype(), i));
    }
}

TEST_P(EveryCarrier, RefusesSlotsOutside) {
    const Ref<Carrier> c = filled(3);
    const std::uint64_t version = c->version();
    for (const std::int64_t bad :
         {std::int64_t{-1}, std::int64_t{3}, std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min()}) {
        EXPECT_THROW(c->get_value(bad), IndexError);
        EXPECT_THROW(c->set_value(bad, sample(dtype(), 0)), IndexError);
    }
    EXPECT_EQ(c->version(), version);
}

TEST_P(EveryCarrier, RefusesValuesOfAnotherKindAndChangesNothing) {
    const Ref<Carrier> c = filled(2);
    const std::uint64_t version = c->version();
    EXPECT_THROW(c->set_value(0, Value()), TypeError);
    if (encoding_of(dtype()) == Encoding::int32) {
        EXPECT_THROW(c->set_value(0, Value(1.0)), TypeError);
        EXPECT_THROW(c->set_value(0, Value(std::int64_t{1} << 31)), OverflowError);
    }
    if (encoding_of(dtype()) == Encoding::bool8) {
        EXPECT_THROW(c->set_value(0, Value(1)), TypeError);
    }
    EXPECT_EQ(c->get_value(0), sample(dtype(), 0));
    EXPECT_EQ(c->version(), version);
}

TEST_P(EveryCarrier, ImmutableRefusesWritesAndCanBeReleased) {
    const Ref<Carrier> c = fresh(2, false);
    EXPECT_FALSE(c->is_mutable());
    EXPECT_THROW(c->set_value(0, sample(dtype(), 0)), StateError);
    EXPECT_THROW(c->increment_version(), StateError);
    c->release();
    EXPECT_TRUE(c->is_released());
}

TEST_P(EveryCarrier, ReleasedIsTerminalAndStaysAPrototype) {
    const Ref<Carrier> c = filled(3);
    c->release();
    c->release();
    EXPECT_EQ(c->size(), 0);
    EXPECT_THROW(c->get_value(0), StateError);
    EXPECT_THROW(c->set_value(0, sample(dtype(), 0)), StateError);
    EXPECT_THROW(c->claim(), StateError);
    EXPECT_TRUE(c->is_mutable());
    EXPECT_TRUE(c->supports_storage_dtype(dtype()));
    const std::vector<Value> values{sample(dtype(), 1), sample(dtype(), 2)};
    const Ref<Carrier> twin = c->new_like(values);
    EXPECT_EQ(twin->size(), 2);
    EXPECT_EQ(twin->get_value(1), values[1]);
    EXPECT_EQ(twin->kind(), c->kind());
    EXPECT_EQ(c->allocate_like(4)->get_value(3), storage_zero(dtype()));
}

TEST_P(EveryCarrier, AllocatesZerosAndRefusesBadSizesAndDtypes) {
    const Ref<Carrier> c = fresh(1);
    const Ref<Carrier> d = c->allocate_like(5, {false, nullptr, false});
    EXPECT_EQ(d->size(), 5);
    EXPECT_FALSE(d->is_mutable());
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(d->get_value(i), storage_zero(dtype()));
    EXPECT_EQ(c->allocate_like(0)->size(), 0);
    EXPECT_THROW(c->allocate_like(-1), ValueError);
    for (const DType* other : {&DType::Any(), &DType::Integer(), &DType::Float64(), &DType::E4M3()})
        EXPECT_THROW(c->allocate_like(1, {true, other, false}), ValueError) << other->name();
}

TEST_P(EveryCarrier, OwnershipShutsOthersOut) {
    const Ref<Carrier> c = filled(2);
    {
        const Ref<Ownership> token = c->claim();
        EXPECT_TRUE(c->is_owned());
        EXPECT_FALSE(c->is_mutable());
        EXPECT_THROW(c->claim(), StateError);
        EXPECT_THROW(c->set_value(0, sample(dtype(), 1)), StateError);
        EXPECT_THROW(c->release(), StateError);
        EXPECT_EQ(c->get_value(1), sample(dtype(), 1));
        {
            const auto inside = token->access();
            EXPECT_TRUE(c->is_mutable());
            inside->set_value(0, sample(dtype(), 1));
            std::thread([&] { EXPECT_FALSE(c->is_mutable()); }).join();
            EXPECT_THROW(token->relinquish(), StateError);
        }
        token->relinquish();
        EXPECT_THROW(token->enter(), StateError);
    }
    EXPECT_FALSE(c->is_owned());
    { const Ref<Ownership> unspent = c->claim(); }
    EXPECT_TRUE(c->is_mutable());
}

TEST_P(EveryCarrier, ScattersAllOrNothing) {
    const Ref<Carrier> c = filled(6);
    const Layout three(Shape({3}), Stride({1}));
    const Ref<Carrier> from = make<CPU>(3, dtype());
    for (std::int64_t i = 0; i < 3; ++i) from->set_value(i, sample(dtype(), i + 3));
    const Tensor source(from, 0, three);
    const Tensor onto(c, 0, three);
    const Layout apart(Shape({3}), Stride({2}));
    if (!GetParam().kind.scatters) {
        EXPECT_THROW(c->scatter(source, onto, apart, 1), NotImplementedError);
        return;
    }
    const std::uint64_t version = c->version();
    EXPECT_THROW(c->scatter(source, onto, apart, 2), IndexError);
    EXPECT_THROW(c->scatter(source, onto, apart, -1), ValueError);
    EXPECT_THROW(c->scatter(source, source, apart, 0), ValueError);
    EXPECT_THROW(c->scatter(source, onto, Layout(Shape({2}), Stride({1})), 0), ValueError);
    EXPECT_EQ(c->version(), version);
    c->scatter(source, onto, apart, 1);
    EXPECT_EQ(c->version(), version + 1);
    for (std::int64_t i = 0; i < 6; ++i)
        EXPECT_EQ(c->get_value(i), i % 2 == 1 ? sample(dtype(), i / 2 + 3) : sample(dtype(), i)) << i;
}

TEST_P(EveryCarrier, ScatterReadsItsOwnCarrierAsASnapshot) {
    if (!GetParam().kind.scatters) GTEST_SKIP() << "FileBacked storage does not scatter";
    const Ref<Carrier> c = filled(5);
    const Layout four(Shape({4}), Stride({1}));
    const Tensor self(c, 0, four);
    c->scatter(self, self, four, 1);
    EXPECT_EQ(c->get_value(0), sample(dtype(), 0));
    for (std::int64_t i = 1; i < 5; ++i) EXPECT_EQ(c->get_value(i), sample(dtype(), i - 1)) << i;
}

}  // namespace
}  // namespace carrier::testing
