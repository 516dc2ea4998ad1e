// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Every system call of every operation is made to fail, one after the other: either it does not matter, or
// the operation is an error and everything is as it was.

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cstring>

#include "os/testing.hpp"
#include "storage/closer.hpp"
#include "storage/storage_test_base.hpp"
#include "storage/transfer.hpp"

namespace carrier::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Fails the nth call of any kind, and all reading of the system's state when transfers are to go directly.
class NthCall final : public os::testing::Hook {
  public:
    NthCall(int nth, int code, bool direct) : nth_(nth), code_(code), direct_(direct) {
        os::testing::hook.store(this);
    }
    ~NthCall() {
        storage::Closer::drain();  // no other thread makes calls while hooks change
        os::testing::hook.store(nullptr);
    }
    int before(os::Call call, std::size_t&) noexcept override {
        if (call == os::Call::read) return direct_ ? EIO : 0;
        if (seen_.fetch_add(1) != nth_) return 0;
        failed = static_cast<int>(call);
        return code_;
    }
    std::atomic<int> failed{-1};

  private:
    int nth_;
    int code_;
    bool direct_;
    std::atomic<int> seen_{0};
};

class Faults : public StorageTest {
  protected:
    void SetUp() override {
        StorageTest::SetUp();
        standing = file_of(pattern(100, 3));
        settle();
    }
    void settle() {
        storage::Closer::drain();
        storage::Descriptors::shrink();
    }
    /// Runs `attempt` on a file with each call failing in turn. `done` checks what success means.
    void each_call(const std::function<void(FileBlock&)>& attempt,
                   const std::function<void(FileBlock&)>& done, bool direct = false,
                   std::size_t begin = 5000) {
        for (const int code : {EIO, ENOSPC, EMFILE, ENOMEM, EAGAIN}) {
            bool more = true;
            for (int nth = 0; more && nth < 200; ++nth) {
                SCOPED_TRACE("call " + std::to_string(nth) + " fails with " + std::strerror(code));
                const Ref<FileBlock> file = file_of(pattern(begin));
                settle();
                const auto before = listing();
                const std::size_t descriptors = open_descriptors();
                bool threw = false;
                {
                    NthCall fault(nth, code, direct);
                    try {
                        attempt(*file);
                    } catch (const Error&) {
                        threw = true;
                    }
                    more = fault.failed >= 0;
                }
                ASSERT_TRUE(more || !threw);
                settle();
                if (threw) {
                    ASSERT_EQ(file->size(), begin);
                    ASSERT_EQ(bytes_of(*file), pattern(begin));
                    ASSERT_EQ(listing(), before);
                } else {
                    done(*file);
                }
                settle();
                ASSERT_LE(open_descriptors(), descriptors);
            }
            ASSERT_FALSE(more);
        }
    }
    Ref<FileBlock> standing;
};

TEST_F(Faults, Creating) {
    for (const bool first : {false, true}) {
        for (const bool named : {false, true}) {
            for (const int code : {EIO, ENOSPC, EMFILE, EACCES, ENOENT}) {
                bool more = true;
                for (int nth = 0; more; ++nth) {
                    SCOPED_TRACE("call " + std::to_string(nth) + " fails with " + std::strerror(code));
                    if (first) {
                        standing = nullptr;
                        remove_session();
                    }
                    settle();
                    const auto before = listing();
                    const std::size_t descriptors = open_descriptors();
                    {
                        NthCall fault(nth, code, false);
                        try {
                            const Ref<FileBlock> file =
                                FileBlock::create(named ? std::optional<std::string>("x") : std::nullopt);
                            os::testing::hook.store(nullptr);
                            file->append(pattern(10));
                            ASSERT_EQ(bytes_of(*file), pattern(10));
                            ASSERT_EQ(stat_of(file->path()).st_mode & 0777, 0600u);
                        } catch (const OsError& error) {
                            ASSERT_GE(fault.failed, 0);
                            ASSERT_EQ(error.code(), code);
                        }
                        more = fault.failed >= 0;
                    }
                    settle();
                    if (session_directory().empty()) {
                        ASSERT_TRUE(std::filesystem::is_empty(folder));
                    } else if (code != ENOENT) {
                        ASSERT_EQ(listing(), before);
                    }
                    ASSERT_LE(open_descriptors(), descriptors + (first || code == ENOENT ? 1 : 0));
                }
            }
        }
    }
}

