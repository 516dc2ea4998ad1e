// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <memory>
#include <string>
#include <vector>

namespace standin {

struct Kernel {
    std::string name;
    std::vector<std::size_t> buffers;  // every [[buffer(n)]] that it declares
    void (*entry)(void** slots, unsigned x, unsigned y, unsigned z) = nullptr;
};

/// A loaded library of kernels.
struct Program {
    Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program();
    void* handle = nullptr;
    std::vector<Kernel> kernels;
};

/// Null with the compiler's words in `diagnostics`. A source that was compiled before is not compiled again.
std::shared_ptr<Program> compile(const std::string& source, std::string& diagnostics);

}  // namespace standin
