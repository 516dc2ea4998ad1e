// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "os/process.hpp"
#include "storage/closer.hpp"
#include "storage/descriptors.hpp"
#include "storage/session.hpp"

namespace carrier::storage {

// The mutexes are held over the fork, in the order in which they are taken elsewhere, so that the child finds
// what they guard whole. The child closes every descriptor of its parent's: the lock, which must end with the
// parent, and files, whose space comes back when the last descriptor is closed.
bool prepare_for_forks() noexcept {
    static const bool prepared = os::watch_forks() && os::at_fork(
                                                          [] {
                                                              Session::before_fork();
                                                              Descriptors::before_fork();
                                                              Closer::before_fork();
                                                          },
                                                          [] {
                                                              Closer::after_fork();
                                                              Descriptors::after_fork();
                                                              Session::after_fork();
                                                          },
                                                          [] {
                                                              Closer::in_child();
                                                              Descriptors::in_child();
                                                              Session::in_child();
                                                          });
    return prepared;
}
namespace {
[[maybe_unused]] const bool ready = prepare_for_forks();
}

}  // namespace carrier::storage
