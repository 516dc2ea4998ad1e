// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace carrier::os {

/// Every system call that the library makes, by name.
enum class Call : std::uint8_t {
    open,
    openat,
    close,
    read,
    pread,
    pwrite,
    fallocate,
    ftruncate,
    fstat,
    lseek,
    statfs,
    fchmod,
    chmod,
    unlinkat,
    rmdir,
    mkdtemp,
    rename,
    flock,
    opendir,
    cachestat,
    mmap,
    mremap,
    madvise,
    malloc,
    thread,
};
constexpr int kCalls = static_cast<int>(Call::thread) + 1;

namespace testing {

/// Sees each call before it is made. Called from any thread.
class Hook {
  public:
    /// An errno to fail with, or 0. `length` is the number of bytes of a read or write, which may be cut.
    virtual int before(Call call, std::size_t& length) noexcept = 0;

  protected:
    ~Hook() = default;
};

/// The hook in force; null outside tests. Set and unset while no other thread makes calls.
extern std::atomic<Hook*> hook;

/// Makes one call fail within a scope: the `nth` (from 0) of `call` or, without a call, the nth of any.
class Fail final : public Hook {
  public:
    Fail(Call call, int nth, int code) noexcept : call_(static_cast<int>(call)), nth_(nth), code_(code) {
        hook.store(this);
    }
    Fail(int nth, int code) noexcept : nth_(nth), code_(code) { hook.store(this); }
    ~Fail() { hook.store(nullptr); }
    Fail(const Fail&) = delete;
    Fail& operator=(const Fail&) = delete;

    int before(Call call, std::size_t&) noexcept override {
        if (call_ >= 0 && call_ != static_cast<int>(call)) return 0;
        if (seen_.fetch_add(1) != nth_) return 0;
        failed_.store(static_cast<int>(call));
        return code_;
    }
    /// Whether the call was reached.
    bool happened() const noexcept { return failed_.load() >= 0; }
    Call failed() const noexcept { return static_cast<Call>(failed_.load()); }
    int seen() const noexcept { return seen_.load(); }

  private:
    int call_ = -1;
    int nth_;
    int code_;
    std::atomic<int> seen_{0};
    std::atomic<int> failed_{-1};
};

}  // namespace testing

/// What each wrapper asks first: true when the call is to fail, with errno set.
inline bool refused(Call call, std::size_t& length) noexcept {
    testing::Hook* h = testing::hook.load(std::memory_order_relaxed);
    if (h == nullptr) [[likely]]
        return false;
    const int code = h->before(call, length);
    if (code == 0) return false;
    errno = code;
    return true;
}
inline bool refused(Call call) noexcept {
    std::size_t none = 0;
    return refused(call, none);
}

}  // namespace carrier::os
