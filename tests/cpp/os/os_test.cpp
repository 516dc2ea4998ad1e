// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "carrier/host.hpp"
#include "os/file.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/stream.hpp"
#include "os/testing.hpp"

namespace carrier::os {
namespace {

class Files : public ::testing::Test {
  protected:
    void SetUp() override {
        folder = "/tmp/carrier-os-XXXXXX";
        ASSERT_EQ(mkdtemp(folder), 0);
        directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
        file = openat(directory.get(), "file", O_RDWR | O_CREAT | O_EXCL, 0600);
        ASSERT_TRUE(file);
    }
    void TearDown() override { std::filesystem::remove_all(folder); }
    std::string folder;
    UniqueFd directory;
    UniqueFd file;
};

const std::byte kText[5] = {std::byte{'h'}, std::byte{'e'}, std::byte{'l'}, std::byte{'l'}, std::byte{'o'}};

TEST_F(Files, AreReadAndWrittenByPosition) {
    EXPECT_EQ(pwrite(file.get(), kText, 5, 3), 5);
    std::byte back[8];
    EXPECT_EQ(pread(file.get(), back, 8, 0), 8);
    EXPECT_EQ(back[0], std::byte{0});
    EXPECT_EQ(std::memcmp(back + 3, kText, 5), 0);
    EXPECT_EQ(pread(file.get(), back, 8, 8), 0);
    struct stat s;
    ASSERT_EQ(fstat(file.get(), s), 0);
    EXPECT_EQ(s.st_size, 8);
}

TEST_F(Files, ReservingKeepsTheLength) {
    ASSERT_EQ(reserve(file.get(), 0, 100000), 0);
    struct stat s;
    ASSERT_EQ(fstat(file.get(), s), 0);
    EXPECT_EQ(s.st_size, 0);
    EXPECT_GE(s.st_blocks * 512, 100000);
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
    ASSERT_EQ(fstat(file.get(), s), 0);
    EXPECT_EQ(s.st_blocks, 0);
}

TEST_F(Files, DescriptorsDoNotSurviveExec) {
    EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(directory.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Files, InterruptedCallsAreMadeAgain) {
    for (const Call call : {Call::pread, Call::pwrite, Call::ftruncate, Call::fstat, Call::fallocate,
                            Call::openat, Call::unlinkat, Call::fchmod}) {
        testing::Fail fail(call, 0, EINTR);
        std::byte one[1] = {};
        struct stat s;
        EXPECT_EQ(pwrite(file.get(), one, 1, 0), 1);
        EXPECT_EQ(pread(file.get(), one, 1, 0), 1);
        EXPECT_EQ(ftruncate(file.get(), 10), 0);
        EXPECT_EQ(fstat(file.get(), s), 0);
        EXPECT_EQ(reserve(file.get(), 0, 10), 0);
        EXPECT_EQ(fchmod(file.get(), 0600), 0);
        EXPECT_TRUE(openat(directory.get(), "other", O_RDWR | O_CREAT, 0600));
        EXPECT_EQ(unlinkat(directory.get(), "other"), 0);
        EXPECT_TRUE(fail.happened());
        EXPECT_EQ(fail.failed(), call);
    }
}

TEST_F(Files, AHookFailsTheCallThatIsAskedFor) {
    std::byte one[1] = {};
    {
        testing::Fail fail(Call::pwrite, 1, ENOSPC);
        EXPECT_EQ(pwrite(file.get(), one, 1, 0), 1);
        EXPECT_EQ(pwrite(file.get(), one, 1, 0), -1);
        EXPECT_EQ(errno, ENOSPC);
        EXPECT_EQ(pwrite(file.get(), one, 1, 0), 1);
    }
    EXPECT_EQ(pwrite(file.get(), one, 1, 0), 1);
}

TEST_F(Files, LocksTellHoldersApart) {
    ASSERT_EQ(try_lock(directory.get()), 0);
    const UniqueFd again = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    EXPECT_EQ(try_lock(again.get()), -1);
    EXPECT_EQ(errno, EWOULDBLOCK);
    directory.reset();
    EXPECT_EQ(try_lock(again.get()), 0);
}

TEST_F(Files, ClosingInPlaceKeepsTheNumber) {
    const UniqueFd instead = open("/dev/null", O_RDONLY);
    const int number = file.get();
    close_in_place(number, instead.get());
    struct stat s;
    ASSERT_EQ(fstat(number, s), 0);
    EXPECT_TRUE(S_ISCHR(s.st_mode));
}

TEST_F(Files, DirectoriesAreListedWithoutTheirDots) {
    openat(directory.get(), "second", O_RDWR | O_CREAT, 0600);
    Directory entries(directory.get());
    ASSERT_TRUE(entries);
    std::set<std::string> names;
    while (const char* name = entries.next()) names.insert(name);
    EXPECT_EQ(names, (std::set<std::string>{"file", "second"}));
    EXPECT_FALSE(Directory(-1));
}

TEST_F(Files, ThePageCacheIsSeenEitherWay) {
    std::string data(1 << 20, 'x');
    ASSERT_EQ(pwrite(file.get(), reinterpret_cast<const std::byte*>(data.data()), data.size(), 0), 1 << 20);
    EXPECT_EQ(cached_bytes(file.get(), 0, data.size()), data.size());
    EXPECT_EQ(cached_bytes(file.get(), 5000, 100), 100u);
    {
        testing::Fail fail(Call::cachestat, 0, EPERM);
        EXPECT_EQ(cached_bytes(file.get(), 0, data.size()), data.size());
    }
    EXPECT_EQ(cached_bytes(-1, 0, 10), std::nullopt);
}

TEST_F(Files, TheSystemIsDescribed) {
    const auto where = file_system(file.get());
    ASSERT_TRUE(where);
    EXPECT_GT(where->available, 0u);
    EXPECT_FALSE(file_system(-1));
    const MemoryState memory = memory_state();
    EXPECT_GT(memory.available, std::size_t{1} << 20);
    EXPECT_LE(memory.available, total_memory());
    EXPECT_EQ(working_directory(), std::filesystem::current_path());
    EXPECT_GT(descriptor_limit(), 3u);
    EXPECT_NE(random_number(), random_number());
}

TEST(UniqueFd, MovesAndCloses) {
    UniqueFd a = open("/dev/null", O_RDONLY);
    const int number = a.get();
    UniqueFd b = std::move(a);
    EXPECT_EQ(b.get(), number);
    EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): what is left is what is looked at
    b.reset();
    struct stat s;
    EXPECT_EQ(fstat(number, s), -1);
}

TEST(Memory, LargePagesAreAlignedMovedAndCut) {
    for (const std::size_t bytes : {std::size_t{4096}, 3 * kHugePage}) {
        std::byte* p = map_pages(bytes, true);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % (bytes >= kHugePage ? kHugePage : 4096), 0u);
        p[0] = std::byte{1};
        p[bytes - 1] = std::byte{2};
        p = remap_pages(p, bytes, 9 * kHugePage);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(p[0], std::byte{1});
        EXPECT_EQ(p[bytes - 1], std::byte{2});
        EXPECT_EQ(p[9 * kHugePage - 1], std::byte{0});
        p = remap_pages(p, 9 * kHugePage, 4096);
        EXPECT_EQ(p[0], std::byte{1});
        unmap_pages(p, 4096);
    }
    testing::Fail fail(Call::mmap, 0, ENOMEM);
    EXPECT_EQ(map_pages(4096, false), nullptr);
}

TEST(Memory, StreamedRunsAreCopiesInEitherOrder) {
    std::vector<std::byte> from(3 * 16384 + 200);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>((i * 2654435761u) >> 11);
    for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 4096u, 16383u, 16384u, 16500u, 3u * 16384u + 100u})
        for (const std::size_t shift : {0u, 1u, 63u})
            for (const bool several_pages : {false, true}) {
                std::vector<std::byte> to(bytes + 128, std::byte{9});
                std::vector<std::byte> expected = to;
                std::memcpy(expected.data() + shift, from.data() + 3, bytes);
                stream_long(from.data() + 3, to.data() + shift, bytes, several_pages);
                EXPECT_TRUE(to == expected) << bytes << " bytes at " << shift;
            }
}

