// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>

#include "carrier/dtype.hpp"
#include "carrier/value.hpp"

/// DLPack, the C structures by which array libraries exchange memory, as far as a carrier needs them: host
/// memory, Float32, Int32 and Bool. Written after the public description (dmlc.github.io/dlpack), version
/// 1.0 and the unversioned form before it.
///
/// A capsule carries a pointer to one of the two managed structures. Its name says which, and whether
/// somebody has taken it: then it is that one who calls the deleter, once. A deleter may be called by any
/// thread.
namespace carrier::python::dlpack {

constexpr std::int32_t kHost = 1;  // kDLCPU

enum Code : std::uint8_t { kInt = 0, kFloat = 2, kBool = 6 };

struct DataType {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct Array {
    void* data;  // null when there are no values
    std::int32_t device;
    std::int32_t device_id;
    std::int32_t rank;
    DataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; null means C order
    std::uint64_t byte_offset;
};

/// Before 1.0: cannot say that its memory is read-only.
struct Unversioned {
    Array array;
    void* context;
    void (*deleter)(Unversioned*);

    static constexpr const char* kName = "dltensor";
    static constexpr const char* kTaken = "used_dltensor";
    static constexpr bool kHasFlags = false;
};

struct Versioned {
    std::uint32_t major;  // another one than 1: only `deleter` is where it is here
    std::uint32_t minor;
    void* context;
    void (*deleter)(Versioned*);
    std::uint64_t flags;
    Array array;

    static constexpr const char* kName = "dltensor_versioned";
    static constexpr const char* kTaken = "used_dltensor_versioned";
    static constexpr bool kHasFlags = true;
};

constexpr std::uint32_t kMajor = 1;
constexpr std::uint64_t kReadOnly = 1;
constexpr std::uint64_t kCopied = 2;

inline DataType type_of(Encoding encoding) noexcept {
    switch (encoding) {
        case Encoding::float32:
            return {kFloat, 32, 1};
        case Encoding::int32:
            return {kInt, 32, 1};
        default:
            return {kBool, 8, 1};
    }
}

/// The dtype that stores `type`; null when there is none.
inline const DType* dtype_of(DataType type) noexcept {
    if (type.lanes != 1) return nullptr;
    if (type.code == kFloat && type.bits == 32) return &DType::Float32();
    if (type.code == kInt && type.bits == 32) return &DType::Int32();
    if (type.code == kBool && type.bits == 8) return &DType::Bool();
    return nullptr;
}

}  // namespace carrier::python::dlpack
