// SPDX-License-Identifier: Apache-2.0
// main of bench_kernels: Google Benchmark's, with what the figures depend on in the report's context.
#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>
#include <cblas.h>
#include <dnnl.hpp>

#include "kernels/core/device.hpp"

int main(int argc, char** argv) {
  shardproof::prepare_process();
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  const dnnl_version_t& onednn = *dnnl_version();
  benchmark::AddCustomContext("openblas", openblas_get_config());
  benchmark::AddCustomContext("openblas_core", openblas_get_corename());
  benchmark::AddCustomContext("OPENBLAS_CORETYPE", forced != nullptr ? forced : "unset");
  benchmark::AddCustomContext(
      "onednn", std::to_string(onednn.major) + "." + std::to_string(onednn.minor) + "." + std::to_string(onednn.patch));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  // A filter that matches nothing is an error, not an empty report.
  const std::size_t run = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return run == 0 ? 2 : 0;
}
