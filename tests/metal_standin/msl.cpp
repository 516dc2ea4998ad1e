// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Metal Shading Language, compiled for the host: without its address spaces the source is C++, so a C++
// compiler builds it as it is. Only the argument table takes generated code, a thunk for each kernel.

#include "msl.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>

namespace fs = std::filesystem;

namespace standin {

namespace {

/// A folder that goes with the scope.
struct Scratch {
    std::string path = (fs::temp_directory_path() / "metal-standin-XXXXXX").string();
    bool made = mkdtemp(path.data()) != nullptr;
    ~Scratch() {
        std::error_code ignored;
        if (made) fs::remove_all(path, ignored);
    }
};

/// The thunk's expression for one parameter, or an empty string when it means nothing here.
std::string argument(const std::string& declaration, Kernel& kernel) {
    static const std::regex parameter(
        R"(^\s*([\s\S]+?)\s*(\w+)\s*\[\[\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*\]\]\s*$)");
    std::smatch part;
    if (!std::regex_match(declaration, part, parameter)) return {};
    const std::string type = part[1];
    if (part[3] == "thread_position_in_grid") return type == "uint" ? "x" : "uint3{x, y, z}";
    if (part[3] != "buffer") return {};
    kernel.buffers.push_back(std::stoul(part[4]));
    const std::string slot = "b[" + part[4].str() + "]";
    return type.back() == '&' ? "*(std::add_pointer_t<" + type + ">)" + slot : "(" + type + ")" + slot;
}

/// Appends a thunk for each kernel of the source; the words of a failure, or nothing.
std::string add_thunks(const std::string& source, Program& program, std::ostream& out) {
    static const std::regex comment(R"(//[^\n]*|/\*[\s\S]*?\*/)");
    static const std::regex signature(R"(\bkernel\s+void\s+(\w+)\s*\(([\s\S]*?)\)\s*\{)");
    const std::string bare = std::regex_replace(source, comment, " ");
    for (std::sregex_iterator k(bare.begin(), bare.end(), signature), end; k != end; ++k) {
        Kernel kernel;
        kernel.name = (*k)[1];
        std::string arguments;
        std::istringstream list((*k)[2]);
        for (std::string one; std::getline(list, one, ',');) {
            const std::string expression = argument(one, kernel);
            if (expression.empty()) return kernel.name + ": cannot read the parameter '" + one + "'";
            arguments += (arguments.empty() ? "" : ", ") + expression;
        }
        out << "extern \"C\" void standin_" << kernel.name
            << "(void** b, unsigned x, unsigned y, unsigned z) { (void)b; (void)x; (void)y; (void)z; "
            << kernel.name << "(" << arguments << "); }\n";
        program.kernels.push_back(kernel);
    }
    return {};
}

}  // namespace

Program::~Program() {
    if (handle != nullptr) dlclose(handle);
}

static std::shared_ptr<Program> compile_afresh(const std::string& source, std::string& diagnostics) {
    auto program = std::make_shared<Program>();
    std::ostringstream cpp;
    cpp << "#include <type_traits>\n#line 1 \"kernel.metal\"\n" << source << "\n#line 1 \"thunks\"\n";
    diagnostics = add_thunks(source, *program, cpp);
    if (!diagnostics.empty()) return nullptr;
    const Scratch scratch;
    if (!scratch.made) {
        diagnostics = "no temporary folder";
        return nullptr;
    }
    const std::string base = scratch.path + "/kernel";
    std::ofstream(base + ".cpp") << cpp.str();
    // The preloaded runtime of a sanitized Python belongs to that process, not to the compiler.
    const std::string command =
        "env -u LD_PRELOAD " STANDIN_CXX
        " -std=c++14 -pedantic-errors -fno-exceptions -fno-rtti -Wno-attributes -Wno-unknown-attributes -Wall"
        " -Wextra -Werror=return-type -O1 -g -fPIC -shared " STANDIN_KERNEL_FLAGS " -isystem " STANDIN_MSL_DIR
        " " +
        base + ".cpp -o " + base + ".so > " + base + ".log 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream log(base + ".log");
    diagnostics.assign(std::istreambuf_iterator<char>(log), {});
    if (status == 0) {
        program->handle = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (program->handle == nullptr) diagnostics = dlerror();
    }
    if (program->handle == nullptr) return nullptr;
    for (Kernel& kernel : program->kernels)
        kernel.entry = reinterpret_cast<void (*)(void**, unsigned, unsigned, unsigned)>(
            dlsym(program->handle, ("standin_" + kernel.name).c_str()));
    return program;
}

std::shared_ptr<Program> compile(const std::string& source, std::string& diagnostics) {
    static std::mutex& mutex = *new std::mutex;
    static auto& ready = *new std::map<std::string, std::shared_ptr<Program> >;
    const std::lock_guard lock(mutex);
    const auto found = ready.find(source);
    if (found != ready.end()) return found->second;
    std::shared_ptr<Program> program = compile_afresh(source, diagnostics);
    if (program) ready[source] = program;
    return program;
}

}  // namespace standin
