# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# One executable per folder of tests/cpp that holds a *_test.cpp, out of all its sources and those of tests/cpp/support:
# linking is what costs time. GoogleTest is an installed one (scripts/deps.sh brings Debian's), else the pinned release.
find_package(GTest CONFIG QUIET)
if(NOT GTest_FOUND)
  message(STATUS "GoogleTest is not installed; fetching its pinned release")
  include(FetchContent)
  FetchContent_Declare(
    googletest URL https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    URL_HASH SHA256=8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7)
  set(INSTALL_GTEST OFF)
  FetchContent_MakeAvailable(googletest)
endif()
include(GoogleTest)

file(GLOB test_sources CONFIGURE_DEPENDS tests/cpp/*/*.cpp)
set(support ${test_sources})
list(FILTER support INCLUDE REGEX "/tests/cpp/support/[^/]*$")
set(test_folders)
set(tests ${test_sources})
list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
foreach(source IN LISTS tests)
  cmake_path(GET source PARENT_PATH folder)
  list(APPEND test_folders "${folder}")
endforeach()
list(REMOVE_DUPLICATES test_folders)

set(precompiled)
set(test_options -O1 -g1)
if(CARRIER_SANITIZE MATCHES "undefined")
  list(APPEND test_options -fno-sanitize=undefined)
endif()
set(all_floors os storage layout dtype carrier kinds)
foreach(folder IN LISTS test_folders)
  cmake_path(GET folder FILENAME name)
  if(name IN_LIST all_floors AND NOT name IN_LIST CARRIER_FLOORS)
    continue()
  endif()
  set(sources ${test_sources})
  list(FILTER sources INCLUDE REGEX "/tests/cpp/${name}/[^/]*$")
  add_executable(${name}_test ${sources} ${support})
  carrier_own_target(${name}_test)
  # The library is what is tested, as optimised as the build says; its tests need to be ready soon.
  target_compile_options(${name}_test PRIVATE ${test_options})
  target_include_directories(${name}_test PRIVATE src tests/cpp)
  target_link_libraries(${name}_test PRIVATE carrier_storage::carrier_storage GTest::gmock GTest::gtest_main)
  if(NOT precompiled)
    carrier_precompile(${name}_test <gmock/gmock.h> <gtest/gtest.h>)
    set(precompiled ${name}_test)
  elseif(CARRIER_PCH)
    target_precompile_headers(${name}_test REUSE_FROM ${precompiled})
  endif()
  # At test time, not during the build: sanitizers spoil programs that a build runs.
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT 300)
endforeach()

if(EXISTS "${PROJECT_SOURCE_DIR}/examples/cpp/CMakeLists.txt" AND NOT CARRIER_SANITIZE)
  add_test(NAME package.consumer
           COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DEXAMPLE=${PROJECT_SOURCE_DIR}/examples/cpp
                   -DCXX=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR} -DMAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}
                   -P ${PROJECT_SOURCE_DIR}/cmake/TestPackage.cmake)
  set_tests_properties(package.consumer PROPERTIES TIMEOUT 300)
endif()
