// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/value.hpp"

#include <limits>
#include <string>

#include "carrier/errors.hpp"

namespace carrier {

namespace {

const char* word(const Value& value) noexcept {
    switch (value.kind()) {
        case Value::Kind::none:
            return "no value";
        case Value::Kind::boolean:
            return "a boolean";
        case Value::Kind::integer:
            return "an integer";
        case Value::Kind::floating:
            return "a floating number";
        default:
            return "an object";
    }
}

[[noreturn]] void refuse(const char* a_dtype, const char* takes, const Value& value) {
    throw TypeError(std::string(a_dtype) + " slot takes " + takes + ", not " + word(value));
}

float to_float32(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::floating:
            return static_cast<float>(value.floating());
        case Value::Kind::integer:
            return static_cast<float>(value.integer());
        case Value::Kind::boolean:
            return value.boolean() ? 1.0F : 0.0F;
        default:
            refuse("a Float32", "a number or a boolean", value);
    }
}

std::int32_t to_int32(const Value& value) {
    if (value.kind() != Value::Kind::integer) refuse("an Int32", "an integer", value);
    const std::int64_t v = value.integer();
    if (v < std::numeric_limits<std::int32_t>::min() || v > std::numeric_limits<std::int32_t>::max())
        throw OverflowError("an Int32 slot takes integers in [-2147483648, 2147483647], not " +
                            std::to_string(v));
    return static_cast<std::int32_t>(v);
}

}  // namespace

Scalar normalize(Encoding encoding, const Value& value) {
    Scalar s{};
    switch (encoding) {
        case Encoding::float32:
            s.float32 = to_float32(value);
            return s;
        case Encoding::int32:
            s.int32 = to_int32(value);
            return s;
        case Encoding::bool8:
            if (value.kind() != Value::Kind::boolean) refuse("a Bool", "a boolean", value);
            s.bool8 = value.boolean();
            return s;
        case Encoding::opaque:
            break;
    }
    throw TypeError("only Float32, Int32 and Bool slots hold normalized values");
}

bool operator==(const Value& a, const Value& b) noexcept {
    if (a.kind_ != b.kind_) return false;
    switch (a.kind_) {
        case Value::Kind::none:
            return true;
        case Value::Kind::boolean:
            return a.boolean_ == b.boolean_;
        case Value::Kind::integer:
            return a.integer_ == b.integer_;
        case Value::Kind::floating:
            return a.floating_ == b.floating_ || (a.floating_ != a.floating_ && b.floating_ != b.floating_);
        case Value::Kind::object:
            return a.object_ == b.object_;
    }
    return false;
}

}  // namespace carrier
