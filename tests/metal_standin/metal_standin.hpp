// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// What a test can arrange on the GPU that is not there, and what it can see of it afterwards. Arrange before
/// the call under test: the plan is read without a lock.
namespace standin {

enum class Order { forward, reverse, shuffled };

struct Plan {
    int devices = 1;                                // GPUs in the machine
    bool default_device = true;                     // false: only MTLCopyAllDevices finds them
    int unified_from = 0;                           // GPUs before this index have memory of their own
    bool queue = true;                              // false: newCommandQueue gives nil
    bool command_buffer = true;                     // false: commandBuffer gives nil
    bool encoder = true;                            // false: computeCommandEncoder gives nil
    std::size_t max_buffer = std::size_t{1} << 36;  // maxBufferLength
    long allocations_left = -1;                     // from 0: this many more buffers, then nil
    bool compiler = true;                           // false: newLibraryWithSource reports an error
    bool functions = true;                          // false: newFunctionWithName gives nil
    bool pipelines = true;                          // false: pipeline creation reports an error
    bool non_uniform = true;                        // false: dispatchThreads is a misuse
    long stop_after_threads = -1;                   // from 0: this many threads run, then status is Error
    Order order = Order::forward;                   // of the threads
    std::string source_suffix;                      // appended to the kernel source, to break it for real
};

Plan& plan();
/// The default plan and empty logs.
void reset();
/// Live objects by class.
std::map<std::string, long> live();
/// Misuse of the API so far: what Metal would answer with undefined behaviour or an abort.
std::vector<std::string> violations();
/// How often a selector was sent.
long calls(const std::string& selector);
/// Threads run by all kernels.
std::size_t threads_run();

}  // namespace standin

/// The same for Python's ctypes. `standin_set` names a field of Plan; false when there is none of that name.
extern "C" {
bool standin_set(const char* field, long value);
void standin_reset(void);
long standin_violations(void);
long standin_live(const char* class_name);
long standin_calls(const char* selector);
long standin_threads_run(void);
}
