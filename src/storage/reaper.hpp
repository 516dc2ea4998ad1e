// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

/// Names of session directories, and what is done to those that nobody lives in.
namespace carrier::storage {

constexpr const char* kReady = ".carrier-storage-";
/// Before it is locked.
constexpr const char* kUnready = ".carrier-new-";

/// Unlinks every file in the directory.
void clear_directory(int directory) noexcept;

}  // namespace carrier::storage
