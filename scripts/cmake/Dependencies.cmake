# SPDX-License-Identifier: Apache-2.0
# Every library from outside, found in one place. Each is also found through CMAKE_PREFIX_PATH.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)  # only to tell oneDNN's runtime to use one thread per rank
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(fmt REQUIRED)
# g++ 12 falsely sees an overflow where fmt parses a fill character.
target_compile_options(fmt::fmt INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
# The system's python3: its packages (python3-torch, python3-numpy) are not those of another one earlier in PATH.
find_program(SHARDPROOF_PYTHON python3 HINTS /usr/bin REQUIRED)

find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas)
find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread REQUIRED)
if(NOT CBLAS_INCLUDE_DIR)
  message(FATAL_ERROR "cblas.h is missing: install OpenBLAS (Debian: libopenblas-dev)")
endif()
add_library(shardproof_cblas INTERFACE)
target_include_directories(shardproof_cblas SYSTEM INTERFACE ${CBLAS_INCLUDE_DIR})
target_link_libraries(shardproof_cblas INTERFACE ${OPENBLAS_LIBRARY})

# Not find_package(dnnl): the package's own configuration asks for OpenCL's headers, which nothing here needs.
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(DNNL::dnnl INTERFACE IMPORTED)
target_include_directories(DNNL::dnnl INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(DNNL::dnnl INTERFACE ${DNNL_LIBRARY})

# What MPI does in threads of its own no sanitizer understands.
if(SHARDPROOF_MPI STREQUAL "AUTO" AND SHARDPROOF_SANITIZE)
  set(SHARDPROOF_MPI OFF)
elseif(SHARDPROOF_MPI STREQUAL "AUTO")
  find_package(MPI COMPONENTS CXX)
  set(SHARDPROOF_MPI ${MPI_CXX_FOUND})
elseif(SHARDPROOF_MPI)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()

# What device code and its callers are compiled with and linked to; kernels/cuda_standin is the other.
if(SHARDPROOF_CUDA AND NOT SHARDPROOF_CUDA STREQUAL "STANDIN")
  # CMake 3.25 does not know nvcc's C++20, which a target takes over from CMAKE_CXX_STANDARD: the flag says it instead.
  set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
  # A spill is an error: ptxas warns of nothing else in these kernels.
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -std=c++20 --fmad=false --expt-relaxed-constexpr --expt-extended-lambda -Xptxas -warn-spills -Xptxas -Werror")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit 12.0 REQUIRED)
  add_library(shardproof_cuda INTERFACE)
  target_link_libraries(shardproof_cuda INTERFACE CUDA::cudart CUDA::cublas)
endif()
