// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/closer.hpp"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "os/file.hpp"
#include "os/process.hpp"

namespace carrier::storage {

namespace {

/// Below, closing is quick, and the pages are still warm for the next file of this thread.
constexpr std::size_t kQuick = std::size_t{8} << 20;

// Constant from the start and never destroyed: the thread may outlive static destructors.
struct State {
    std::mutex mutex;  // a leaf
    std::array<int, 256> queue{};
    std::size_t queued = 0;
    int closing = -1;
    int instead = -1;  // what takes a number's place while its file is closed
    bool running = false;
    std::atomic<std::uint32_t> finished{0};  // counts steps, for who waits
};
constinit State state;

void step() noexcept {
    state.finished.fetch_add(1);
    state.finished.notify_all();
}

void run() noexcept {
    for (;;) {
        {
            const std::lock_guard lock(state.mutex);
            if (state.queued == 0) {
                if (state.instead >= 0) os::close(std::exchange(state.instead, -1));
                state.running = false;
                break;
            }
            if (state.instead < 0) state.instead = os::open("/dev/null", O_RDONLY).detach();
            state.closing = state.queue[--state.queued];
        }
        if (state.instead >= 0) os::close_in_place(state.closing, state.instead);
        {
            const std::lock_guard lock(state.mutex);
            os::close(std::exchange(state.closing, -1));
        }
        step();
    }
    step();
}

}  // namespace

void Closer::close(int fd, std::size_t bytes) noexcept {
    if (bytes < kQuick) return os::close(fd);
    {
        const std::lock_guard lock(state.mutex);
        if (state.queued < state.queue.size()) {
            std::thread thread;
            if (!state.running) state.running = os::start_thread(thread, run);
            if (thread.joinable()) thread.detach();
            if (state.running) {
                state.queue[state.queued++] = fd;
                return;
            }
        }
    }
    os::close(fd);
}

bool Closer::drain() noexcept {
    bool waited = false;
    for (;;) {
        const std::uint32_t seen = state.finished.load();
        {
            const std::lock_guard lock(state.mutex);
            if (!state.running) return waited;
        }
        waited = true;
        state.finished.wait(seen);
    }
}

void Closer::before_fork() noexcept { state.mutex.lock(); }

void Closer::after_fork() noexcept { state.mutex.unlock(); }

void Closer::in_child() noexcept {
    // The parent's closing gives the space back only if nobody else has the files open.
    while (state.queued > 0) os::close(state.queue[--state.queued]);
    if (state.closing >= 0) os::close(std::exchange(state.closing, -1));
    if (state.instead >= 0) os::close(std::exchange(state.instead, -1));
    state.running = false;
    state.mutex.unlock();
}

}  // namespace carrier::storage
