// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Usage: metal_lazy present|absent|broken. A program of CPU storage that asks for Metal at its end: nothing
// of Metal may be loaded before, and what is missing has to be said.

#include <link.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "carrier/cpu.hpp"
#include "carrier/errors.hpp"
#include "carrier/metal.hpp"

namespace {

bool loaded(const char* part) {
    struct Search {
        const char* part;
        bool found;
    } search{part, false};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto* wanted = static_cast<Search*>(data);
            wanted->found = wanted->found || std::strstr(info->dlpi_name, wanted->part) != nullptr;
            return 0;
        },
        &search);
    return search.found;
}

bool metal_loaded() { return loaded("carrier_metal") || loaded("metal_standin") || loaded("libobjc"); }

int fail(const std::string& what) {
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string wanted = argc > 1 ? argv[1] : "";
    {
        const auto cpu = carrier::make<carrier::CPU>(3);
        cpu->set_value(0, 1.5);
        try {
            carrier::make<carrier::Metal>(-1);
            return fail("a negative size passed");
        } catch (const carrier::ValueError&) {
            // Arguments come before the runtime.
        }
    }
    if (metal_loaded()) return fail("loaded before the first Metal storage");
    std::string why;
    const bool available = carrier::Metal::available(&why);
    std::printf("available: %d %s\n", available, why.c_str());
    if (wanted == "present") {
        const auto metal = carrier::make<carrier::Metal>(3);
        return available && metal_loaded() ? 0 : fail("not loaded by the first Metal storage");
    }
    const char* says = wanted == "absent" ? "this build has no Metal module" : "could not be loaded";
    if (available || why.find(says) == std::string::npos || why.find("use CPU") == std::string::npos)
        return fail("does not say what is missing and what to use instead: " + why);
    try {
        carrier::make<carrier::Metal>(3);
        return fail("storage without a device");
    } catch (const carrier::StateError& error) {
        return error.what() == why ? 0 : fail("two reasons");
    }
}
