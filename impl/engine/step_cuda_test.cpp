// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels on the tensors of one step of `tiny`, as the engine had them on the CPU: the same digests.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "impl/engine/testing.hpp"
#include "kernels/core/testing/cuda_values.hpp"
#include "kernels/core/testing/values.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/layer_norm/layer_norm_cuda.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/matmul/matmul_cuda.hpp"
#include "kernels/optimizers/optimizers.hpp"
#include "kernels/optimizers/optimizers_cuda.hpp"

namespace shardproof::engine {
namespace {

constexpr std::int64_t recorded_step = 2;  // of a state that is no longer zero

template <class S>
struct Matrix {
  Dims dims;
  std::vector<S> values;
};

/// One step of `tiny` on one rank.
template <class S>
struct Step {
  workload::Workload workload = workload::load("tiny", {});
  double learning_rate = 0;
  std::map<std::string, Matrix<S>> input, gradient;  ///< x and dy of each linear map, by its weight
  std::map<std::string, Matrix<S>> passed_on;        ///< by the embedding and by each block
  std::vector<Observable> before, after;             ///< what the step before showed, and this one

  const Values& find(const std::vector<Observable>& observables, Observed kind, const std::string& name) const {
    const auto place =
        std::ranges::find_if(observables, [&](const Observable& o) { return o.kind == kind && o.name == name; });
    if (place == observables.end()) throw std::out_of_range(name);
    return place->values;
  }
  std::vector<S> parameter(const std::string& name) const {
    return std::get<std::vector<S>>(find(before, Observed::parameter, name));
  }
};

template <class S>
const Step<S>& recorded() {
  static const Step<S> step = [] {
    Step<S> r;
    const auto keep = [](Queue& queue, const Tensor& tensor) {
      return Matrix<S>{tensor.dims(), fetch<S>(queue, tensor)};
    };
    Tamper tamper;
    tamper.contraction = [&](std::int64_t at, const std::string& weight, Queue& queue, const Tensor& dy,
                             const Tensor& x, const Accumulator&) {
      if (at == recorded_step) r.input[weight] = keep(queue, x), r.gradient[weight] = keep(queue, dy);
    };
    tamper.activation = [&](std::int64_t at, const std::string& part, Queue& queue, const Tensor& tensor) {
      if (at == recorded_step) r.passed_on[part] = keep(queue, tensor);
    };
    const workload::Corpus corpus(r.workload);
    constexpr auto dtype = dtype_of<S>();
    const Track track = dtype == Dtype::fixed ? Track::exact : dtype == Dtype::f64 ? Track::f64 : Track::native;
    testing::on_ranks(r.workload, track, "dp1",
                      [&](testing::RankRun& run) {
                        for (std::int64_t t = 1; t <= recorded_step; ++t) {
                          r.learning_rate = run.trainer.step(workload::batch(r.workload, corpus, t)).learning_rate;
                          r.before = std::exchange(r.after, run.trainer.observe().observables);
                        }
                      },
                      {.tamper = tamper});
    return r;
  }();
  return step;
}

template <class T>
void expect_same(const std::string& name, const std::vector<T>& cpu, const std::vector<T>& device) {
  EXPECT_EQ(cpu.size(), device.size()) << name;
  EXPECT_EQ(shardproof::testing::bytes_digest(cpu), shardproof::testing::bytes_digest(device)) << name;
}

/// The CPU's kernels.
template <class S>
struct Cpu {
  Device device;
  ImmediateQueue queue{device};

  Tensor put(const Dims& dims, const std::vector<S>& values) {
    return shardproof::testing::put(queue, "input", dims, values);
  }
  Tensor put(const Matrix<S>& matrix) { return put(matrix.dims, matrix.values); }
  Tensor put(const std::vector<S>& vector) { return put({std::ssize(vector)}, vector); }
  Tensor blank(const Dims& dims) { return shardproof::testing::blank<S>(queue, "output", dims); }
  Accumulator sum(const Dims& dims) { return {queue, {"sum", dtype_of<S>(), dims, Category::workspace}}; }

