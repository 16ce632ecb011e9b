# SPDX-License-Identifier: Apache-2.0
# shardproof_library(NAME [WIDE_VECTORS] [DEPS target...] [SOURCES extra.cpp...] [TEST_DEPS target...]
#                    [BENCH executable])
#
# The folder's library from its *.cpp (but *_test.cpp, *_bench.cpp, *_main.cpp), one test executable NAME_tests from its
# *_test.cpp, its *_bench.cpp for bench_kernels (or for an executable BENCH of their own), and a check that each of its
# headers compiles alone. With SHARDPROOF_CUDA also shardproof_NAME_cuda from its *.cu, with those of its DEPS, and
# NAME_cuda_tests from its *_cuda_test.cpp.
# NAME is the folder's path with underscores: kernels/layer_norm is kernels_layer_norm. WIDE_VECTORS is for row kernels.
function(shardproof_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WIDE_VECTORS" "BENCH" "DEPS;TEST_DEPS;SOURCES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "shardproof_library(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cpp)
  file(GLOB benches CONFIGURE_DEPENDS *_bench.cpp)
  file(GLOB headers CONFIGURE_DEPENDS *.hpp)
  file(GLOB cuda CONFIGURE_DEPENDS *.cu)
  list(FILTER sources EXCLUDE REGEX "_(test|bench|main)\\.cpp$")
  set(cuda_tests ${tests})
  list(FILTER tests EXCLUDE REGEX "_cuda_test\\.cpp$")
  list(FILTER cuda_tests INCLUDE REGEX "_cuda_test\\.cpp$")
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${header})
    string(MAKE_C_IDENTIFIER ${relative} id)
    set(check ${PROJECT_BINARY_DIR}/header_checks/${id}.cpp)
    file(CONFIGURE OUTPUT ${check} CONTENT "#include \"${relative}\"\n#include \"${relative}\"\n")
    list(APPEND checks ${check})
  endforeach()
  add_library(shardproof_${name} STATIC ${sources} ${arg_SOURCES})
  target_link_libraries(shardproof_${name} PUBLIC shardproof_options ${arg_DEPS})
  if(arg_WIDE_VECTORS)
    target_link_libraries(shardproof_${name} PRIVATE shardproof_wide_vectors)
  endif()
  if(checks)
    add_library(shardproof_${name}_headers OBJECT ${checks})
    target_link_libraries(shardproof_${name}_headers PRIVATE shardproof_${name})
  endif()
  if(SHARDPROOF_CUDA)
    shardproof_cuda_part(${name} "${cuda}" "${cuda_tests}" "${arg_DEPS};${arg_TEST_DEPS}")
  endif()
  if(BUILD_TESTING AND tests)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE shardproof_${name} ${arg_TEST_DEPS} GTest::gtest GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name}_tests)
  endif()
  if(arg_BENCH)
    shardproof_bench(${arg_BENCH} ${benches})
    target_link_libraries(${arg_BENCH} PRIVATE shardproof_${name})
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY SHARDPROOF_BENCHES ${benches})
  set_property(GLOBAL APPEND PROPERTY SHARDPROOF_BENCH_LIBRARIES shardproof_${name})
endfunction()

# shardproof_cuda_part(NAME sources tests deps): what shardproof_library makes of *.cu and *_cuda_test.cpp. CTest runs the
# tests on the stand-in, in three orders of CUDA threads; on a device whoever has one does.
function(shardproof_cuda_part name sources tests deps)
  list(TRANSFORM deps APPEND _cuda)
  foreach(dep IN LISTS deps)
    if(NOT TARGET ${dep})
      list(REMOVE_ITEM deps ${dep})
    endif()
  endforeach()
  if(sources)
    if(SHARDPROOF_CUDA STREQUAL "STANDIN")
      set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
    endif()
    add_library(shardproof_${name}_cuda STATIC ${sources})
    target_link_libraries(shardproof_${name}_cuda PRIVATE shardproof_options PUBLIC shardproof_cuda
      INTERFACE shardproof_${name} ${deps})
    set(deps shardproof_${name}_cuda)
    set_property(GLOBAL APPEND PROPERTY SHARDPROOF_CUDA_TARGETS shardproof_${name}_cuda)
  endif()
  if(NOT BUILD_TESTING OR NOT tests)
    return()
  endif()
  add_executable(${name}_cuda_tests ${tests})
  target_link_libraries(${name}_cuda_tests PRIVATE shardproof_${name} ${deps} GTest::gtest GTest::gtest_main)
  set_property(GLOBAL APPEND PROPERTY SHARDPROOF_CUDA_TARGETS ${name}_cuda_tests)
  if(SHARDPROOF_CUDA STREQUAL "STANDIN")
    foreach(order "forward" "reverse,late" "shuffled=7")
      string(REGEX MATCH "^[a-z]+" word ${order})
      add_test(NAME ${name}_cuda_${word} COMMAND ${name}_cuda_tests)
      set_tests_properties(${name}_cuda_${word} PROPERTIES LABELS cuda ENVIRONMENT "CUDA_STANDIN=${order}")
    endforeach()
  endif()
endfunction()

# shardproof_bench(NAME source...): a benchmark executable in the build folder.
function(shardproof_bench name)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/scripts/bench_main.cpp ${ARGN})
  target_link_libraries(${name} PRIVATE shardproof_cblas DNNL::dnnl benchmark::benchmark)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

# shardproof_techniques(FAMILY [NAMESPACE namespace] [FOLDER folder] INTERFACE header TYPE type LIST function
#                       TECHNIQUES id...)
#
# The registry of a family: for each ID a file of impl/FAMILY defines `const NAMESPACE::TYPE ID_technique` (step::
# if not said) in namespace shardproof::FAMILY. Generates `NAMESPACE::LIST()`, which returns them all. Adding a technique
# is adding its word. With FOLDER its source is FOLDER/ID.cpp, below impl/FAMILY.
function(shardproof_techniques family)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE;FOLDER;INTERFACE;TYPE;LIST" "TECHNIQUES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TECHNIQUES)
    message(FATAL_ERROR "shardproof_techniques(${family}): unknown arguments '${arg_UNPARSED_ARGUMENTS}', or no technique")
  endif()
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE step)
  endif()
  foreach(id IN LISTS arg_TECHNIQUES)
    if(arg_FOLDER)
      target_sources(shardproof_impl_${family} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${arg_FOLDER}/${id}.cpp)
    endif()
    string(APPEND declarations "extern const ${arg_NAMESPACE}::${arg_TYPE} ${id}_technique;\n")
    list(APPEND addresses "&${family}::${id}_technique")
  endforeach()
  list(JOIN addresses ", " addresses)
  set(source ${PROJECT_BINARY_DIR}/generated/${family}_registry.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Generated from impl/${family}/CMakeLists.txt.
#include \"${arg_INTERFACE}\"

namespace shardproof {

namespace ${family} {
${declarations}}

std::span<const ${arg_NAMESPACE}::${arg_TYPE}* const> ${arg_NAMESPACE}::${arg_LIST}() {
  static constexpr const ${arg_TYPE}* all[] = {${addresses}};
  return all;
}

}  // namespace shardproof
")
  target_sources(shardproof_impl_${family} PRIVATE ${source})
endfunction()
