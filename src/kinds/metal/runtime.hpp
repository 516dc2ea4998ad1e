// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstddef>
#include <string>

#include "kinds/metal/block.hpp"

/// The way to the Metal module: a shared object of its own, looked for beside the library when the first
/// Metal storage is asked for. Where there is none, nothing is loaded.
namespace carrier::metal {

/// Whether storage can be had; asking opens the module. The reason why not goes to `why` when given.
bool available(std::string* why);

/// The process's device. StateError that says what is missing and what to use instead.
Device& device();

/// StateError that names the fork.
[[noreturn]] void refuse_child();

}  // namespace carrier::metal
