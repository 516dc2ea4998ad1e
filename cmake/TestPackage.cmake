# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# Script of one test: installs the library into a folder of its own, builds the example against that alone, runs it.
set(work "${BUILD}/package-test")
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " line "${ARGV}")
    message(FATAL_ERROR "failed (${status}): ${line}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --component development --prefix "${work}/prefix")
run("${CMAKE_COMMAND}" -S "${EXAMPLE}" -B "${work}/build" -G "${GENERATOR}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_PREFIX_PATH=${work}/prefix" -DCMAKE_BUILD_TYPE=Release)
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/build/tiers")
