// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "os/process.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

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
namespace {
[[maybe_unused]] const bool ready = watch_forks();
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

unsigned processors() noexcept {
#if defined(__linux__)
    cpu_set_t allowed;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return static_cast<unsigned>(std::max(CPU_COUNT(&allowed), 1));
#endif
    return std::max(std::thread::hardware_concurrency(), 1u);
}

std::uint64_t random_number() noexcept {
    std::uint64_t n = 0;
    while (::getrandom(&n, sizeof n, 0) != sizeof n) {
        if (errno == EINTR) continue;
        // No source of randomness: names are exclusive all the same.
        n = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        return n * 0x9e3779b97f4a7c15u;
    }
    return n;
}

const char* environment(const char* name) noexcept {
    const char* value = ::getenv(name);  // NOLINT(concurrency-mt-unsafe): as the C library does
    return value == nullptr ? "" : value;
}

int process_id() noexcept { return ::getpid(); }

unsigned user_id() noexcept { return ::geteuid(); }

}  // namespace carrier::os
