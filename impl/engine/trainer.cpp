// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/trainer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "impl/engine/block.hpp"
#include "impl/engine/ends.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/norms/norms.hpp"

namespace shardproof::engine {

namespace {

constexpr std::array optimizer_names{"sgd", "momentum", "adam", "adamw"};

const step::Optimizer& optimizer_of(const workload::Workload& workload) {
  return step::optimizer(optimizer_names.at(static_cast<std::size_t>(workload.optimizer)));
}

Tensor upload_input(Queue& queue, std::string name, const std::vector<std::int32_t>& values) {
  Tensor tensor(queue, {std::move(name), Dtype::i32, {std::ssize(values)}, Category::workspace});
  upload<std::int32_t>(queue, tensor, values);
  return tensor;
}

Values fetch_values(Queue& queue, const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&]<class S>(S) -> Values { return fetch<S>(queue, tensor); });
}

}  // namespace

struct Trainer::Impl {
  Impl(Queue& queue_, const workload::Workload& workload_, Track track_, TrainerOptions options_)
      : queue(queue_),
        workload(workload_),
        track(track_),
        options(options_),
        optimizer(optimizer_of(workload)),
        store(queue, workload, track, optimizer),
        embedding(store),
        head(store, workload) {
    if (options.microbatches < 1)
      throw BadInput("microbatches is " + std::to_string(options.microbatches) + "; it must be 1 or more");
    for (std::int64_t l = 0; l < workload.layers; ++l) blocks.emplace_back(store, workload, l);
  }

  void microbatch(const workload::Batch& part, const WideTotal& loss, double factor);
  void end_of_step(const WideTotal& loss);
  void measure(std::string part, std::int64_t bytes) {
    if (measuring) saved_bytes.push_back({std::move(part), bytes});
  }
  /// loss scale: the exact track's alone.
  double scale() const { return track == Track::exact ? workload.loss_scale : 1.0; }
  std::int64_t activation_bytes() { return queue.device().memory().current(Category::activation); }

  Queue& queue;
  const workload::Workload workload;
  const Track track;
  const TrainerOptions options;
  const step::Optimizer& optimizer;
  ParameterStore store;
  Embedding embedding;
  Head head;
  std::vector<Block> blocks;

  StepResult last;
  std::int64_t steps_taken = 0;
  bool measuring = true;
  std::vector<SavedBytes> saved_bytes;
};

void Trainer::Impl::microbatch(const workload::Batch& part, const WideTotal& loss, double factor) {
  const Pass pass{.queue = queue,
                  .workload = workload,
                  .track = track,
                  .step = part.step,
                  .first_sample = part.first,
                  .samples = part.size(),
                  .tokens = upload_input(queue, "tokens", part.tokens),
                  .labels = upload_input(queue, "labels", part.labels),
                  .documents = upload_input(queue, "documents", part.documents)};
  step::SavedTensors embedding_saved, head_saved;
  std::vector<step::SavedTensors> block_saved(blocks.size());

  // A part owns the memory of its input, not that of its output: the next part saves that.
  auto before = activation_bytes();
  Tensor x = embedding.forward(pass, embedding_saved);
  measure("embedding", activation_bytes() - before - x.bytes());
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    before = activation_bytes() - x.bytes();
    x = blocks[l].forward(pass, x, block_saved[l]);
    measure("blocks." + std::to_string(l), activation_bytes() - before - x.bytes());
  }
  before = activation_bytes() - x.bytes();
  head.forward(pass, x, loss, head_saved);
  measure("head", activation_bytes() - before);
  measuring = false;

  x = Tensor();
  Tensor d = head.backward_input(pass, factor, head_saved);
  head.backward_weight(pass, head_saved);
  for (std::size_t l = blocks.size(); l-- > 0;) {
    d = blocks[l].backward_input(pass, d, block_saved[l]);
    blocks[l].backward_weight(pass, block_saved[l]);
  }
  embedding.backward_input(pass, d, embedding_saved);
  d = Tensor();
  embedding.backward_weight(pass, embedding_saved);
}

