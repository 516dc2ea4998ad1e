// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/session.hpp"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "carrier/errors.hpp"
#include "carrier/host.hpp"
#include "os/file.hpp"
#include "os/process.hpp"
#include "storage/descriptors.hpp"
#include "storage/reaper.hpp"

namespace carrier::storage {

namespace {

constinit std::mutex mutex;  // taken before the descriptors', which is taken before the closer's
// Never destroyed: blocks may be dropped while the process ends.
std::shared_ptr<Session>* held = nullptr;
Session* all = nullptr;
constinit std::atomic<bool> ended{false};

/// Where sessions are made. Absolute, since the program may change its directory.
std::string parent_directory() {
    std::string parent = host().temporary_directory();
    if (parent.empty()) parent = os::environment("TMPDIR");
    if (parent.empty()) parent = "/tmp";
    if (parent.front() != '/') {
        const std::string here = os::working_directory();
        if (here.empty()) throw OsError(errno, "find the working directory", parent);
        parent = here + "/" + parent;
    }
    while (parent.size() > 1 && parent.back() == '/') parent.pop_back();
    return parent;
}

std::string random_suffix() {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text(16, '0');
    std::uint64_t n = os::random_number();
    for (char& c : text) {
        c = kDigits[n & 15];
        n >>= 4;
    }
    return text;
}

void end_of_process() {
    ended.store(true);
    remove_session();
}

}  // namespace

Session::Session(const std::string& parent)
    : path_(parent + "/" + kReady + std::to_string(os::process_id()) + "-" + random_suffix()),
      generation_(os::generation()) {
    std::string fresh = parent + "/" + kUnready + "XXXXXX";
    if (os::mkdtemp(fresh) != 0) throw OsError(errno, "make the session directory in", parent);
    const auto give_up = [&](const char* operation) {
        const int code = errno;
        os::rmdir(fresh.c_str());
        throw OsError(code, operation, fresh);
    };
    // Whatever the umask took away.
    if (os::chmod(fresh.c_str(), 0700) != 0) give_up("set the mode of the session directory");
    directory_ = os::open(fresh.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!directory_ && (errno == EMFILE || errno == ENFILE)) {
        Descriptors::shrink();
        directory_ = os::open(fresh.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }
    if (!directory_) give_up("open the session directory");
    // Where locks are not offered the directory is used all the same, and no reaper will touch it.
    if (os::try_lock(directory_.get()) != 0 && errno == EWOULDBLOCK) give_up("lock the session directory");
    if (os::rename(fresh.c_str(), path_.c_str()) != 0) give_up("name the session directory");
    next_ = all;
    if (all != nullptr) all->previous_ = this;
    all = this;
}

Session::~Session() {
    const std::lock_guard lock(mutex);
    (previous_ != nullptr ? previous_->next_ : all) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    remove();
}

void Session::remove() noexcept {
    if (removed_ || generation_ != os::generation()) return;
    removed_ = true;
    clear_directory(directory_.get());
    os::rmdir(path_.c_str());
}

void Session::remove_all() noexcept {
    std::shared_ptr<Session> last;  // dropped after the mutex
    const std::lock_guard lock(mutex);
    if (held != nullptr) last.swap(*held);
    // Clearing needs a descriptor.
    if (all != nullptr) Descriptors::shrink();
    for (Session* s = all; s != nullptr; s = s->next_) s->remove();
}

std::string Session::new_name() {
    return "carrier-" + std::to_string(names_.fetch_add(1, std::memory_order_relaxed)) + ".raw";
}

std::shared_ptr<Session> Session::current() {
    {
        const std::lock_guard lock(mutex);
        if (held != nullptr && *held) return *held;
    }
    if (ended.load()) throw StateError("the process is ending; no new file can be made");
    if (!prepare_for_forks()) throw MemoryError("cannot register what a fork needs");
    const std::string parent = parent_directory();
    const std::lock_guard lock(mutex);
    if (held != nullptr && *held) return *held;
    if (held == nullptr) {
        held = new std::shared_ptr<Session>;
        std::atexit(end_of_process);
    }
    reap_sessions(parent);
    *held = std::make_shared<Session>(parent);
    return *held;
}

void Session::forget(const Session& gone) noexcept {
    std::shared_ptr<Session> last;  // dropped after the mutex
    const std::lock_guard lock(mutex);
    if (held != nullptr && held->get() == &gone) last.swap(*held);
}

void Session::before_fork() noexcept { mutex.lock(); }

void Session::after_fork() noexcept { mutex.unlock(); }

void Session::in_child() noexcept {
    for (Session* s = all; s != nullptr; s = s->next_) s->directory_.reset();
    std::shared_ptr<Session> last;
    if (held != nullptr) last.swap(*held);
    mutex.unlock();
}

}  // namespace carrier::storage

namespace carrier {

std::string session_directory() {
    const std::lock_guard lock(storage::mutex);
    return storage::held != nullptr && *storage::held ? (*storage::held)->path() : "";
}

void remove_session() noexcept { storage::Session::remove_all(); }

}  // namespace carrier
