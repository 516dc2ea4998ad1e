// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "os/process.hpp"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>

#include <system_error>

#include "os/testing.hpp"

namespace carrier::os {

namespace {
std::atomic<std::uint32_t> forks{0};
}  // namespace

std::uint32_t generation() noexcept { return forks.load(std::memory_order_relaxed); }

bool watch_forks() noexcept {
    static const bool watching =
        at_fork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    return watching;
}

bool at_fork(void (*before)(), void (*after)(), void (*child)()) noexcept {
    return pthread_atfork(before, after, child) == 0;
}

bool start_thread(std::thread& thread, std::function<void()> body) noexcept {
    if (refused(Call::thread)) return false;
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = true;
    try {
        thread = std::thread(std::move(body));
    } catch (...) {
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return started;
}

std::uint64_t random_number() {
    std::uint64_t n = 0;
    std::size_t have = 0;
    while (have < sizeof n) {
        const ssize_t got = ::getrandom(reinterpret_cast<char*>(&n) + have, sizeof n - have, 0);
        if (got > 0) have += static_cast<std::size_t>(got);
        if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return n;
}

// NOLINTNEXTLINE(concurrency-mt-unsafe): as Python and the C library itself do
const char* environment(const char* name) noexcept {
    const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? "" : value;
}

}  // namespace carrier::os
