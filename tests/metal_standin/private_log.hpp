// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <string>

#include "metal_standin.hpp"

/// What the parts of the stand-in report to the log. Plain C++.
namespace standin {

void born(const char* class_name);
void died(const char* class_name);
void called(const char* selector);
void violation(const std::string& what);
void add_threads(std::size_t count);
/// Whether another buffer may be had, by the plan.
bool take_allocation();

}  // namespace standin
