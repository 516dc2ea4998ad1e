// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "os/testing.hpp"
#include "storage/storage_test_base.hpp"

namespace carrier::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
const std::vector<std::size_t> kSizes{0,    1,      15,       64,   511,          512,
                                      4096, 100000, kMiB - 1, kMiB, 3 * kMiB + 5, 40 * kMiB};

bool zero(const HostBlock& block) {
    for (std::size_t i = 0; i < block.size(); ++i)
        if (block.data()[i] != std::byte{0}) return false;
    return true;
}

TEST(HostBlock, HasAlignedZeroedDataAtEverySize) {
    for (const std::size_t bytes : kSizes) {
        const Ref<HostBlock> block = HostBlock::allocate(bytes, Fill::zero);
        ASSERT_EQ(block->size(), bytes);
        ASSERT_NE(block->data(), nullptr);
        const auto address = reinterpret_cast<std::uintptr_t>(block->data());
        EXPECT_EQ(address % (bytes >= kMiB ? 4096 : bytes >= 512 ? 64 : 16), 0u) << bytes;
        EXPECT_TRUE(zero(*block)) << bytes;
    }
}

TEST(HostBlock, ReusedMemoryIsZeroedAgain) {
    for (const std::size_t bytes : kSizes) {
        for (int round = 0; round < 3; ++round) {
            const Ref<HostBlock> block = HostBlock::allocate(bytes, Fill::zero);
            ASSERT_TRUE(zero(*block)) << bytes;
            std::memset(block->data(), 0xab, bytes);
        }
    }
}

TEST(HostBlock, KeepsWhatIsAskedWhenResized) {
    for (const std::size_t from : {std::size_t{10}, std::size_t{5000}, kMiB, 5 * kMiB, 40 * kMiB}) {
        for (const std::size_t to : {std::size_t{10}, std::size_t{7000}, kMiB + 1, 9 * kMiB, 50 * kMiB}) {
            const std::size_t keep = std::min(from, to);
            Ref<HostBlock> block = host_pattern(from);
            block = HostBlock::resized(std::move(block), to, keep);
            ASSERT_EQ(block->size(), to);
            const auto expected = pattern(from);
            ASSERT_EQ(std::memcmp(block->data(), expected.data(), keep), 0) << from << " to " << to;
            std::memset(block->data(), 1, to);
        }
    }
}

TEST(HostBlock, SharedBlockIsNotChangedByResizing) {
    const Ref<HostBlock> block = host_pattern(3 * kMiB);
    const Ref<HostBlock> other = HostBlock::resized(block, 2 * kMiB, 2 * kMiB);
    std::memset(other->data(), 0, other->size());
    EXPECT_EQ(bytes_of(*block), pattern(3 * kMiB));
}

TEST(HostBlock, WrappedMemoryStaysAndItsOwnerHearsTheEnd) {
    auto memory = pattern(100);
    int ends = 0;
    {
        const Ref<HostBlock> block = HostBlock::wrap(memory.data(), memory.size(), [&] { ++ends; });
        const Ref<HostBlock> again = block;
        EXPECT_EQ(block->data(), memory.data());
        EXPECT_EQ(bytes_of(*block), memory);
        EXPECT_EQ(ends, 0);
    }
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(memory, pattern(100));
}

TEST(HostBlock, CountsTheLiving) {
    const std::int64_t before = HostBlock::live();
    {
        const Ref<HostBlock> small = HostBlock::allocate(1, Fill::none);
        const Ref<HostBlock> large = HostBlock::allocate(kMiB, Fill::none);
        EXPECT_EQ(HostBlock::live(), before + 2);
    }
    EXPECT_EQ(HostBlock::live(), before);
}

TEST(HostBlock, AbsurdSizesAreMemoryErrors) {
    for (const std::size_t bytes :
         {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, SIZE_MAX / 2 - 100, std::size_t{1} << 50})
        EXPECT_THROW(HostBlock::allocate(bytes, Fill::zero), MemoryError) << bytes;
    try {
        HostBlock::allocate(std::size_t{1} << 50, Fill::none);
    } catch (const MemoryError& error) {
        EXPECT_NE(std::string(error.what()).find("1125899906842624"), std::string::npos) << error.what();
    }
}

TEST(HostBlock, EveryRefusedCallIsAMemoryErrorOrDoesNotMatter) {
    const std::int64_t before = HostBlock::live();
    for (const std::size_t bytes : {std::size_t{10}, 3 * kMiB, 40 * kMiB}) {
        for (int nth = 0;; ++nth) {
            HostBlock::trim_pool();
            os::testing::Fail fail(nth, ENOMEM);
            try {
                const Ref<HostBlock> block = HostBlock::allocate(bytes, Fill::zero);
                EXPECT_EQ(block->size(), bytes);
                EXPECT_TRUE(zero(*block));
            } catch (const MemoryError&) {
                EXPECT_TRUE(fail.happened());
            }
            if (!fail.happened()) break;
        }
    }
    for (int nth = 0;; ++nth) {
        Ref<HostBlock> block = host_pattern(40 * kMiB);
        os::testing::Fail fail(nth, ENOMEM);
        try {
            block = HostBlock::resized(std::move(block), 60 * kMiB, 40 * kMiB);
            EXPECT_EQ(block->size(), 60 * kMiB);
        } catch (const MemoryError&) {
            EXPECT_TRUE(fail.happened());
        }
        if (!fail.happened()) break;
    }
    EXPECT_EQ(HostBlock::live(), before);
}

TEST(HostBlock, RefusedMemoryIsTakenFromThePool) {
    HostBlock::trim_pool();
    HostBlock::allocate(20 * kMiB, Fill::none);  // now in the pool
    os::testing::Fail fail(os::Call::mmap, 0, ENOMEM);
    EXPECT_EQ(HostBlock::allocate(4 * kMiB, Fill::none)->size(), 4 * kMiB);
}

TEST(HostBlock, AnAddressSpaceLimitIsAMemoryError) {
#ifdef CARRIER_SANITIZED
    GTEST_SKIP() << "sanitizers need more address space than the limit leaves";
#endif
    EXPECT_TRUE(in_child([] {
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t limit = pages * 4096 + 64 * kMiB;
        const rlimit bound{limit, limit};
        ::setrlimit(RLIMIT_AS, &bound);
        std::vector<Ref<HostBlock>> held;
        held.reserve(1000);
        bool refused = false;
        for (int i = 0; i < 1000 && !refused; ++i) {
            try {
                held.push_back(HostBlock::allocate(2 * kMiB, Fill::zero));
                std::memset(held.back()->data(), 1, held.back()->size());
            } catch (const MemoryError&) {
                refused = true;
            }
        }
        CHILD_CHECK(refused);
        CHILD_CHECK(held.size() >= 10);
        held.clear();
        CHILD_CHECK(HostBlock::allocate(30 * kMiB, Fill::zero)->size() == 30 * kMiB);
        return true;
    }));
}

TEST(HostBlock, ThePoolServesManyThreads) {
    std::vector<std::thread> threads;
    std::atomic<bool> good{true};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&good, t] {
            for (int i = 0; i < 50; ++i) {
                const Ref<HostBlock> block =
                    HostBlock::allocate(kMiB * static_cast<std::size_t>(1 + (i + t) % 3), Fill::zero);
                if (block->data()[4097] != std::byte{0}) good = false;
                block->data()[4097] = std::byte{7};
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(good);
}

}  // namespace
}  // namespace carrier::testing
