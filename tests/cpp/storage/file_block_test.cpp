// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <random>
#include <thread>

#include "storage/closer.hpp"
#include "storage/storage_test_base.hpp"

namespace carrier::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class FileBlocks : public StorageTest {};

TEST_F(FileBlocks, AreRawFilesOfTheirExactSize) {
    const Ref<FileBlock> file = FileBlock::create("name");
    EXPECT_EQ(file->size(), 0u);
    EXPECT_EQ(file->data(), nullptr);
    EXPECT_EQ(file->path(), session_directory() + "/name");
    file->append(pattern(1001));
    EXPECT_EQ(file->size(), 1001u);
    EXPECT_EQ(stat_of(file->path()).st_size, 1001);
    EXPECT_EQ(bytes_of(*file), pattern(1001));
    file->write(1, pattern(3, 9));
    auto expected = pattern(1001);
    const auto middle = pattern(3, 9);
    std::copy(middle.begin(), middle.end(), expected.begin() + 1);
    EXPECT_EQ(bytes_of(*file), expected);
    file->grow(5000);
    expected.resize(5000);
    EXPECT_EQ(bytes_of(*file), expected);
    EXPECT_EQ(stat_of(file->path()).st_size, 5000);
}

TEST_F(FileBlocks, GoWithTheirBlock) {
    std::string path;
    {
        const Ref<FileBlock> file = file_of(pattern(10));
        path = file->path();
        EXPECT_TRUE(std::filesystem::exists(path));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    const Ref<FileBlock> file = file_of(pattern(3 * kMiB));
    file->discard();
    file->discard();
    EXPECT_FALSE(std::filesystem::exists(file->path()));
    std::byte one[1];
    EXPECT_EQ(os_error([&] { file->read(0, one); }), ENOENT);
    EXPECT_EQ(os_error([&] { file->write(0, one); }), ENOENT);
}

TEST_F(FileBlocks, NamesAreBareAndTakenOnce) {
    for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                    std::string("/a"), std::string("a/"), std::string("a\0b", 3)})
        EXPECT_THROW(FileBlock::create(name), ValueError) << name;
    EXPECT_TRUE(listing().empty());
    EXPECT_EQ(os_error([] { FileBlock::create(std::string(300, 'x')); }), ENAMETOOLONG);
    const Ref<FileBlock> first = FileBlock::create("twin");
    first->append(pattern(10));
    EXPECT_EQ(os_error([] { FileBlock::create("twin"); }), EEXIST);
    EXPECT_EQ(bytes_of(*first), pattern(10));
    first->discard();
    EXPECT_EQ(FileBlock::create("twin")->size(), 0u);
    const Ref<FileBlock> in_the_way = FileBlock::create("carrier-1.raw");
    for (int i = 0; i < 3; ++i) EXPECT_NE(FileBlock::create()->path(), in_the_way->path());
}

TEST_F(FileBlocks, ANameThatSomebodyTookOverIsNotTouched) {
    Ref<FileBlock> first = FileBlock::create("shared");
    first->append(pattern(10));
    ::unlink(first->path().c_str());
    const Ref<FileBlock> second = FileBlock::create("shared");
    second->append(pattern(20, 2));
    storage::Descriptors::shrink();
    std::byte one[1];
    EXPECT_EQ(os_error([&] { first->read(0, one); }), ENOENT);
    first = nullptr;
    EXPECT_EQ(bytes_of(*second), pattern(20, 2));
    EXPECT_TRUE(std::filesystem::exists(second->path()));
}

TEST_F(FileBlocks, ModesDoNotDependOnTheUmask) {
    for (const mode_t mask : {0u, 0777u}) {
        remove_session();
        const mode_t before = ::umask(mask);
        const Ref<FileBlock> file = FileBlock::create();
        EXPECT_EQ(::umask(before), mask);
        EXPECT_EQ(stat_of(file->path()).st_mode & 07777, 0600u);
        EXPECT_EQ(stat_of(session_directory()).st_mode & 07777, 0700u);
    }
}

TEST_F(FileBlocks, AFileCutShortIsAnErrorAndNeverZeros) {
    for (const off_t left : {0, 3, 4096, 99999}) {
        const Ref<FileBlock> file = file_of(pattern(100000));
        ASSERT_EQ(::truncate(file->path().c_str(), left), 0);
        std::vector<std::byte> all(100000);
        EXPECT_EQ(os_error([&] { file->read(0, all); }), EIO);
        EXPECT_EQ(os_error([&] { file->read(99999, std::span(all).first(1)); }), EIO);
        EXPECT_EQ(os_error([&] { file->write(99999, std::span(all).first(1)); }), EIO);
        EXPECT_EQ(os_error([&] { file->append(all); }), EIO);
        EXPECT_EQ(os_error([&] { file->grow(200000); }), EIO);
        EXPECT_EQ(file->size(), 100000u);
        EXPECT_EQ(stat_of(file->path()).st_size, left);
    }
}

TEST_F(FileBlocks, AFileThatIsGoneIsAnError) {
    const Ref<FileBlock> file = file_of(pattern(10));
    ::unlink(file->path().c_str());
    storage::Descriptors::shrink();
    std::byte one[1];
    EXPECT_EQ(os_error([&] { file->read(0, one); }), ENOENT);
    EXPECT_EQ(os_error([&] { file->write(0, one); }), ENOENT);
}

TEST_F(FileBlocks, BytesToBeOverwrittenHaveNoValueBefore) {
    const Ref<FileBlock> file = FileBlock::create();
    file->extend_for_overwrite(100);
    EXPECT_EQ(file->size(), 100u);
    std::byte one[1];
    EXPECT_EQ(os_error([&] { file->read(0, one); }), EIO);
    file->write(0, pattern(60));
    file->write(60, pattern(40, 2));
    EXPECT_EQ(stat_of(file->path()).st_size, 100);
    EXPECT_THROW(file->extend_for_overwrite(99), ValueError);
    EXPECT_THROW(file->grow(99), ValueError);
}

