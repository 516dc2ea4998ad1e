// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

/// Argument lists with CPython's own messages, where nanobind would say "incompatible function arguments" for
/// every mistake: missing, misplaced, unknown and repeated arguments each read as they do for a function
/// written in Python.
namespace carrier::python {

namespace nb = nanobind;

struct Parameter {
    const char* name;
    bool required = false;
};

/// Binds a call to parameters: the first `positional` of them may be given by position, the others by keyword
/// only. Returns borrowed handles, one a parameter, invalid where the caller gave none. TypeError.
void bind_arguments(const char* function, std::span<const Parameter> parameters, std::size_t positional,
                    const nb::args& args, const nb::kwargs& kwargs, nb::handle* into);

template <std::size_t N>
std::array<nb::handle, N> bind_arguments(const char* function, const Parameter (&parameters)[N],
                                         std::size_t positional, const nb::args& args,
                                         const nb::kwargs& kwargs) {
    std::array<nb::handle, N> bound;
    bind_arguments(function, std::span<const Parameter>(parameters), positional, args, kwargs, bound.data());
    return bound;
}

}  // namespace carrier::python
