# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# The Metal module: against the real frameworks on Apple, against the stand-in in tests, and nowhere else.
set(kernels_file src/kinds/metal/kernels/scatter.metal)
file(READ ${kernels_file} kernels)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernels_file})
file(WRITE "${PROJECT_BINARY_DIR}/gen/metal_source.inc" "R\"MSL(${kernels})MSL\"\n")

add_library(carrier_metal MODULE src/kinds/metal/metal_backend.mm)
carrier_own_target(carrier_metal)
target_include_directories(carrier_metal PRIVATE include src src/kinds/metal "${PROJECT_BINARY_DIR}/gen")
set_target_properties(carrier_metal PROPERTIES PREFIX "" SUFFIX ".so")
if(APPLE)
  target_compile_options(carrier_metal PRIVATE -fno-objc-arc)
  target_link_libraries(carrier_metal PRIVATE "-framework Foundation" "-framework Metal" "-framework CoreGraphics")
  install(TARGETS carrier_metal LIBRARY DESTINATION carrier_storage COMPONENT python)
else()
  add_subdirectory(tests/metal_standin)
  target_link_libraries(carrier_metal PRIVATE metal_standin)
endif()
