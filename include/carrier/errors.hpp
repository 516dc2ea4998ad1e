// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "carrier/api.hpp"

/// The errors of the library: one small family, one class for each meaning.
///
/// Every message says what was asked, what is allowed and what to do. The Python package maps each class to
/// the Python class named beside it, once, at its boundary.
namespace carrier {

/// Root of the family. A caller that wants to catch everything the library reports catches this.
class CARRIER_API Error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The carrier's state forbids the call: released, owned, evicted, not mutable, in transition. RuntimeError.
class CARRIER_API StateError : public Error {
    using Error::Error;
};

/// A slot, or a range of slots, lies outside the carrier. IndexError.
class CARRIER_API IndexError : public Error {
    using Error::Error;
};

/// An argument or a value has the wrong type. TypeError.
class CARRIER_API TypeError : public Error {
    using Error::Error;
};

/// An argument has the right type and a value that is not allowed. ValueError.
class CARRIER_API ValueError : public Error {
    using Error::Error;
};

/// A number does not fit where it must be stored, or a product exceeds 63 bits. OverflowError.
class CARRIER_API OverflowError : public Error {
    using Error::Error;
};

/// A name is not registered. LookupError.
class CARRIER_API LookupError : public Error {
    using Error::Error;
};

/// The carrier kind does not offer the operation, or a hook is missing. NotImplementedError.
class CARRIER_API NotImplementedError : public Error {
    using Error::Error;
};

/// Memory is refused to an exporter's consumer. BufferError.
class CARRIER_API BufferError : public Error {
    using Error::Error;
};

/// An allocation exceeds what the machine can give. MemoryError. (std::bad_alloc is mapped alike.)
class CARRIER_API MemoryError : public Error {
    using Error::Error;
};

/// The operating system refused. OSError, and by its code FileExistsError, PermissionError and so on.
class CARRIER_API OsError : public Error {
  public:
    /// `operation` in plain words ("write 4096 bytes at 0"), `path` may be empty.
    OsError(int code, const std::string& operation, std::string path)
        : Error(operation + (path.empty() ? "" : " (" + path + ")") + ": " +
                std::generic_category().message(code)),
          code_(code),
          operation_(operation),
          path_(std::move(path)) {}

    /// The errno value, such as ENOSPC.
    int code() const noexcept { return code_; }
    const std::string& operation() const noexcept { return operation_; }
    const std::string& path() const noexcept { return path_; }

  private:
    int code_;
    std::string operation_;
    std::string path_;
};

}  // namespace carrier