TEST_F(FileBlocks, SmallGrowthIsReservedLargeGrowthIsSparse) {
    const Ref<FileBlock> small = FileBlock::create();
    small->grow(kMiB);
    EXPECT_GE(stat_of(small->path()).st_blocks * 512, static_cast<std::int64_t>(kMiB));
    const Ref<FileBlock> large = FileBlock::create();
    const std::size_t bytes = (std::size_t{1} << 31) + 64;
    large->grow(bytes);
    EXPECT_EQ(stat_of(large->path()).st_size, static_cast<std::int64_t>(bytes));
    EXPECT_LE(stat_of(large->path()).st_blocks * 512, static_cast<std::int64_t>(kMiB));
    const auto mark = pattern(8);
    large->write(bytes - 8, mark);
    std::vector<std::byte> read(8);
    large->read(bytes - 8, read);
    EXPECT_EQ(read, mark);
    large->read(56, read);
    EXPECT_EQ(read, std::vector<std::byte>(8));
    EXPECT_EQ(os_error([&] { large->grow(SIZE_MAX); }), EFBIG);
    EXPECT_EQ(large->size(), bytes);
}

TEST_F(FileBlocks, AFileSizeLimitChangesNothing) {
    EXPECT_TRUE(in_child([] {
        ::signal(SIGXFSZ, SIG_IGN);
        const Ref<FileBlock> file = file_of(pattern(1000));
        const rlimit limit{65536, 65536};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto before = listing();
        CHILD_CHECK(os_error([&] { file->grow(100000); }) == EFBIG);
        CHILD_CHECK(os_error([&] { file->grow(std::size_t{1} << 30); }) == EFBIG);
        CHILD_CHECK(os_error([&] { file->append(pattern(100000)); }) == EFBIG);
        CHILD_CHECK(listing() == before);
        CHILD_CHECK(file->size() == 1000);
        CHILD_CHECK(bytes_of(*file) == pattern(1000));
        remove_session();
        return true;
    }));
}

TEST_F(FileBlocks, TheirNumberIsNotLimitedByDescriptors) {
    for (const auto& [limit, count] : {std::pair<rlim_t, unsigned>{256, 10000}, {48, 300}}) {
        EXPECT_TRUE(in_child([limit = limit, count = count] {
            const rlimit bound{limit, limit};
            ::setrlimit(RLIMIT_NOFILE, &bound);
            std::vector<Ref<FileBlock>> files;
            for (unsigned i = 0; i < count; ++i) files.push_back(file_of(pattern(8, i)));
            std::mt19937 random(1);
            for (int i = 0; i < 3000; ++i) {
                const auto k = static_cast<unsigned>(random() % count);
                CHILD_CHECK(bytes_of(*files[k]) == pattern(8, k));
            }
            CHILD_CHECK(listing().size() == count);
            files.clear();
            CHILD_CHECK(listing().empty());
            remove_session();
            return true;
        }));
    }
}

TEST_F(FileBlocks, MakeRoomWhenOthersTookTheDescriptors) {
    EXPECT_TRUE(in_child([] {
        const rlimit bound{64, 64};
        std::vector<Ref<FileBlock>> files;
        for (unsigned i = 0; i < 40; ++i) files.push_back(file_of(pattern(8, i)));
        ::setrlimit(RLIMIT_NOFILE, &bound);
        std::vector<int> taken;
        for (int fd; (fd = ::open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(fd);
        for (unsigned i = 0; i < 40; ++i) CHILD_CHECK(bytes_of(*files[i]) == pattern(8, i));
        CHILD_CHECK(bytes_of(*file_of(pattern(9))) == pattern(9));
        for (const int fd : taken) ::close(fd);
        remove_session();
        return true;
    }));
}

TEST_F(FileBlocks, ServeManyThreadsFromFewDescriptors) {
    std::vector<Ref<FileBlock>> files;
    for (unsigned i = 0; i < 150; ++i) files.push_back(file_of(pattern(64, i)));
    std::atomic<bool> good{true};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < 500; ++i) {
                const auto k = static_cast<unsigned>(random() % files.size());
                if (bytes_of(*files[k]) != pattern(64, k)) good = false;
                if (i % 100 == 0) file_of(pattern(9 * kMiB));
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(good);
}

TEST_F(FileBlocks, MayBeDiscardedWhileTheyAreRead) {
    for (int round = 0; round < 20; ++round) {
        const Ref<FileBlock> file = file_of(pattern(100000));
        std::atomic<bool> good{true};
        std::atomic<bool> stop{false};
        // What it reads meanwhile is right or an error.
        std::thread reader([&, file] {
            try {
                while (!stop)
                    if (bytes_of(*file) != pattern(100000)) good = false;
            } catch (const OsError& error) {
                if (error.code() != ENOENT) good = false;
            }
        });
        std::this_thread::yield();
        file->discard();
        storage::Descriptors::shrink();
        stop = true;
        reader.join();
        EXPECT_TRUE(good);
    }
}

TEST_F(FileBlocks, DiscardedSpaceComesBackAndDescriptorsToo) {
    file_of(pattern(1));
    storage::Closer::drain();
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 3; ++i) file_of(pattern(9 * kMiB));
    storage::Closer::drain();
    storage::Descriptors::shrink();
    EXPECT_LE(open_descriptors(), before + 1);  // the closing thread's own may be just ending
    EXPECT_TRUE(listing().empty());
    EXPECT_EQ(FileBlock::live(), 0);
}

}  // namespace
}  // namespace carrier::testing