TEST_F(Faults, Growing) {
    // By zeros that are written, and by a reservation.
    for (const std::size_t bytes : {std::size_t{20000}, 3 * kMiB})
        each_call([&](FileBlock& f) { f.grow(bytes); },
                  [&](FileBlock& f) {
                      auto expected = pattern(5000);
                      expected.resize(bytes);
                      ASSERT_EQ(bytes_of(f), expected);
                      ASSERT_GE(stat_of(f.path()).st_blocks * 512, static_cast<std::int64_t>(bytes));
                  });
}

TEST_F(Faults, GrowingSparsely) {
    each_call([](FileBlock& f) { f.grow(40 * kMiB); },
              [](FileBlock& f) {
                  ASSERT_EQ(f.size(), 40 * kMiB);
                  ASSERT_EQ(stat_of(f.path()).st_size, static_cast<std::int64_t>(40 * kMiB));
              });
}

TEST_F(Faults, GrowingWithoutReservations) {
    for (int nth = 0; nth < 3; ++nth) {
        const Ref<FileBlock> file = file_of(pattern(5000));
        struct NoReservations final : os::testing::Hook {
            explicit NoReservations(int n) : nth(n) { os::testing::hook.store(this); }
            ~NoReservations() { os::testing::hook.store(nullptr); }
            int before(os::Call call, std::size_t&) noexcept override {
                if (call == os::Call::fallocate) return EOPNOTSUPP;
                return call == os::Call::pwrite && nth-- == 0 ? ENOSPC : 0;
            }
            int nth;
        } hook(nth);
        if (nth < 2) {
            EXPECT_EQ(os_error([&] { file->grow(2 * kMiB); }), ENOSPC);
            EXPECT_EQ(stat_of(file->path()).st_size, 5000);
        } else {
            file->grow(2 * kMiB);
            auto expected = pattern(5000);
            expected.resize(2 * kMiB);
            EXPECT_EQ(bytes_of(*file), expected);
        }
    }
}

TEST_F(Faults, Writing) {
    each_call([](FileBlock& f) { f.write(10, pattern(1000, 2)); },
              [](FileBlock& f) {
                  auto expected = pattern(5000);
                  const auto part = pattern(1000, 2);
                  std::copy(part.begin(), part.end(), expected.begin() + 10);
                  ASSERT_EQ(bytes_of(f), expected);
              });
}

TEST_F(Faults, Appending) {
    // A little is written, much reserved first.
    for (const std::size_t bytes : {std::size_t{1000}, 4 * kMiB + 1000}) {
        const auto part = pattern(bytes, 2);
        auto expected = pattern(5000);
        expected.insert(expected.end(), part.begin(), part.end());
        each_call([&](FileBlock& f) { f.append(part); },
                  [&](FileBlock& f) { ASSERT_TRUE(bytes_of(f) == expected); });
    }
}

TEST_F(Faults, Reading) {
    each_call([](FileBlock& f) { ASSERT_EQ(bytes_of(f), pattern(5000)); }, [](FileBlock&) {});
}

TEST_F(Faults, Discarding) {
    for (int nth = 0; nth < 12; ++nth) {
        const auto before = listing();
        const Ref<FileBlock> file = file_of(pattern(5000));
        bool unlinked = true;
        {
            NthCall fault(nth, EIO, false);
            file->discard();
            unlinked = fault.failed != static_cast<int>(os::Call::unlinkat);
        }
        // A file that cannot be removed now goes with the session.
        EXPECT_EQ(listing() == before, unlinked);
    }
}

