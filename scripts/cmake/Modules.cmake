# SPDX-License-Identifier: Apache-2.0
# shardproof_library(NAME [DEPS target...] [SOURCES extra.cpp...])
#
# The folder's library from its *.cpp (but *_test.cpp, *_bench.cpp, *_main.cpp), one test executable NAME_tests from its
# *_test.cpp, its *_bench.cpp for bench_kernels, and a check that each of its headers compiles alone.
# NAME is the folder's path with underscores: kernels/layer_norm is kernels_layer_norm.
function(shardproof_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;TEST_DEPS;SOURCES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "shardproof_library(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cpp)
  file(GLOB benches CONFIGURE_DEPENDS *_bench.cpp)
  file(GLOB headers CONFIGURE_DEPENDS *.hpp)
  file(GLOB cuda CONFIGURE_DEPENDS *.cu)
  list(FILTER sources EXCLUDE REGEX "_(test|bench|main)\\.cpp$")
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${header})
    string(MAKE_C_IDENTIFIER ${relative} id)
    set(check ${PROJECT_BINARY_DIR}/header_checks/${id}.cpp)
    file(CONFIGURE OUTPUT ${check} CONTENT "#include \"${relative}\"\n#include \"${relative}\"\n")
    list(APPEND checks ${check})
  endforeach()
  add_library(shardproof_${name} STATIC ${sources} ${arg_SOURCES})
  target_link_libraries(shardproof_${name} PUBLIC shardproof_options ${arg_DEPS})
  if(checks)
    add_library(shardproof_${name}_headers OBJECT ${checks})
    target_link_libraries(shardproof_${name}_headers PRIVATE shardproof_${name})
  endif()
  if(SHARDPROOF_CUDA AND cuda)
    add_library(shardproof_${name}_cuda OBJECT ${cuda})
    target_link_libraries(shardproof_${name}_cuda PRIVATE shardproof_options CUDA::cudart)
    set_property(GLOBAL APPEND PROPERTY SHARDPROOF_CUDA_LIBRARIES shardproof_${name}_cuda)
  endif()
  if(BUILD_TESTING AND tests)
    add_executable(${name}_tests ${tests})
    target_link_libraries(${name}_tests PRIVATE shardproof_${name} ${arg_TEST_DEPS} GTest::gtest GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name}_tests)
  endif()
  set_property(GLOBAL APPEND PROPERTY SHARDPROOF_BENCHES ${benches})
  set_property(GLOBAL APPEND PROPERTY SHARDPROOF_BENCH_LIBRARIES shardproof_${name})
endfunction()

# shardproof_techniques(FAMILY INTERFACE header TYPE type LIST function TECHNIQUES id...)
#
# The registry of a family: each ID is a file of impl/FAMILY that defines `const step::TYPE ID_technique` in namespace
# shardproof::FAMILY. Generates `step::LIST()`, which returns them all. Adding a technique is adding its word.
function(shardproof_techniques family)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INTERFACE;TYPE;LIST" "TECHNIQUES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TECHNIQUES)
    message(FATAL_ERROR "shardproof_techniques(${family}): unknown arguments '${arg_UNPARSED_ARGUMENTS}', or no technique")
  endif()
  foreach(id IN LISTS arg_TECHNIQUES)
    string(APPEND declarations "extern const step::${arg_TYPE} ${id}_technique;\n")
    list(APPEND addresses "&${family}::${id}_technique")
  endforeach()
  list(JOIN addresses ", " addresses)
  set(source ${PROJECT_BINARY_DIR}/generated/${family}_registry.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Generated from impl/${family}/CMakeLists.txt.
#include \"${arg_INTERFACE}\"

namespace shardproof {

namespace ${family} {
${declarations}}

std::span<const step::${arg_TYPE}* const> step::${arg_LIST}() {
  static constexpr const ${arg_TYPE}* all[] = {${addresses}};
  return all;
}

}  // namespace shardproof
")
  target_sources(shardproof_impl_${family} PRIVATE ${source})
endfunction()
