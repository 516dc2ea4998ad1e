// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>

#include "os/testing.hpp"
#include "support/input.hpp"
#include "support/vector_carrier.hpp"

namespace carrier::fuzz {

/// What goes wrong in an operation: one system call, all from one on, short reads and writes, or a user's
/// hook. In force as long as the program runs, since other threads may be closing files; disarmed it changes
/// nothing.
class Faults final : public os::testing::Hook {
  public:
    static Faults& standing() {
        static Faults faults;
        return faults;
    }

    /// Of hooks of custom tiers.
    const std::shared_ptr<testing::HookScript>& script() const noexcept { return script_; }

    void arm(Input& in) {
        static constexpr int kCodes[] = {EIO, ENOSPC, ENOMEM, EMFILE, EINTR, EDQUOT, EACCES, ENOENT};
        const std::lock_guard lock(mutex_);
        happened_ = false;
        left_ = -1;
        short_ = false;
        if (in.one_in(3)) {
            left_ = static_cast<int>(in.between(0, 30));
            code_ = kCodes[in.between(0, std::size(kCodes) - 1)];
            for_good_ = in.one_in(3) && code_ != EINTR;
        }
        if (in.one_in(3)) {
            script_->calls = 0;
            script_->fail_at = static_cast<int>(in.between(0, 60));
        }
        short_ = in.one_in(4);
    }
    void disarm() {
        const std::lock_guard lock(mutex_);
        left_ = -1;
        short_ = for_good_ = false;
        happened_ = happened_ || (script_->fail_at >= 0 && script_->calls > script_->fail_at);
        script_->fail_at = -1;
    }
    /// Whether anything was made to fail since it was armed.
    bool happened() const noexcept { return happened_; }
    /// Whether a file may have stayed behind since the last time this was asked.
    bool kept_a_file() noexcept { return std::exchange(kept_, false); }

    int before(os::Call call, std::size_t& length) noexcept override {
        const std::lock_guard lock(mutex_);
        // A slot lies in one page of its file, and none of them takes half of it.
        if (short_ && length > 4) length = (length + 1) / 2;
        if (left_ < 0 || left_-- > 0) return 0;
        // For good, but for what putting old values back takes: no library can on a medium that refuses that
        // too.
        const bool undoes = call == os::Call::pwrite || call == os::Call::pread || call == os::Call::openat;
        if (for_good_ && !undoes) left_ = 0;
        happened_ = true;
        if (call == os::Call::unlinkat || call == os::Call::rmdir) kept_ = true;
        return code_;
    }

  private:
    Faults() { os::testing::hook.store(this); }

    std::shared_ptr<testing::HookScript> script_ = std::make_shared<testing::HookScript>();
    std::mutex mutex_;
    int left_ = -1;
    int code_ = 0;
    bool for_good_ = false;
    bool short_ = false;
    bool happened_ = false;
    bool kept_ = false;
};

}  // namespace carrier::fuzz
