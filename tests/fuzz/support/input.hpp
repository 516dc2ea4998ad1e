// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// What a fuzzer's programs share: the fuzzed bytes read as choices, and a check that ends the program.
namespace carrier::fuzz {

/// Reads choices off the input. At its end every choice is the least one, so that a cut input still means
/// something.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) noexcept : at_(data), end_(data + size) {}

    bool empty() const noexcept { return at_ == end_; }
    /// Any bit pattern.
    template <class T>
    T bits() noexcept {
        T value{};
        const std::size_t n = std::min(sizeof value, static_cast<std::size_t>(end_ - at_));
        if (n != 0) std::memcpy(&value, at_, n);
        at_ += n;
        return value;
    }
    /// From `low` to `high`, both included.
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        const auto range = static_cast<std::uint64_t>(high - low) + 1;
        const std::uint64_t any = range <= 256 ? bits<std::uint8_t>() : bits<std::uint32_t>();
        return low + static_cast<std::int64_t>(any % range);
    }
    bool one_in(std::int64_t n) noexcept { return between(1, n) == n; }

  private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

[[noreturn]] inline void broken(const char* file, int line, const char* what) {
    std::fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
    std::abort();
}

}  // namespace carrier::fuzz

#define FUZZ_CHECK(condition)                                                      \
    do {                                                                           \
        if (!(condition)) ::carrier::fuzz::broken(__FILE__, __LINE__, #condition); \
    } while (false)

/// Whether `expression` throws exactly an error of `Class`; any other error goes on.
#define FUZZ_THROWS(Class, expression) \
    ([&] {                             \
        try {                          \
            (void)(expression);        \
            return false;              \
        } catch (const Class&) {       \
            return true;               \
        }                              \
    }())
