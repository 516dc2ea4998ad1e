# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# The library and its CMake package: find_package(carrier_storage), target carrier_storage::carrier_storage.
find_package(Threads REQUIRED)

set(patterns)
foreach(floor IN LISTS CARRIER_FLOORS)
  list(APPEND patterns src/${floor}/*.cpp)
  if(floor STREQUAL "kinds")
    list(APPEND patterns src/kinds/metal/*.cpp)
  endif()
endforeach()
file(GLOB sources CONFIGURE_DEPENDS ${patterns})

set(generated "${PROJECT_BINARY_DIR}/generated")
configure_file(cmake/version.hpp.in "${generated}/carrier/version.hpp" @ONLY)

add_library(carrier_storage STATIC ${sources})
add_library(carrier_storage::carrier_storage ALIAS carrier_storage)
carrier_own_target(carrier_storage)
carrier_precompile(carrier_storage)
target_compile_features(carrier_storage PUBLIC cxx_std_20)
target_include_directories(
  carrier_storage
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${generated}>
         $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  PRIVATE src)
# The Metal runtime is a module that the loader looks for beside itself; nothing links against it.
target_compile_definitions(carrier_storage PRIVATE CARRIER_METAL_MODULE="carrier_metal.so")
target_link_libraries(carrier_storage PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION_RELEASE)
  # An installed archive must also link without the very same compiler; the Python module's is not installed.
  if(CARRIER_PYTHON)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(carrier_storage PRIVATE $<$<CONFIG:Release>:-ffat-lto-objects>)
  else()
    set_target_properties(carrier_storage PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE OFF)
  endif()
endif()

include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/carrier_storage")
configure_package_config_file(cmake/carrier_storage-config.cmake.in carrier_storage-config.cmake
                              INSTALL_DESTINATION "${package}")
write_basic_package_version_file(carrier_storage-config-version.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS carrier_storage EXPORT carrier_storage-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT development)
install(DIRECTORY include/carrier "${generated}/carrier" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development FILES_MATCHING PATTERN "*.hpp")
install(EXPORT carrier_storage-targets NAMESPACE carrier_storage:: DESTINATION "${package}" COMPONENT development)
install(FILES "${PROJECT_BINARY_DIR}/carrier_storage-config.cmake"
              "${PROJECT_BINARY_DIR}/carrier_storage-config-version.cmake" DESTINATION "${package}"
        COMPONENT development)
