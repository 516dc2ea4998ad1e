// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/arguments.hpp"

#include <algorithm>
#include <string>

#include "carrier/errors.hpp"

namespace carrier::python {

namespace {

using Parameters = std::span<const Parameter>;

[[noreturn]] void too_many(const std::string& function, Parameters all, std::size_t positional,
                           std::size_t given) {
    const auto required = static_cast<std::size_t>(
        std::count_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(positional),
                      [](const Parameter& p) { return p.required; }));
    std::string message = function + "() takes ";
    if (required != positional) message += "from " + std::to_string(required) + " to ";
    message += std::to_string(positional) + " positional argument" + (positional == 1 ? "" : "s") + " but " +
               std::to_string(given) + (given == 1 ? " was" : " were") + " given";
    const Parameters keyword_only = all.subspan(positional);
    for (const Parameter& p : keyword_only)
        message += (&p == keyword_only.data() ? " (" : ", ") + std::string(p.name);
    if (!keyword_only.empty())
        message += keyword_only.size() == 1 ? " is keyword-only)" : " are keyword-only)";
    throw TypeError(message);
}

}  // namespace

void bind_arguments(const char* function, Parameters parameters, std::size_t positional, const nb::args& args,
                    const nb::kwargs& kwargs, nb::handle* into) {
    const std::string name = function;
    const auto given = static_cast<std::size_t>(PyTuple_Size(args.ptr()));
    if (given > positional) too_many(name, parameters, positional, given);
    for (std::size_t i = 0; i < given; ++i) into[i] = PyTuple_GetItem(args.ptr(), static_cast<Py_ssize_t>(i));

    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(kwargs.ptr(), &at, &key, &value) != 0) {
        std::size_t i = 0;
        while (i < parameters.size() && PyUnicode_CompareWithASCIIString(key, parameters[i].name) != 0) ++i;
        if (i == parameters.size())
            throw TypeError(name + "() got an unexpected keyword argument '" +
                            nb::borrow<nb::str>(key).c_str() + "'");
        if (into[i].is_valid())
            throw TypeError(name + "() got multiple values for argument '" + parameters[i].name + "'");
        into[i] = value;
    }

    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].required && !into[i].is_valid())
            throw TypeError(name + "() missing 1 required " +
                            (i < positional ? "positional" : "keyword-only") + " argument: '" +
                            parameters[i].name + "'");
}

}  // namespace carrier::python