  /// The sum of the input gradients of linear maps that read one tensor.
  Matrix<S> input_gradient(const Step<S>& step, const std::vector<std::string>& weights) {
    const Dims& dims = step.input.at(weights.front()).dims;
    const Accumulator dx = sum(dims);
    for (const auto& weight : weights) {
      const auto& dy = step.gradient.at(weight);
      matmul::backward_input(queue, put(dy), put({dy.dims[1], dims[1]}, step.parameter(weight)), dx);
    }
    return {dims, fetch<S>(queue, Accumulator(dx).finish(queue))};
  }
};

using shardproof::testing::from_device, shardproof::testing::on_device;

std::uint64_t top_of(const std::vector<Fixed>& values) {
  return fold_magnitude(HostTeam<32>{}, std::ssize(values), [p = values.data()](std::int64_t i) { return p[i]; });
}

matmul::ExactProductRow::Matrix rows(const cuda::Buffer<Fixed>& x, std::int64_t columns) {
  return {x.data(), columns, 1};
}
/// The transpose of a row-major matrix.
matmul::ExactProductRow::Matrix columns(const cuda::Buffer<Fixed>& x, std::int64_t columns) {
  return {x.data(), 1, columns};
}

TEST(StepOnCuda, LinearMapsInExact) {
  const auto& step = recorded<Fixed>();
  ASSERT_EQ(step.input.size(), 13u);  // six in each of two blocks, and the head
  Cpu<Fixed> cpu;
  cuda::Stream stream;
  for (const auto& [name, x] : step.input) {
    const auto& dy = step.gradient.at(name);
    const std::int64_t n = x.dims[0], in = x.dims[1], out = dy.dims[1];
    const auto w = step.parameter(name);
    const bool biased = name.starts_with("blocks.");
    const auto bias = biased ? step.parameter(name.substr(0, name.rfind('.')) + ".bias") : std::vector<Fixed>();
    const Tensor x_cpu = cpu.put(x), dy_cpu = cpu.put(dy), w_cpu = cpu.put({out, in}, w);
    const Tensor y = cpu.blank({n, out}), dx = cpu.blank({n, in});
    Accumulator dw = cpu.sum({out, in});
    matmul::forward(cpu.queue, x_cpu, w_cpu, biased ? cpu.put(bias) : Tensor(), y);
    matmul::backward_input(cpu.queue, dy_cpu, w_cpu, dx);
    matmul::backward_weight(cpu.queue, dy_cpu, x_cpu, dw);

    const auto x_gpu = on_device(stream, x.values), dy_gpu = on_device(stream, dy.values), w_gpu = on_device(stream, w),
               bias_gpu = on_device(stream, bias);
    const cuda::Buffer<Fixed> y_gpu(n * out), dx_gpu(n * in), dw_gpu(out * in);
    matmul::launch(stream,
                   {rows(x_gpu, in), columns(w_gpu, in), biased ? bias_gpu.data() : nullptr, y_gpu.data(), out, in,
                    top_of(w), top_of(bias)},
                   n);
    matmul::launch(stream, {rows(dy_gpu, out), rows(w_gpu, in), nullptr, dx_gpu.data(), in, out, top_of(w), 0}, n);
    matmul::launch(stream, {columns(dy_gpu, out), rows(x_gpu, in), nullptr, dw_gpu.data(), in, n, top_of(x.values), 0},
                   out);
    expect_same(name + ": y", fetch<Fixed>(cpu.queue, y), from_device(stream, y_gpu));
    expect_same(name + ": dx", fetch<Fixed>(cpu.queue, dx), from_device(stream, dx_gpu));
    const auto gradient = from_device(stream, dw_gpu);
    expect_same(name + ": dw", fetch<Fixed>(cpu.queue, dw.finish(cpu.queue)), gradient);
    if (!biased) continue;  // the head's may be the embedding's too
    expect_same(name + ": dw of the step",
                std::get<std::vector<Fixed>>(step.find(step.after, Observed::gradient, name)), gradient);
  }
}

template <class S>
class StepOnCudaOf : public ::testing::Test {};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(StepOnCudaOf, Scalars);

/// x, what the step had as the norm's output, and the gradient that comes back to it.
template <class S>
void expect_norm(const Step<S>& step, const std::string& name, const Matrix<S>& x, const std::vector<S>& y_of_step,
                 const Matrix<S>& dy) {
  Cpu<S> cpu;
  const std::int64_t n = x.dims[0], hidden = x.dims[1];
  const auto weight = step.parameter(name + ".weight"), bias = step.parameter(name + ".bias");
  const Tensor x_cpu = cpu.put(x), weight_cpu = cpu.put(weight);
  const Tensor y = cpu.blank(x.dims), mean = cpu.blank({n}), rstd = cpu.blank({n}), dx = cpu.blank(x.dims);
  const double epsilon = step.workload.layer_norm_epsilon;
  layer_norm::forward(cpu.queue, x_cpu, weight_cpu, cpu.put(bias), epsilon, y, mean, rstd);
  layer_norm::backward_input(cpu.queue, cpu.put(dy), x_cpu, mean, rstd, weight_cpu, dx);
  expect_same(name + ": y of the step", y_of_step, fetch<S>(cpu.queue, y));

  cuda::Stream stream;
  const auto x_gpu = on_device(stream, x.values), dy_gpu = on_device(stream, dy.values),
             weight_gpu = on_device(stream, weight), bias_gpu = on_device(stream, bias);
  const cuda::Buffer<S> y_gpu(n * hidden), mean_gpu(n), rstd_gpu(n), dx_gpu(n * hidden);
  const auto overflow = on_device(stream, std::vector<std::int32_t>{0});
  layer_norm::launch(stream,
                     layer_norm::ForwardRow<S>{x_gpu.data(), weight_gpu.data(), bias_gpu.data(), y_gpu.data(),
                                               mean_gpu.data(), rstd_gpu.data(), hidden, static_cast<Real<S>>(epsilon)},
                     n, overflow.data());
  layer_norm::launch(stream,
                     layer_norm::BackwardRow<S>{dy_gpu.data(), x_gpu.data(), mean_gpu.data(), rstd_gpu.data(),
                                                weight_gpu.data(), dx_gpu.data(), hidden},
                     n, overflow.data());
  expect_same(name + ": y", fetch<S>(cpu.queue, y), from_device(stream, y_gpu));
  expect_same(name + ": mean", fetch<S>(cpu.queue, mean), from_device(stream, mean_gpu));
  expect_same(name + ": rstd", fetch<S>(cpu.queue, rstd), from_device(stream, rstd_gpu));
  expect_same(name + ": dx", fetch<S>(cpu.queue, dx), from_device(stream, dx_gpu));
  EXPECT_EQ(from_device(stream, overflow)[0], 0) << name;
}

TYPED_TEST(StepOnCudaOf, LayerNorms) {
  using S = TypeParam;
  const auto& step = recorded<S>();
  Cpu<S> cpu;
  std::string below = "embedding";
  for (const std::string block : {"blocks.0", "blocks.1"}) {
    const auto weight = [&](const char* map) { return block + "." + map + ".weight"; };
    const auto& x = step.passed_on.at(below);
    expect_norm(
        step, block + ".norm1", x, step.input.at(weight("attention.query")).values,
        cpu.input_gradient(step, {weight("attention.query"), weight("attention.key"), weight("attention.value")}));

    const auto& o = step.input.at(weight("attention.output"));
    const Tensor projection = cpu.blank(x.dims), x2 = cpu.blank(x.dims);
    matmul::forward(cpu.queue, cpu.put(o), cpu.put({x.dims[1], o.dims[1]}, step.parameter(weight("attention.output"))),
                    cpu.put(step.parameter(block + ".attention.output.bias")), projection);
    elementwise::add(cpu.queue, cpu.put(x), projection, x2);
    expect_norm(step, block + ".norm2", Matrix<S>{x.dims, fetch<S>(cpu.queue, x2)},
                step.input.at(weight("mlp.up")).values, cpu.input_gradient(step, {weight("mlp.up")}));
    below = block;
  }
  const auto head = std::ranges::find_if(step.input, [](const auto& map) { return !map.first.starts_with("blocks."); });
  ASSERT_NE(head, step.input.end());
  expect_norm(step, "final_norm", step.passed_on.at(below), head->second.values,
              cpu.input_gradient(step, {head->first}));
}

TYPED_TEST(StepOnCudaOf, Adam) {
  using S = TypeParam;
  using C = Real<S>;
  const auto& step = recorded<S>();
  const auto& w = step.workload;
  const double loss_scale = std::is_same_v<S, Fixed> ? w.loss_scale : 1.0;
  const auto row = optimizers::adam_row<S, false>(
      {.loss_scale = loss_scale}, {step.learning_rate, w.beta1, w.beta2, w.epsilon, recorded_step, false, 0.0});
  cuda::Stream stream;
  int updated = 0;
  for (const auto& after : step.after) {
    if (after.kind != Observed::parameter) continue;
    const auto& name = after.name;
    const auto state = [&](const std::vector<Observable>& at, const char* moment) {
      return std::get<std::vector<C>>(step.find(at, Observed::state, name + moment));
    };
    const auto p = on_device(stream, step.parameter(name)),
               g = on_device(stream, std::get<std::vector<S>>(step.find(step.after, Observed::gradient, name)));
    const auto m = on_device(stream, state(step.before, ".first_moment")),
               v = on_device(stream, state(step.before, ".second_moment"));
    auto own = row;
    own.p = p.data(), own.g = g.data(), own.m = m.data(), own.v = v.data();
    optimizers::launch(stream, own, p.size());
    expect_same(name, std::get<std::vector<S>>(after.values), from_device(stream, p));
    expect_same(name + ".first_moment", state(step.after, ".first_moment"), from_device(stream, m));
    expect_same(name + ".second_moment", state(step.after, ".second_moment"), from_device(stream, v));
    ++updated;
  }
  EXPECT_GT(updated, 30);
}

}  // namespace
}  // namespace shardproof::engine
