// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

namespace carrier::python {

/// The interpreter's lock for a scope, whether or not this thread has it already. A thread that asks for it
/// while Python shuts down stops for ever, as newer Pythons do by themselves.
class Held {
  public:
    Held() noexcept;
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

  private:
    bool taken_;
    PyGILState_STATE state_{};
};

/// Where a daemon thread ends that Python unwinds while it shuts down: neither may it go on, nor could it
/// pass our noexcept functions.
[[noreturn]] void stop_for_ever() noexcept;

}  // namespace carrier::python
