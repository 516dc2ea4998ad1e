# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
find_package(benchmark CONFIG REQUIRED)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/cpp/*.cpp)
if(NOT bench_sources)
  message(FATAL_ERROR "CARRIER_BENCH is on, but bench/cpp holds no source")
endif()
add_executable(carrier_bench ${bench_sources})
carrier_own_target(carrier_bench)
target_include_directories(carrier_bench PRIVATE src)
target_link_libraries(carrier_bench PRIVATE carrier_storage::carrier_storage benchmark::benchmark_main)
