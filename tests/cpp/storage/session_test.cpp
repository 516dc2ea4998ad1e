// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include <csignal>
#include <thread>

#include "storage/storage_test_base.hpp"
#include "storage/transfer.hpp"

namespace carrier::testing {
namespace {

class Sessions : public StorageTest {};

TEST_F(Sessions, BeginWithTheFirstFileAndEndWhenRemoved) {
    EXPECT_EQ(session_directory(), "");
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    const Ref<FileBlock> file = file_of(pattern(10));
    const std::string path = session_directory();
    EXPECT_EQ(path.rfind(folder + "/.carrier-storage-" + std::to_string(::getpid()) + "-", 0), 0u) << path;
    remove_session();
    remove_session();
    EXPECT_FALSE(std::filesystem::exists(path));
    const Ref<FileBlock> later = file_of(pattern(10));
    EXPECT_NE(session_directory(), path);
    EXPECT_TRUE(std::filesystem::exists(session_directory()));
}

TEST_F(Sessions, AreAbsoluteUnderARelativeParent) {
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(folder);
    std::filesystem::create_directory("relative");
    ::setenv("TMPDIR", "relative/", 1);
    const Ref<FileBlock> file = file_of(pattern(10));
    EXPECT_EQ(file->path().rfind(folder + "/relative/.carrier-storage-", 0), 0u) << file->path();
    std::filesystem::current_path(here);
    storage::Descriptors::shrink();
    EXPECT_EQ(bytes_of(*file), pattern(10));
    file->discard();
    remove_session();
    std::filesystem::remove(folder + "/relative");
}

TEST_F(Sessions, AParentThatIsNotThereIsAnError) {
    ::setenv("TMPDIR", "/nonexistent/folder", 1);
    EXPECT_EQ(os_error([] { FileBlock::create(); }), ENOENT);
    ::setenv("TMPDIR", folder.c_str(), 1);
    EXPECT_EQ(FileBlock::create()->size(), 0u);
}

TEST_F(Sessions, SurviveACleaner) {
    const Ref<FileBlock> lost = file_of(pattern(10));
    const std::string before = session_directory();
    std::filesystem::remove_all(before);
    const Ref<FileBlock> file = file_of(pattern(20));
    EXPECT_NE(session_directory(), before);
    EXPECT_EQ(bytes_of(*file), pattern(20));
    storage::Descriptors::shrink();
    std::byte one[1];
    EXPECT_EQ(os_error([&] { lost->read(0, one); }), ENOENT);
    lost->discard();
}

TEST_F(Sessions, OfTheDeadAreReapedThoseOfTheLivingAreNot) {
    const Ref<FileBlock> mine = file_of(pattern(10));
    ASSERT_TRUE(in_child([] {
        file_of(pattern(10)).detach();  // ends without its shutdown
        return true;
    }));
    auto found = list_sessions(folder);
    ASSERT_EQ(found.size(), 2u);
    for (const SessionInfo& info : found) {
        EXPECT_EQ(info.alive, info.path == session_directory());
        EXPECT_EQ(info.files, 1u);
    }
    EXPECT_EQ(reap_sessions(folder), 1);
    found = list_sessions(folder);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].path, session_directory());
    EXPECT_EQ(bytes_of(*mine), pattern(10));
    EXPECT_EQ(reap_sessions(folder), 0);
    EXPECT_EQ(reap_sessions("/nonexistent"), 0);
    EXPECT_EQ(os_error([] { list_sessions("/nonexistent"); }), ENOENT);
}

TEST_F(Sessions, OfAKilledProcessGoWhenTheNextBegins) {
    ASSERT_FALSE(in_child([] {
        file_of(pattern(10)).detach();
        ::raise(SIGKILL);
        return true;
    }));
    ASSERT_EQ(list_sessions(folder).size(), 1u);
    const Ref<FileBlock> mine = file_of(pattern(10));
    ASSERT_EQ(list_sessions(folder).size(), 1u);
    EXPECT_TRUE(list_sessions(folder)[0].alive);
}

TEST_F(Sessions, LinksAndStrangersAreLeftAlone) {
    const std::string victim = folder + "/victim";
    std::filesystem::create_directory(victim);
    ::close(::open((victim + "/file").c_str(), O_CREAT | O_WRONLY, 0600));
    std::filesystem::create_directory_symlink(victim, folder + "/.carrier-storage-1-link");
    std::filesystem::create_directory(folder + "/.carrier-new-recent");
    EXPECT_EQ(reap_sessions(folder), 0);
    EXPECT_TRUE(std::filesystem::exists(victim + "/file"));
    EXPECT_TRUE(std::filesystem::exists(folder + "/.carrier-new-recent"));
    // One that was never locked goes after an hour.
    const timespec old[2] = {{1, 0}, {1, 0}};
    ::utimensat(AT_FDCWD, (folder + "/.carrier-new-recent").c_str(), old, 0);
    EXPECT_EQ(reap_sessions(folder), 1);
    std::filesystem::remove(folder + "/.carrier-storage-1-link");
    std::filesystem::remove_all(victim);
}

