# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCE=... -D OUTPUT=... -D VERSION=... -D COMPILER=... -D FLAGS=... -D PRESET=... -D CUDA=... -P BuildInfo.cmake
# Writes build_info.cpp. Run at every build; the file changes, and is compiled, only when what it says does.
set(COMMIT unknown)
set(DIRTY false)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(COMMIT ${head})
    execute_process(COMMAND ${GIT} -C ${SOURCE} --no-optional-locks status --porcelain --
      CMakeLists.txt CMakePresets.json kernels suites reference impl harness scripts results
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(DIRTY true)
    endif()
  endif()
endif()
configure_file(${SOURCE}/harness/build_info.cpp.in ${OUTPUT} @ONLY)
