// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "carrier/errors.hpp"
#include "carrier/file_block.hpp"
#include "carrier/host_block.hpp"
#include "carrier/session.hpp"
#include "storage/descriptors.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CARRIER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CARRIER_SANITIZED 1
#endif
#endif

namespace carrier::testing {

/// Sessions in a folder of the test's own, which must be empty again at the end.
class StorageTest : public ::testing::Test {
  protected:
    void SetUp() override {
        remove_session();
        std::string pattern = "/tmp/carrier-test-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder = pattern;
        ::setenv("TMPDIR", folder.c_str(), 1);
    }
    void TearDown() override {
        remove_session();
        EXPECT_TRUE(std::filesystem::is_empty(folder)) << "files were left in " << folder;
        std::filesystem::remove_all(folder);
        ::unsetenv("TMPDIR");
    }
    std::string folder;
};

inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 7);
    return data;
}

inline Ref<HostBlock> host_pattern(std::size_t bytes, unsigned seed = 1) {
    Ref<HostBlock> block = HostBlock::allocate(bytes, Fill::none);
    block->write(0, pattern(bytes, seed));
    return block;
}

inline std::vector<std::byte> bytes_of(const Block& block) {
    std::vector<std::byte> data(block.size());
    block.read(0, data);
    return data;
}

inline Ref<FileBlock> file_of(const std::vector<std::byte>& data) {
    Ref<FileBlock> file = FileBlock::create();
    file->append(data);
    return file;
}

inline struct stat stat_of(const std::string& path) {
    struct stat s {};
    ::lstat(path.c_str(), &s);
    return s;
}

inline std::size_t open_descriptors() {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
    return n;
}

/// What the session directory holds: name to length and disk blocks.
inline std::map<std::string, std::pair<std::int64_t, std::int64_t>> listing() {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> found;
    const std::string directory = session_directory();
    if (directory.empty()) return found;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const struct stat s = stat_of(entry.path());
        found[entry.path().filename()] = {s.st_size, s.st_blocks};
    }
    return found;
}

/// The code of the OsError that `f` throws, 0 when it throws none.
inline int os_error(const std::function<void()>& f) {
    try {
        f();
    } catch (const OsError& error) {
        return error.code();
    }
    return 0;
}

/// Runs `body` in a forked child; true when it returned true and the child ended by itself.
inline bool in_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        bool good = false;
        try {
            good = body();
        } catch (const std::exception& error) {
            ::dprintf(2, "in the child: %s\n", error.what());
        }
        ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// In children, where gtest's own checks would be lost.
#define CHILD_CHECK(condition)                                                  \
    do {                                                                        \
        if (!(condition)) {                                                     \
            ::dprintf(2, "%s:%d: child: %s\n", __FILE__, __LINE__, #condition); \
            return false;                                                       \
        }                                                                       \
    } while (false)

}  // namespace carrier::testing