TEST_F(Sessions, AChildReadsItsParentsFilesAndChangesNone) {
    const Ref<FileBlock> small = file_of(pattern(1000));
    const Ref<FileBlock> named = FileBlock::create("named");
    named->append(pattern(2000, 2));
    const auto before = listing();
    const std::string mine = session_directory();
    EXPECT_TRUE(in_child([&] {
        CHILD_CHECK(small->inherited() && named->inherited());
        CHILD_CHECK(session_directory().empty());
        CHILD_CHECK(bytes_of(*small) == pattern(1000));
        CHILD_CHECK(bytes_of(*named) == pattern(2000, 2));
        int refusals = 0;
        for (const std::function<void()>& change :
             {std::function<void()>([&] { small->write(0, pattern(1)); }),
              {[&] { small->append(pattern(1)); }},
              {[&] { small->grow(5000); }},
              {[&] { small->extend_for_overwrite(5000); }}}) {
            try {
                change();
            } catch (const StateError& error) {
                refusals += std::string(error.what()).find("forked") != std::string::npos;
            }
        }
        CHILD_CHECK(refusals == 4);
        Pulse pulse;
        const Ref<HostBlock> one = host_pattern(1000, 5);
        try {
            copy_blocks(*one, 0, *small, 0, 1000, pulse);
            return false;
        } catch (const StateError&) {
        }
        small->discard();
        named->discard();
        CHILD_CHECK(std::filesystem::exists(small->path()) && std::filesystem::exists(named->path()));
        const Ref<FileBlock> own = file_of(pattern(30));
        CHILD_CHECK(!own->inherited() && session_directory() != mine);
        CHILD_CHECK(bytes_of(*own) == pattern(30));
        remove_session();
        CHILD_CHECK(std::filesystem::exists(mine));
        return true;
    }));
    EXPECT_EQ(listing(), before);
    EXPECT_EQ(reap_sessions(folder), 0);
    EXPECT_EQ(bytes_of(*small), pattern(1000));
    EXPECT_EQ(bytes_of(*named), pattern(2000, 2));
}

TEST_F(Sessions, AChildDoesNotKeepItsParentsSessionLocked) {
    int wait[2];
    int ready[2];
    ASSERT_EQ(::pipe(wait), 0);
    ASSERT_EQ(::pipe(ready), 0);
    EXPECT_TRUE(in_child([&] {
        file_of(pattern(10)).detach();
        char c = 0;
        // Outlives its parent, whose lock must end all the same, from when the fork has returned there.
        if (::fork() == 0) {
            ::close(wait[1]);
            (void)!::write(ready[1], &c, 1);
            (void)!::read(wait[0], &c, 1);
            ::_exit(0);
        }
        return ::read(ready[0], &c, 1) == 1;
    }));
    EXPECT_EQ(reap_sessions(folder), 1);
    for (const int end : ready) ::close(end);
    ::close(wait[1]);
    ::close(wait[0]);
}

TEST_F(Sessions, ForksInTheMiddleOfWorkFindNoLockHeld) {
#ifdef CARRIER_SANITIZED
    // The address sanitizer's allocator may be locked there for ever; the thread sanitizer takes no new
    // threads.
    GTEST_SKIP() << "sanitizers do not follow a process with threads into its child";
#endif
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&stop] {
            while (!stop) {
                const Ref<FileBlock> file = file_of(pattern(100));
                (void)bytes_of(*file);
                const Ref<FileBlock> large = FileBlock::create();
                large->grow(std::size_t{9} << 20);  // closed in the background
            }
        });
    }
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(in_child([] {
            ::alarm(10);  // a hang ends the child
            const Ref<FileBlock> file = file_of(pattern(50));
            CHILD_CHECK(bytes_of(*file) == pattern(50));
            FileBlock::create()->grow(std::size_t{9} << 20);
            remove_session();
            return true;
        }));
    }
    stop = true;
    for (std::thread& t : threads) t.join();
}

TEST_F(Sessions, EndWithTheProcess) {
    const pid_t child = ::fork();
    if (child == 0) {
        file_of(pattern(10)).detach();
        std::exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace carrier::testing
