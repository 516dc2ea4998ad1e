// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#import <Foundation/Foundation.h>

#include <string>

#include "private_log.hpp"

namespace standin {

void autoreleased(id object);
NSError* make_error(const char* domain, long code, const std::string& text);
NSArray* make_array(id* items, unsigned long count);

}  // namespace standin
