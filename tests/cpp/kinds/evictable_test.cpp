// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/evictable.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <filesystem>
#include <thread>

#include "carrier/errors.hpp"
#include "carrier/ownership.hpp"
#include "support/kinds.hpp"

namespace carrier::testing {
namespace {

Ref<Carrier> cpu_of(std::int64_t size, const DType& dtype = DType::Int32()) {
    const Ref<Carrier> c = make<CPU>(size, dtype);
    for (std::int64_t i = 0; i < size; ++i) c->set_value(i, Value(i + 1));
    return c;
}

TEST(Evictable, RefusesTiersThatCannotServeAndLeavesThemFree) {
    const Ref<Carrier> a = cpu_of(2);
    const Ref<Carrier> b = make<CPU>(2, DType::Int32());
    const Ref<Carrier> gone = cpu_of(1);
    gone->release();
    EXPECT_THROW(make<Evictable>(a, a), ValueError);
    EXPECT_THROW(make<Evictable>(a, gone), StateError);
    EXPECT_THROW(make<Evictable>(gone, a), StateError);
    EXPECT_THROW(make<Evictable>(a, make<CPU>(2, DType::Float32())), TypeError);
    EXPECT_THROW(make<Evictable>(a, make<CPU>(2, DType::Int32(), false)), StateError);
    EXPECT_THROW(make<Evictable>(make<CPU>(0, DType::Int32()), b), ValueError);
    EXPECT_THROW(make<Evictable>(make<CPU>(1, DType::Bool()), make<FileBacked>(DType::Int32())), TypeError);
    EXPECT_FALSE(a->is_owned());
    EXPECT_FALSE(b->is_owned());
    const Ref<Evictable> e = make<Evictable>(a, b);
    EXPECT_THROW(make<Evictable>(a, make<CPU>(2, DType::Int32())), StateError);
    EXPECT_EQ(e->primary(), a);
    EXPECT_EQ(e->secondary(), b);
}

TEST(Evictable, MovesEveryBitDownAndUp) {
    const Ref<CPU> cpu = make<CPU>(4, DType::Float32());
    const std::uint32_t patterns[] = {0x7FA12345U, 0xFFC00001U, 0x80000000U, 0x00000001U};
    std::memcpy(cpu->hot().data, patterns, sizeof patterns);
    const Ref<Evictable> e =
        make<Evictable>(Ref<Carrier>(cpu), Ref<Carrier>(make<FileBacked>(DType::Float32())));
    for (int round = 0; round < 3; ++round) {
        e->evict();
        EXPECT_TRUE(e->is_evicted());
        EXPECT_EQ(e->size(), 4);
        EXPECT_THROW(e->get_value(0), StateError);
        EXPECT_TRUE(e->primary()->is_released());
        e->promote();
        EXPECT_TRUE(e->secondary()->is_released());
        EXPECT_EQ(std::memcmp(e->hot().data, patterns, sizeof patterns), 0);
    }
    EXPECT_EQ(e->version(), 0U);
}

TEST(Evictable, ReusesALargeEnoughSecondaryAndReplacesASmallOne) {
    const Ref<Carrier> wide = make<CPU>(9, DType::Int32());
    const Ref<Evictable> e = make<Evictable>(cpu_of(3), wide);
    e->evict();
    EXPECT_EQ(e->secondary(), wide);
    EXPECT_EQ(wide->get_value(2), Value(3));
    e->promote();
    EXPECT_EQ(e->size(), 3);
    EXPECT_FALSE(wide->is_owned() && !wide->is_released());
    e->evict();
    EXPECT_FALSE(e->secondary() == wide);
    EXPECT_FALSE(wide->is_owned());
}

TEST(Evictable, WritesCountOnceOnTheWrapperAndShowOnThePrimary) {
    const Ref<Carrier> primary = cpu_of(2);
    const std::uint64_t before = primary->version();
    {
        const Ref<Evictable> e = make<Evictable>(primary, Ref<Carrier>(make<CPU>(0, DType::Int32())));
        e->set_value(0, Value(7));
        EXPECT_EQ(e->version(), 1U);
        EXPECT_EQ(primary->version(), before + 1);
        EXPECT_THROW(primary->set_value(0, Value(1)), StateError);
        EXPECT_EQ(primary->get_value(0), Value(7));
    }
    EXPECT_FALSE(primary->is_owned());
    EXPECT_EQ(primary->version(), before + 1);
    primary->set_value(0, Value(8));
    EXPECT_EQ(primary->version(), before + 2);
}

TEST(Evictable, OwnedOneRefusesTransitionsOutsideTheScope) {
    const Ref<Evictable> e = make<Evictable>(cpu_of(2), Ref<Carrier>(make<CPU>(0, DType::Int32())));
    const Ref<Ownership> token = e->claim();
    EXPECT_THROW(e->evict(), StateError);
    EXPECT_THROW(e->release(), StateError);
    const auto inside = token->access();
    e->evict();
    e->promote();
    EXPECT_EQ(e->get_value(1), Value(2));
}

TEST(Evictable, ReleaseReleasesBothTiers) {
    const Ref<Evictable> e = make<Evictable>(cpu_of(2), Ref<Carrier>(make<FileBacked>(DType::Int32())));
    e->evict();
    const std::string path = static_cast<FileBacked&>(*e->secondary()).path();
    EXPECT_TRUE(std::filesystem::exists(path));
    e->release();
    EXPECT_TRUE(e->primary()->is_released());
    EXPECT_TRUE(e->secondary()->is_released());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_THROW(e->promote(), StateError);
    EXPECT_THROW(e->evict(), StateError);
    EXPECT_EQ(e->new_like(std::vector<int>{4, 5})->get_value(1), Value(5));
}

struct TierPair {
    const char* name;
    bool custom_primary;
    bool custom_secondary;
};

class FailingTiers : public ::testing::TestWithParam<TierPair> {};
INSTANTIATE_TEST_SUITE_P(Pairs, FailingTiers,
                         ::testing::Values(TierPair{"primary", true, false},
                                           TierPair{"secondary", false, true}, TierPair{"both", true, true}),
                         [](const auto& info) { return info.param.name; });

/// Fails every hook call of a transition, one at a time: nothing may change, and a retry succeeds.
TEST_P(FailingTiers, TransitionsAreAtomicAtEveryHookCall) {
    for (const bool down : {true, false}) {
        for (int k = 0;; ++k) {
            ASSERT_LT(k, 1000);
            const auto script = std::make_shared<HookScript>();
            const auto tier = [&](bool custom, std::int64_t n) {
                std::vector<Value> values;
                for (std::int64_t i = 0; i < n; ++i) values.emplace_back(i + 1);
                return custom ? Ref<Carrier>(make<VectorCarrier>(values, DType::Int32(), true, script))
                              : cpu_of(n);
            };
            const Ref<Evictable> e =
                make<Evictable>(tier(GetParam().custom_primary, 3), tier(GetParam().custom_secondary, 0));
            e->set_value(1, Value(20));
            if (!down) e->evict();
            const Ref<Carrier> primary = e->primary();
            const Ref<Carrier> secondary = e->secondary();
            script->calls = 0;
            script->fail_at = k;
            bool failed = false;
            try {
                down ? e->evict() : e->promote();
            } catch (const HookFailure&) {
                failed = true;
            }
            script->fail_at = -1;
            if (!failed) {
                EXPECT_EQ(e->is_evicted(), down);
                break;
            }
            EXPECT_EQ(e->is_evicted(), !down) << k;
            EXPECT_EQ(e->primary(), primary) << k;
            EXPECT_EQ(e->secondary(), secondary) << k;
            EXPECT_EQ(e->version(), 1U);
            EXPECT_EQ(primary->is_owned(), down);  // an evicted hierarchy has given its primary up
            EXPECT_TRUE(secondary->is_owned());
            down ? e->evict() : e->promote();
            if (down) e->promote();
            EXPECT_EQ(e->get_value(0), Value(1));
            EXPECT_EQ(e->get_value(1), Value(20));
            EXPECT_EQ(e->get_value(2), Value(3));
        }
    }
}

TEST(Evictable, AHookCannotUseTheHierarchyWhoseTransitionRunsIt) {
    const auto script = std::make_shared<HookScript>();
    const Ref<Carrier> primary =
        make<VectorCarrier>(std::vector<Value>{Value(1), Value(2)}, DType::Int32(), true, script);
    const Ref<Evictable> e = make<Evictable>(primary, Ref<Carrier>(make<CPU>(0, DType::Int32())));
    int refused = 0;
    script->before = [&](const std::string& name) {
        if (name != "get") return;
        EXPECT_THROW(e->get_value(0), StateError);
        EXPECT_THROW(e->evict(), StateError);
        EXPECT_THROW(e->release(), StateError);
        ++refused;
    };
    e->evict();
    EXPECT_EQ(refused, 2);
    EXPECT_TRUE(e->is_evicted());
}

TEST(Evictable, TransitionsAndReleaseMayMeetInThreads) {
    for (int round = 0; round < 20; ++round) {
        const Ref<Evictable> e =
            make<Evictable>(cpu_of(50'000), Ref<Carrier>(make<FileBacked>(DType::Int32())));
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&e, t] {
                try {
                    for (int i = 0; i < 5; ++i) (t % 2 == 0) ? e->evict() : e->promote();
                    if (t == 3) e->release();
                } catch (const StateError&) {
                    // released by the other thread
                }
            });
        for (std::thread& t : threads) t.join();
        EXPECT_TRUE(e->is_released());
    }
}

}  // namespace
}  // namespace carrier::testing
