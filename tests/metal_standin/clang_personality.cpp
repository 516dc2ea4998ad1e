// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// clang names libobjc's personality routine in every Objective-C++ frame, and that routine cannot catch C++
// exceptions. This one, found first, hands over to C++'s: the code under test throws C++ exceptions only.

#include <unwind.h>

extern "C" {
_Unwind_Reason_Code __gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*,
                                         _Unwind_Context*);
__attribute__((visibility("default"))) _Unwind_Reason_Code __gnu_objc_personality_v0(
    int version, _Unwind_Action action, _Unwind_Exception_Class kind, _Unwind_Exception* exception,
    _Unwind_Context* context) {
    return __gxx_personality_v0(version, action, kind, exception, context);
}
}
