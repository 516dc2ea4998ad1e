# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# The Metal module: against the real frameworks on Apple, against the stand-in in tests, and nowhere else.
set(kernels_file "${PROJECT_SOURCE_DIR}/src/kinds/metal/kernels/scatter.metal")
file(READ "${kernels_file}" kernels)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${kernels_file}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/metal_source.inc" CONTENT "R\"MSL(@kernels@)MSL\"\n" @ONLY)

# Everything that compiles and links the Objective-C++ source.
add_library(carrier_objc INTERFACE)
if(APPLE)
  target_compile_options(carrier_objc INTERFACE -fno-objc-arc)
  # Without CoreGraphics a command line program has no default device.
  target_link_libraries(carrier_objc INTERFACE "-framework Foundation" "-framework Metal" "-framework CoreGraphics")
else()
  set(CARRIER_OBJC_ROOT "" CACHE PATH "Where scripts/deps-metal.sh unpacked GNU Objective-C++; empty: installed")
  set(gcc "${CMAKE_CXX_COMPILER}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    find_program(CARRIER_GCC NAMES g++ REQUIRED)
    set(gcc "${CARRIER_GCC}")
  endif()
  execute_process(COMMAND "${gcc}" -print-file-name=include OUTPUT_VARIABLE gcc_include OUTPUT_STRIP_TRAILING_WHITESPACE)
  cmake_path(GET gcc_include PARENT_PATH gcc_folder)
  if(CARRIER_OBJC_ROOT AND EXISTS "${CARRIER_OBJC_ROOT}${gcc_folder}/cc1objplus")
    set(gcc_folder "${CARRIER_OBJC_ROOT}${gcc_folder}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(carrier_objc INTERFACE "-B${gcc_folder}")
    endif()
  endif()
  # The headers alone: the folder's others are another compiler's.
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/objc")
  file(CREATE_LINK "${gcc_folder}/include/objc" "${PROJECT_BINARY_DIR}/objc/objc" SYMBOLIC)
  target_include_directories(carrier_objc SYSTEM INTERFACE "${PROJECT_BINARY_DIR}/objc")
  # Unpacked, the library is found at run time by the folder that it was linked from.
  file(GLOB unpacked "${CARRIER_OBJC_ROOT}/usr/lib/*/libobjc.so.4")
  if(CARRIER_OBJC_ROOT AND unpacked)
    set(CARRIER_LIBOBJC "${unpacked}")
  else()
    find_library(CARRIER_LIBOBJC NAMES objc HINTS "${gcc_folder}" REQUIRED)
  endif()
  target_link_libraries(carrier_objc INTERFACE "${CARRIER_LIBOBJC}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(carrier_objc INTERFACE -fobjc-runtime=gcc)
  endif()

  # Without a compiler the stand-in is an error, never left out.
  get_target_property(objc_options carrier_objc INTERFACE_COMPILE_OPTIONS)
  if(NOT objc_options)
    set(objc_options)
  endif()
  file(WRITE "${PROJECT_BINARY_DIR}/objc/probe.mm"
       "#include <objc/objc.h>\n#include <vector>\nint main() { id none = nil; return none == nil ? 0 : 1; }\n")
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}" ${objc_options} -isystem "${PROJECT_BINARY_DIR}/objc" -std=c++20 -fsyntax-only
            "${PROJECT_BINARY_DIR}/objc/probe.mm" RESULT_VARIABLE objc_status ERROR_VARIABLE objc_error)
  if(NOT objc_status EQUAL 0)
    message(FATAL_ERROR "the Metal stand-in needs Objective-C++ for ${CMAKE_CXX_COMPILER}: install gobjc++ of the same "
                        "version (scripts/deps-metal.sh does), or turn CARRIER_METAL_STANDIN off\n${objc_error}")
  endif()
endif()

# Enabling OBJCXX would lose -std=c++20 with GNU: the C++ compiler's driver tells the language by the suffix.
function(carrier_metal_backend target)
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${CARRIER_WERROR}>:-Werror>)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
                                               "${PROJECT_BINARY_DIR}/generated")
  target_link_libraries(${target} PRIVATE carrier_objc)
  if(NOT APPLE)
    target_link_libraries(${target} PRIVATE metal_standin)
  endif()
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE OFF)
endfunction()

if(NOT APPLE)
  if(CARRIER_TESTS)
    enable_testing()
  endif()
  add_subdirectory(tests/metal_standin)
endif()
add_library(carrier_metal MODULE "${PROJECT_SOURCE_DIR}/src/kinds/metal/metal_backend.mm")
carrier_metal_backend(carrier_metal)
set_target_properties(carrier_metal PROPERTIES PREFIX "" SUFFIX ".so" INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON
                                               LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
install(TARGETS carrier_metal LIBRARY DESTINATION carrier_storage COMPONENT python)
if(APPLE)
  install(TARGETS carrier_metal LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/carrier_storage" COMPONENT development)
endif()
