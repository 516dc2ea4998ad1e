# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# How everything here is compiled. Directory-wide, because nanobind's own library has to follow: link-time optimisation and
# sanitizers work only when it is built the same way.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(CARRIER_SANITIZE)
  add_compile_options(-fsanitize=${CARRIER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CARRIER_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CARRIER_SANITIZE MATCHES "address")
    # A preloaded runtime is how Python meets the sanitizer; clang links its own statically unless told.
    add_compile_options(-shared-libasan)
    add_link_options(-shared-libasan)
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-runtime-dir OUTPUT_STRIP_TRAILING_WHITESPACE
                    OUTPUT_VARIABLE runtime_dir)
    set(CMAKE_BUILD_RPATH "${runtime_dir}")
  endif()
elseif(CARRIER_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT carrier_ipo LANGUAGES CXX OUTPUT carrier_ipo_why)
  if(carrier_ipo)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION_RELEASE ON)
  else()
    message(STATUS "no link-time optimisation: element access from Python is slower (${carrier_ipo_why})")
  endif()
endif()

# Warnings belong to our own targets, and to compiling only: on the link line, link-time optimisation would report other
# people's code.
function(carrier_own_target target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion $<$<BOOL:${CARRIER_WERROR}>:-Werror>)
endfunction()

# What nearly every source of ours includes; further headers may follow.
function(carrier_precompile target)
  if(CARRIER_PCH)
    target_precompile_headers(${target} PRIVATE <algorithm> <atomic> <condition_variable> <functional> <memory> <mutex>
                              <span> <string> <thread> <utility> <vector> ${ARGN})
  endif()
endfunction()
