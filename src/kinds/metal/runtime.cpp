// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "kinds/metal/runtime.hpp"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "carrier/errors.hpp"
#include "carrier/version.hpp"
#include "os/process.hpp"

namespace carrier::metal {

namespace {

constexpr const char* kInstead =
    "; use CPU for host memory, or Evictable(CPU, FileBacked) for sets larger than memory";
constexpr std::uint32_t kNever = UINT32_MAX;

std::mutex opening;
std::atomic<std::uint32_t> opened_in{kNever};  // the process, counted in forks
/// Never destroyed: at exit Apple's libraries may be gone before our statics.
Device* opened = nullptr;
void* module_handle = nullptr;

[[noreturn]] void refuse(const std::string& why) { throw StateError("no Metal here: " + why + kInstead); }

/// The module's path: beside the library, never in the working directory or on a search path.
std::filesystem::path module_path() {
    Dl_info here{};
    if (dladdr(reinterpret_cast<const void*>(&device), &here) == 0 || here.dli_fname == nullptr) return {};
    std::error_code ignored;
    std::filesystem::path self(here.dli_fname);
    // A program found on PATH is known to the linker by its bare name.
    if (!self.has_parent_path()) self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    if (!self.has_parent_path()) return {};
    return std::filesystem::absolute(self.parent_path() / CARRIER_METAL_MODULE, ignored);
}

const Module& load() {
    const std::filesystem::path path = module_path();
    std::error_code ignored;
    if (path.empty() || !std::filesystem::exists(path, ignored))
        refuse("this build has no Metal module, which only builds for macOS have (" +
               (path.empty() ? std::string(CARRIER_METAL_MODULE) : path.string()) + " is not there)");
    if (module_handle == nullptr) module_handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module_handle == nullptr) {
        const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread alone
        refuse("the Metal module could not be loaded (" +
               (why != nullptr ? std::string(why) : path.string()) + ")");
    }
    const auto* module = static_cast<const Module*>(dlsym(module_handle, "carrier_metal_module"));
    if (module == nullptr) refuse(path.string() + " is not a Metal module");
    if (std::string(module->version) != CARRIER_VERSION)
        refuse("the Metal module is of version " + std::string(module->version) +
               ", the library of " CARRIER_VERSION "; install both from one package");
    return *module;
}

void open_device() {
    std::unique_ptr<Device> found;
    const Status status = load().open(found);
    switch (status.fault) {
        case Fault::none:
            opened = found.release();
            return;
        case Fault::no_device:
            refuse(
                "Metal shows no device to this process; outside a login session (ssh, launchd, many CI "
                "machines) "
                "that can be so although the machine has one");
        case Fault::discrete:
            refuse("the machine has only GPUs with memory of their own (" + status.text +
                   "), and Metal storage needs one that shares the host's, such as Apple silicon");
        case Fault::no_queue:
            refuse("the device " + status.text + " gave no command queue");
        default:
            refuse("the device did not open (" + status.text + ")");
    }
}

}  // namespace

void refuse_child() {
    throw StateError(
        "Metal was in use when this process was forked, and cannot be used in the child; start it with "
        "spawn" +
        std::string(kInstead));
}

Device& device() {
    os::watch_forks();
    const std::uint32_t now = os::generation();
    // Before the mutex, which a thread that is not in the child may hold for ever.
    if (const std::uint32_t then = opened_in.load(); then != kNever && then != now) refuse_child();
    const std::lock_guard lock(opening);
    if (opened == nullptr) {
        opened_in = now;
        try {
            open_device();
        } catch (...) {
            opened_in = kNever;
            throw;
        }
    }
    return *opened;
}

bool available(std::string* why) {
    try {
        device();
        return true;
    } catch (const StateError& error) {
        if (why != nullptr) *why = error.what();
        return false;
    }
}

}  // namespace carrier::metal
