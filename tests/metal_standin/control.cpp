// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "private_log.hpp"

namespace standin {

namespace {

/// Never destroyed: objects die after our statics would.
struct Log {
    std::mutex mutex;
    std::map<std::string, long> live, calls;
    std::vector<std::string> violations;
    std::size_t threads = 0;
};

Log& record() {
    static Log& log = *new Log;
    return log;
}

/// A process that misused the API does not end well, whatever it was: a test need not look.
struct Strict {
    ~Strict() {
        if (record().violations.empty()) return;
        for (const std::string& text : record().violations)
            std::fprintf(stderr, "Metal stand-in: misuse: %s\n", text.c_str());
        std::fflush(nullptr);
        _exit(70);
    }
} strict;

}  // namespace

Plan& plan() {
    static Plan& it = *new Plan;
    return it;
}

void reset() {
    const std::lock_guard lock(record().mutex);
    plan() = Plan{};
    record().violations.clear();
    record().calls.clear();
    record().threads = 0;
}

std::map<std::string, long> live() {
    const std::lock_guard lock(record().mutex);
    std::map<std::string, long> alive;
    for (const auto& [name, count] : record().live)
        if (count != 0) alive[name] = count;
    return alive;
}

std::vector<std::string> violations() {
    const std::lock_guard lock(record().mutex);
    return record().violations;
}

long calls(const std::string& selector) {
    const std::lock_guard lock(record().mutex);
    return record().calls[selector];
}

std::size_t threads_run() {
    const std::lock_guard lock(record().mutex);
    return record().threads;
}

void born(const char* name) {
    const std::lock_guard lock(record().mutex);
    ++record().live[name];
}

void died(const char* name) {
    const std::lock_guard lock(record().mutex);
    --record().live[name];
}

void called(const char* selector) {
    const std::lock_guard lock(record().mutex);
    ++record().calls[selector];
}

void violation(const std::string& what) {
    const std::lock_guard lock(record().mutex);
    if (record().violations.size() < 100) record().violations.push_back(what);
}

void add_threads(std::size_t count) {
    const std::lock_guard lock(record().mutex);
    record().threads += count;
}

bool take_allocation() {
    const std::lock_guard lock(record().mutex);
    if (plan().allocations_left == 0) return false;
    if (plan().allocations_left > 0) --plan().allocations_left;
    return true;
}

}  // namespace standin

using standin::plan;

bool standin_set(const char* field, long value) {
    const auto is = [&](const char* name) { return std::strcmp(field, name) == 0; };
    standin::Plan& p = plan();
    if (is("devices"))
        p.devices = static_cast<int>(value);
    else if (is("default_device"))
        p.default_device = value != 0;
    else if (is("unified_from"))
        p.unified_from = static_cast<int>(value);
    else if (is("queue"))
        p.queue = value != 0;
    else if (is("command_buffer"))
        p.command_buffer = value != 0;
    else if (is("encoder"))
        p.encoder = value != 0;
    else if (is("max_buffer"))
        p.max_buffer = static_cast<std::size_t>(value);
    else if (is("allocations_left"))
        p.allocations_left = value;
    else if (is("compiler"))
        p.compiler = value != 0;
    else if (is("functions"))
        p.functions = value != 0;
    else if (is("pipelines"))
        p.pipelines = value != 0;
    else if (is("non_uniform"))
        p.non_uniform = value != 0;
    else if (is("stop_after_threads"))
        p.stop_after_threads = value;
    else if (is("order"))
        p.order = static_cast<standin::Order>(value);
    else
        return false;
    return true;
}

void standin_reset() { standin::reset(); }
long standin_violations() { return static_cast<long>(standin::violations().size()); }
long standin_live(const char* name) {
    const auto alive = standin::live();
    const auto found = alive.find(name);
    return found == alive.end() ? 0 : found->second;
}
long standin_calls(const char* selector) { return standin::calls(selector); }
long standin_threads_run() { return static_cast<long>(standin::threads_run()); }
