# SPDX-License-Identifier: Apache-2.0
# Build options and the interface target that carries compile flags to every target of ours.
set(SHARDPROOF_ARCH native CACHE STRING "Instruction set, as -march takes it; the exact track is fast with AVX2+FMA, faster with AVX-512")
option(SHARDPROOF_WERROR "Warnings are errors" OFF)
set(SHARDPROOF_CUDA OFF CACHE STRING "The CUDA kernels: OFF, ON (nvcc), or STANDIN (for the host, by kernels/cuda_standin)")
set(SHARDPROOF_MPI AUTO CACHE STRING "Ranks as processes, over Open MPI: ON, OFF, or AUTO, where it is found")
set(SHARDPROOF_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
option(SHARDPROOF_FUZZ "Build fuzz_parsers: needs clang and libFuzzer" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1")
if(SHARDPROOF_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # instrumented code takes several times longer to compile at -O3
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(shardproof_options INTERFACE)
target_include_directories(shardproof_options INTERFACE ${PROJECT_SOURCE_DIR})
# -ffp-contract=off is part of the exact track's definition; the other two change no result.
target_compile_options(shardproof_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-math-errno -fno-trapping-math -march=${SHARDPROOF_ARCH}
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${SHARDPROOF_WERROR}>>:-Werror>)
# Compilers prefer vectors of 256 bits even with AVX-512; loops that do much per element gain by 512. Changes no result:
# a row's lanes are part of its definition.
add_library(shardproof_wide_vectors INTERFACE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(shardproof_wide_vectors INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-mprefer-vector-width=512>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Sees overlaps in "text" + std::string that are not there (GCC bug 105651).
  target_compile_options(shardproof_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(SHARDPROOF_SANITIZE)
  add_compile_options(-fsanitize=${SHARDPROOF_SANITIZE} -fno-omit-frame-pointer)
  # Fences order what processes read of each other's records (impl/comm/flight.cpp); the thread sanitizer, which does not
  # know them, sees the threads of one.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND SHARDPROOF_SANITIZE MATCHES thread)
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=${SHARDPROOF_SANITIZE})
  if(SHARDPROOF_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
