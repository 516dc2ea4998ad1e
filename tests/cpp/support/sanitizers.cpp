// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// What the sanitizers' runtimes ask a program at its start: so that it needs no environment, however it is
// run.

#define CARRIER_ASKED extern "C" __attribute__((visibility("default"), used)) const char*

// Too large an allocation is an answer that the tests ask for, not a fault.
CARRIER_ASKED __asan_default_options() { return "allocator_may_return_null=1"; }

// GNU's Objective-C runtime keeps its class tables to the end. Its frames cannot all be unwound, hence the
// module.
CARRIER_ASKED __lsan_default_suppressions() { return "leak:libobjc.so\n"; }