/// Evicting into a fresh file and promoting into fresh memory, little and much, buffered and direct.
TEST_F(Faults, Transfers) {
    struct Way {
        std::size_t bytes;
        bool direct;
        std::vector<int> codes;
    };
    const Way ways[] = {{70000, false, {EIO, ENOSPC, EMFILE, EINVAL}},
                        {17 * kMiB + 3, false, {ENOSPC}},
                        {17 * kMiB + 3, true, {EIO, ENOSPC, EMFILE, EINVAL}}};
    for (const auto& [bytes, direct, codes] : ways) {
        const Ref<HostBlock> source = host_pattern(bytes, 4);
        Pulse pulse(false);
        for (const int code : codes) {
            bool more = true;
            for (int nth = 0; more; ++nth) {
                SCOPED_TRACE("call " + std::to_string(nth) + " fails with " + std::strerror(code));
                settle();
                const auto before = listing();
                const std::size_t descriptors = open_descriptors();
                Ref<FileBlock> file = FileBlock::create();
                {
                    NthCall fault(nth, code, direct);
                    try {
                        file->extend_for_overwrite(bytes);
                        copy_blocks(*source, 0, *file, 0, bytes, pulse);
                        const Ref<HostBlock> back = HostBlock::allocate(bytes, Fill::none);
                        copy_blocks(*file, 0, *back, 0, bytes, pulse);
                        ASSERT_EQ(std::memcmp(back->data(), source->data(), bytes), 0);
                    } catch (const Error&) {
                        ASSERT_GE(fault.failed, 0);
                    }
                    more = fault.failed >= 0;
                }
                const auto length = static_cast<std::size_t>(stat_of(file->path()).st_size);
                ASSERT_TRUE(length == bytes || length == 0) << length;
                file = nullptr;
                settle();
                ASSERT_EQ(listing(), before);
                ASSERT_LE(open_descriptors(), descriptors);
            }
        }
    }
}

bool full_disk_in_child(const std::string& folder) {
    CHILD_CHECK(::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") == 0);
    const Ref<FileBlock> file = file_of(pattern(100));
    const auto before = listing();
    const auto free_blocks = [&] {
        storage::Closer::drain();
        struct statvfs s {};
        ::statvfs(folder.c_str(), &s);
        return s.f_bavail;
    };
    const auto room = free_blocks();
    // Space for a little is written, for more reserved, for much promised: the disk's refusal comes now, each
    // time.
    CHILD_CHECK(os_error([&] { file->grow(kMiB + 100); }) == ENOSPC);
    CHILD_CHECK(os_error([&] { file->grow(4 * kMiB); }) == ENOSPC);
    CHILD_CHECK(os_error([&] { file->grow(64 * kMiB); }) == ENOSPC);
    CHILD_CHECK(os_error([&] { file->append(pattern(4 * kMiB)); }) == ENOSPC);
    CHILD_CHECK(listing() == before && free_blocks() == room && bytes_of(*file) == pattern(100));
    const Ref<HostBlock> large = host_pattern(20 * kMiB);
    for (int attempt = 0; attempt < 3; ++attempt) {
        for (const std::size_t bytes : {4 * kMiB, 20 * kMiB}) {
            const Ref<FileBlock> target = FileBlock::create();
            target->extend_for_overwrite(bytes);
            Pulse pulse;
            CHILD_CHECK(os_error([&] { copy_blocks(*large, 0, *target, 0, bytes, pulse); }) == ENOSPC);
        }
        CHILD_CHECK(listing() == before && free_blocks() == room);
    }
    // Space that is still coming back in the background is waited for.
    for (int i = 0; i < 5; ++i) file_of(pattern(900000));
    CHILD_CHECK(free_blocks() == room);
    remove_session();
    return true;
}

TEST_F(Faults, AFullDiskChangesNothing) {
    standing = nullptr;
    remove_session();
    const bool permitted = in_child([] { return ::unshare(CLONE_NEWNS) == 0; });
    if (!permitted) GTEST_SKIP() << "a small disk cannot be mounted here";
    EXPECT_TRUE(in_child([this] {
        CHILD_CHECK(::unshare(CLONE_NEWNS) == 0);
        CHILD_CHECK(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
        return full_disk_in_child(folder);
    }));
}

}  // namespace
}  // namespace carrier::testing
