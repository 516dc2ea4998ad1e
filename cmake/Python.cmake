# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
#
# The module carrier_storage._core and its stub. The plain-Python part of the package is added by scikit-build-core.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
if(NOT nanobind_DIR)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                  OUTPUT_VARIABLE nanobind_DIR ERROR_QUIET)
endif()
find_package(nanobind CONFIG REQUIRED)

# The stable ABI costs the element and list targets: only where a wheel asks for it (wheel.py-api).
set(stable)
if(SKBUILD_SABI_VERSION)
  set(stable STABLE_ABI)
endif()

file(GLOB python_sources CONFIGURE_DEPENDS src/python/*.cpp)
# NOMINSIZE: nanobind would compile for size. NB_DOMAIN: our types are ours, whatever else is loaded.
nanobind_add_module(_core ${stable} NB_STATIC NOMINSIZE NB_DOMAIN carrier_storage NB_SUPPRESS_WARNINGS ${python_sources})
carrier_own_target(_core)
carrier_precompile(_core <nanobind/nanobind.h>)
target_include_directories(_core PRIVATE src)
target_compile_options(_core PRIVATE $<$<CONFIG:Release>:-O3>)
target_link_libraries(_core PRIVATE carrier_storage::carrier_storage)
# Python looks for one name. What else were visible (std's templates are) could be replaced at run time, and so not inlined.
if(APPLE)
  target_link_options(_core PRIVATE -Wl,-exported_symbol,_PyInit__core)
else()
  set(exports "${PROJECT_SOURCE_DIR}/cmake/_core.map")
  target_link_options(_core PRIVATE "-Wl,--version-script=${exports}")
  set_property(TARGET _core APPEND PROPERTY LINK_DEPENDS "${exports}")
endif()
install(TARGETS _core LIBRARY DESTINATION carrier_storage COMPONENT python)

# Writing the stub imports the module, which a sanitized one does not survive without its preloaded runtime.
if(NOT CARRIER_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(patterns)
  if(EXISTS "${PROJECT_SOURCE_DIR}/src/python/_core.pat")
    set(patterns PATTERN_FILE "${PROJECT_SOURCE_DIR}/src/python/_core.pat")
  endif()
  nanobind_add_stub(_core_stub INSTALL_TIME MODULE _core OUTPUT carrier_storage/_core.pyi PYTHON_PATH carrier_storage
                    ${patterns} COMPONENT python)
endif()