TEST(Process, ThreadsTakeNoSignals) {
    std::thread thread;
    bool blocked = false;
    ASSERT_TRUE(start_thread(thread, [&] {
        sigset_t set;
        pthread_sigmask(SIG_SETMASK, nullptr, &set);
        blocked = sigismember(&set, SIGINT) == 1 && sigismember(&set, SIGALRM) == 1;
    }));
    thread.join();
    EXPECT_TRUE(blocked);
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, nullptr, &own);
    EXPECT_EQ(sigismember(&own, SIGINT), 0);
    testing::Fail fail(Call::thread, 0, EAGAIN);
    EXPECT_FALSE(start_thread(thread, [] {}));
}

TEST(Process, CountsTheProcessorsItMayUse) {
    const unsigned all = processors();
    EXPECT_GE(all, 1U);
#if defined(__linux__)
    std::thread pinned([] {
        cpu_set_t mine;
        ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
        std::size_t first = 0;
        while (!CPU_ISSET(first, &mine)) ++first;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(processors(), 1U);
    });
    pinned.join();
    EXPECT_EQ(processors(), all);
#endif
}

TEST(Process, AForkIsCounted) {
    ASSERT_TRUE(watch_forks());
    const std::uint32_t before = generation();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(generation() == before + 1 ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(generation(), before);
}

TEST(Host, DoesNothingByDefault) {
    EXPECT_EQ(host().suspend(), nullptr);
    EXPECT_EQ(host().temporary_directory(), "");
    const Unlocked unlocked;
    Pulse pulse;
    pulse();
}

}  // namespace
}  // namespace carrier::os
