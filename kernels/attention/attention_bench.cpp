// SPDX-License-Identifier: Apache-2.0
// Attention of one layer of `laptop`. GMAC/s by the FLOP ledger's convention, which counts the masked half too, so
// that forms which leave it out may pass their roof.
#include <benchmark/benchmark.h>

#include "kernels/attention/testing.hpp"
#include "kernels/matmul/testing.hpp"

namespace shardproof::attention {
namespace {

using testing::Form;

template <class S>
void run(benchmark::State& state, Form form, bool is_forward, double dropout) {
  const testing::Case c{"bench", {.batch = 8, .sequence = 256, .heads = 6, .kv_heads = 6, .head_size = 64}, dropout};
  Device device({.poison = false});
  ImmediateQueue queue(device);
  testing::Candidate<S> x(queue, c, testing::inputs(c, 1.0), form);
  const auto own_site = c.site();
  const auto* const site = dropout > 0 ? &own_site : nullptr;
  state.counters["roof_GMAC/s"] = matmul::testing::peak<S>();
  const auto before = device.flops().model();
  for (auto _ : state) {
    if (is_forward && form == Form::tiled) {
      tiled_forward(queue, c.shape, x.q, x.k, x.v, x.documents, site, x.statistics, x.o);
    } else if (is_forward) {
      forward(queue, c.shape, x.q, x.k, x.v, x.documents, site, x.saved, x.o);
    } else {
      x.dk_sum.restart(queue);
      x.dv_sum.restart(queue);
      if (form == Form::tiled) {
        tiled_backward(queue, c.shape, x.d_o, x.q, x.k, x.v, x.documents, site, x.o, x.statistics, x.dq, x.dk_sum,
                       x.dv_sum);
      } else {
        backward(queue, c.shape, x.d_o, x.q, x.k, x.v, x.documents, x.o, x.saved, dropout, x.dq, x.dk_sum, x.dv_sum);
      }
    }
  }
  state.counters["GMAC/s"] =
      benchmark::Counter(static_cast<double>(device.flops().model() - before) * 0.5e-9, benchmark::Counter::kIsRate);
}

template <class S>
void add(const std::string& track) {
  for (const auto form : {Form::stored, Form::tiled}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const bool is_forward : {true, false}) {
        const auto name = "attention/" + name_of(form) + "/" + track + (is_forward ? "/forward" : "/backward") +
                          (dropout > 0 ? "/dropout" : "");
        benchmark::RegisterBenchmark(name.c_str(), run<S>, form, is_forward, dropout)->Unit(benchmark::kMillisecond);
      }
    }
  }
}

[[maybe_unused]] const bool added = (add<Fixed>("exact"), add<double>("f64"), add<float>("f32"), true);

}  // namespace
}  // namespace shardproof::attention
