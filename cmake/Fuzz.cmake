# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# One libFuzzer program per tests/fuzz/*_fuzz.cpp, and the library built into the same coverage. Needs clang.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "the fuzzers need clang's libFuzzer: configure with -DCMAKE_CXX_COMPILER=clang++-14")
endif()

set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
target_compile_options(carrier_storage PRIVATE -fsanitize=fuzzer-no-link ${sanitizers})
file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cpp)
foreach(source IN LISTS fuzzers)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  carrier_own_target(${name})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer ${sanitizers})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer ${sanitizers})
  target_include_directories(${name} PRIVATE src tests/cpp tests/fuzz)
  target_link_libraries(${name} PRIVATE carrier_storage::carrier_storage)
endforeach()
