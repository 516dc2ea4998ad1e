// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/crew.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "carrier/errors.hpp"
#include "os/process.hpp"

namespace carrier::storage {

namespace {

constexpr std::size_t kMostThreads = 8;

/// What the threads share. On the heap: in a forked child the threads are gone, and joining them would never
/// end.
struct Crew {
    std::array<std::thread, kMostThreads> threads;
    std::size_t started = 0;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex mutex;
    std::exception_ptr error;

    void fail() noexcept {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        stop.store(true, std::memory_order_relaxed);
    }
    void join() noexcept {
        for (std::size_t i = 0; i < started; ++i) threads[i].join();
        started = 0;
    }
    ~Crew() { join(); }
};

}  // namespace

void checked(Pulse& pulse) {
    const std::uint32_t before = os::generation();
    pulse();
    if (before != os::generation())
        throw StateError("the process was forked while this copy ran; the child cannot go on with it");
}

void run_jobs(std::size_t count, std::size_t threads, Pulse& pulse,
              const std::function<void(std::size_t)>& job) {
    auto crew = std::make_unique<Crew>();
    const auto work = [&crew = *crew, count, &job](Pulse* own) noexcept {
        try {
            while (!crew.stop.load(std::memory_order_relaxed)) {
                const std::size_t i = crew.next.fetch_add(1, std::memory_order_relaxed);
                if (i >= count) return;
                job(i);
                if (own != nullptr) checked(*own);
            }
        } catch (...) {
            crew.fail();
        }
    };
    const std::size_t others = std::min({threads, count, kMostThreads}) - 1;
    const std::uint32_t born = os::generation();
    for (std::size_t i = 0; i < others; ++i) {
        if (!os::start_thread(crew->threads[crew->started], [work] { work(nullptr); })) break;
        ++crew->started;
    }
    work(&pulse);
    if (born != os::generation()) {
        const std::exception_ptr error = crew->error;
        (void)crew.release();
        std::rethrow_exception(error);
    }
    crew->join();
    if (crew->error) std::rethrow_exception(crew->error);
}

}  // namespace carrier::storage