// The list of design section 3, as far as one rank needs it: 1 accumulated, 4 unscale (in `exact` lines 6 and 8
// divide), 5 agree on non-finite, 6 norm, 7 clip, 8 optimizer, 10 advance.
void Trainer::Impl::end_of_step(const WideTotal& loss) {
  WideTotal squares(queue, scalar_of(track), "gradient_squares");
  for (auto& slot : store.slots()) {
    if (slot.gradient) norms::sum_of_squares(queue, slot.gradient.finish(queue), squares);
  }
  const bool exact = track == Track::exact;
  last.norm = std::sqrt(squares.fetch(queue) * (exact ? 0x1p-80 : 1.0)) / scale();
  const double total_loss = loss.fetch(queue) * (exact ? 0x1p-40 : 1.0);
  last.clip_factor = workload.clip > 0 ? std::min(1.0, workload.clip / (last.norm + 1e-6)) : 1.0;
  last.loss.reset();
  if (queue.device().overflow() || !std::isfinite(last.norm)) {
    last.skipped = Skipped::non_finite;
    return;
  }
  if (last.tokens == 0) {
    last.skipped = Skipped::no_label;
    return;
  }
  last.skipped = Skipped::no;
  last.loss = total_loss / static_cast<double>(last.tokens);
  ++steps_taken;
  const step::UpdateContext context{workload, scale(), last.clip_factor, last.learning_rate, steps_taken};
  for (auto& slot : store.slots()) {
    if (slot.gradient) {
      optimizer.update(queue, context, slot.parameter, slot.value, slot.gradient.finish(queue), slot.state);
    }
  }
}

Trainer::Trainer(Queue& queue, const workload::Workload& workload, Track track, TrainerOptions options)
    : impl_(std::make_unique<Impl>(queue, workload, track, options)) {}
Trainer::~Trainer() = default;

StepResult Trainer::step(const workload::Batch& batch) {
  auto& t = *impl_;
  t.last = {.step = batch.step,
            .tokens = batch.label_count,
            .loss = {},
            .learning_rate = workload::learning_rate(t.workload, batch.step)};
  t.queue.device().clear_overflow();
  for (auto& slot : t.store.slots()) {
    if (slot.gradient) slot.gradient.restart(t.queue);
  }
  const WideTotal loss(t.queue, scalar_of(t.track), "loss");
  const double factor = batch.label_count > 0 ? t.scale() / static_cast<double>(batch.label_count) : 0.0;
  for (std::int64_t k = 0; k < t.options.microbatches; ++k) {
    t.microbatch(workload::part(batch, t.options.microbatches, k), loss, factor);
  }
  t.end_of_step(loss);
  t.queue.synchronize();
  return t.last;
}

std::vector<Observable> Trainer::observe() {
  auto& t = *impl_;
  std::vector<Observable> all;
  const auto scalar = [&](Observed kind, const char* name, auto value) {
    all.push_back({t.last.step, kind, name, {1}, std::vector{value}});
  };
  if (t.last.skipped != Skipped::non_finite) {
    if (t.last.loss) scalar(Observed::loss, "loss", *t.last.loss);
    if (!t.last.loss) all.push_back({t.last.step, Observed::loss, "loss", {0}, std::vector<double>{}});
    for (auto& slot : t.store.slots()) {
      if (!slot.gradient) continue;
      all.push_back({t.last.step, Observed::gradient, slot.parameter.name, slot.parameter.dims,
                     fetch_values(t.queue, slot.gradient.finish(t.queue))});
    }
    scalar(Observed::norm, "norm", t.last.norm);
    scalar(Observed::clip, "clip", t.last.clip_factor);
  }
  scalar(Observed::skipped, "skipped", static_cast<std::int64_t>(t.last.skipped));
  for (auto& o : parameters()) all.push_back(std::move(o));
  for (auto& slot : t.store.slots()) {
    for (std::size_t k = 0; k < slot.state.size(); ++k) {
      all.push_back({t.last.step, Observed::state, slot.parameter.name + "." + std::string(t.optimizer.states[k]),
                     slot.parameter.dims, fetch_values(t.queue, slot.state[k])});
    }
  }
  std::ranges::stable_sort(all, {},
                           [](const Observable& o) { return std::pair<Observed, const std::string&>(o.kind, o.name); });
  return all;
}

std::vector<Observable> Trainer::parameters() {
  auto& t = *impl_;
  std::vector<Observable> all;
  for (auto& slot : t.store.slots()) {
    all.push_back({t.last.step, Observed::parameter, slot.parameter.name, slot.parameter.dims,
                   fetch_values(t.queue, slot.value)});
  }
  return all;
}

const std::vector<SavedBytes>& Trainer::saved_bytes() const { return impl_->saved_bytes; }

}  // namespace shardproof::engine
