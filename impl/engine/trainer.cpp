// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "impl/engine/ready.hpp"
#include "impl/engine/stale_feed.hpp"
#include "impl/pipeline_parallel/executor.hpp"
#include "impl/step/gradient_sync.hpp"
#include "impl/step/linear_split.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/non_finite.hpp"
#include "kernels/norms/norms.hpp"
#include "suites/workload/keys.hpp"

namespace shardproof::engine {

namespace {

using plan::Axis;

const step::Optimizer& optimizer_of(const workload::Workload& workload) {
  return step::optimizer(workload::names_of(workload.optimizer)[static_cast<std::size_t>(workload.optimizer)]);
}

template <class Technique>
const Technique& named(std::span<const Technique* const> all, std::string_view name) {
  const auto at = std::ranges::find(all, name, &Technique::name);
  if (at == all.end()) throw NotSupported("no technique is named " + std::string(name));
  return **at;
}

std::vector<Rank> along(const plan::Mesh& mesh, Rank rank, Axis axis) { return mesh.group(rank, std::array{axis}); }

}  // namespace

struct Trainer::Impl : Feed {
  Impl(Queue& queue, comm::World& world, const workload::Workload& w, Track t, const plan::Plan& p, Tamper tamper_,
       Batches ahead)
      : workload(w),
        track(t),
        plan(p),
        place(plan::place_of(plan.mesh, world.rank())),
        tamper(std::move(tamper_)),
        optimizer(optimizer_of(workload)),
        store(queue, workload, track, plan, place, optimizer),
        everyone(world.all("step")),
        observers(world.all("observe")),
        data_group(world.communicator("dp", along(plan.mesh, place.rank, Axis::dp), "step")),
        split(named(step::linear_splits(), plan.strategy.tp > 1 ? "tensor" : "whole")
                  .make(world.communicator("tp", along(plan.mesh, place.rank, Axis::tp), "activation"))),
        context{queue,
                workload,
                track,
                *split,
                plan.layout.heads.at(static_cast<std::size_t>(place.tp)),
                plan.layout.vocab.at(static_cast<std::size_t>(place.tp)),
                plan.layout.shares_key_heads(),
                plan.strategy.attention == "tiled",
                tamper},
        stages(context, store, plan, place, *this),
        executor(queue, world.communicator("pp", along(plan.mesh, place.rank, Axis::pp), "activation"),
                 world.communicator("pp", along(plan.mesh, place.rank, Axis::pp), "activation_gradient"),
                 plan.pipeline.placement, boundary_of(world)),
        ready(plan.actions(place.pp), store) {
    std::map<std::vector<std::int64_t>, std::vector<Accumulator>> sums;  // by the pp coordinates of its data group
    for (auto& slot : store.slots()) {
      if (!slot.gradient) continue;
      const auto holders = plan.holders(*slot.layout);
      // Copies of a stage run other microbatches, as ranks of a data group do. Uses on several stages are terms of one
      // sum: they are added up within each pipeline before data ranks meet.
      const bool is_partial = slot.layout->stages().size() > 1;
      const auto copies = is_partial ? std::vector{place.pp} : holders;
      auto& group = sums[copies];
      gradients.push_back({&slot, is_partial ? partial_group(world, holders) : nullptr, copies, group.size()});
      group.push_back(slot.gradient);
    }
    const auto& technique = named(step::gradient_syncs(), plan.strategy.sync);
    for (auto& [copies, group] : sums)
      syncs.emplace(copies, technique.make(queue, world.communicator("dp", data_ranks(copies), "gradient"), group));
    if (plan.pipeline.is_stale()) stale.emplace(plan, place.pp, std::move(ahead));
  }

  pipeline_parallel::Boundary boundary_of(comm::World& world) const {
    if (plan.strategy.boundary == "whole") return {};
    return pipeline_parallel::Boundary(world.communicator("tp", along(plan.mesh, place.rank, Axis::tp), "boundary"));
  }

  /// The group over which uses of a parameter on several ranks of the pipeline sum their gradients; nullptr for one.
  comm::Communicator* partial_group(comm::World& world, const std::vector<std::int64_t>& holders) {
    if (holders.size() < 2) return nullptr;
    const auto found = partial.find(holders);
    if (found != partial.end()) return &found->second;
    const auto pipeline = along(plan.mesh, place.rank, Axis::pp);
    std::vector<Rank> members;
    for (const auto pp : holders) members.push_back(pipeline.at(static_cast<std::size_t>(pp)));
    return &partial.emplace(holders, world.communicator("pp", members, "partial")).first->second;
  }

  /// All data ranks at these pp coordinates.
  std::vector<Rank> data_ranks(const std::vector<std::int64_t>& copies) const {
    std::vector<Rank> ranks;
    for (std::int64_t dp = 0; dp < plan.strategy.dp; ++dp)
      for (const auto pp : copies) ranks.push_back(plan.mesh.rank_at({pp, dp, place.tp}));
    return ranks;
  }

  /// loss scale: the exact track's alone.
  double scale() const { return track == Track::exact ? workload.loss_scale : 1.0; }
  Queue& queue() { return context.queue; }

  struct Gradient {
    ParameterSlot* slot;
    comm::Communicator* partial;       ///< ranks of the pipeline that have other terms of it; nullptr: there are none
    std::vector<std::int64_t> copies;  ///< pp coordinates of its data group
    std::size_t k;                     ///< in its sync

    /// Terms on other ranks of the pipeline or of the tensor group are added before it is ready.
    bool waits() const { return partial != nullptr || slot->layout->overlaps(); }
  };
  void is_ready(const Gradient& gradient) { syncs.at(gradient.copies)->ready(gradient.k); }

  StepInput input(std::int64_t microbatch) override;
  std::int64_t version(std::int64_t /*stage*/, std::int64_t microbatch) override {
    return stale ? stale->version(microbatch) : steps_taken;
  }
  void update(std::int64_t stage, std::int64_t microbatch) override;
  /// The step of a stale program, its labels counted.
  StaleFeed::Step& met(std::int64_t step);
  void step_of_stale(const std::function<void()>& after_action);

  void begin(const workload::Batch& batch);
  std::int64_t count_labels(const workload::Batch& batch);
  void run_schedule(const workload::Batch& batch, const WideTotal& loss, const std::function<void()>& after_action);
  void sum_gradients();
  void share_rows(const ParameterSlot& slot);
  /// Over all ranks: of the finished gradients, and of one step's losses.
  double global_norm(comm::Communicator& all, std::string_view purpose);
  double total_loss(const WideTotal& loss, comm::Communicator& all, std::string_view purpose);
  void observe_scalars();
  bool agree_on_non_finite();
  void end_of_step(const WideTotal& loss);
  void show(Observed kind, const std::string& name, const Tensor& tensor) {
    if (tamper.tensor) tamper.tensor(last.step, kind, name, queue(), tensor);
  }
  void show(Observed kind, double& value) {
    if (tamper.scalar) tamper.scalar(last.step, kind, queue(), value);
  }

  const workload::Workload workload;
  const Track track;
  const plan::Plan& plan;
  const plan::Place place;
  const Tamper tamper;
  const step::Optimizer& optimizer;
  ParameterStore store;
  comm::Communicator everyone, observers, data_group;
  std::unique_ptr<step::LinearSplit> split;
  const Context context;
  Stages stages;
  pipeline_parallel::Executor executor;
  Ready ready;
  std::map<std::vector<std::int64_t>, comm::Communicator> partial;  // by holders
  std::vector<Gradient> gradients;                                  // of the slots with one, in their order
  // By the pp coordinates of their data groups. All ranks go through their groups in this one order, so that none waits
  // in a circle.
  std::map<std::vector<std::int64_t>, std::unique_ptr<step::GradientSync>> syncs;

  StepResult last;
  StepInput current;  // of a flushed schedule
  std::int64_t steps_taken = 0;
  std::optional<StaleFeed> stale;
  bool restarts = true;  // gradients: an update was made of what they hold
};

void Trainer::Impl::begin(const workload::Batch& batch) {
  last = {};
  last.step = batch.step;
  last.learning_rate = workload::learning_rate(workload, batch.step);
  if (!stale) queue().device().clear_overflow();  // a stale program ends where there is one
  // A parameter that an update drove out of range overflows every later step, whether a kernel reads it or not.
  queue().submit("parameter_flags", [this](KernelScope& scope) {
    for (const auto& slot : store.slots()) {
      if (scope.overflow_of(slot.value)) scope.raise_overflow();
    }
  });
  for (auto& slot : store.slots()) {
    if (slot.gradient && restarts) slot.gradient.restart(queue());
  }
  restarts = !stale;
}

std::int64_t Trainer::Impl::count_labels(const workload::Batch& batch) {
  std::int64_t own = 0;
  const auto parts = plan.strategy.microbatches;
  for (std::int64_t k = 0; k < parts; ++k)
    own += workload::labels_of_part(batch, plan.strategy.dp * parts, place.dp * parts + k);
  const Tensor count(queue(), {"label_count", Dtype::i64, {1}, Category::workspace});
  upload<std::int64_t>(queue(), count, std::array{own});
  data_group.all_reduce(queue(), count, comm::Operator::sum, "label_count");
  return fetch<std::int64_t>(queue(), count)[0];
}

void Trainer::Impl::run_schedule(const workload::Batch& batch, const WideTotal& loss,
                                 const std::function<void()>& after_action) {
  current = {&batch, last.tokens > 0 ? scale() / static_cast<double>(last.tokens) : 0.0, &loss};
  ready.start();
  executor.run(plan.actions(place.pp), stages, [&](const plan::Action& action) {
    for (const auto k : ready.after(action)) {
      if (!gradients.at(k).waits()) is_ready(gradients[k]);
    }
    if (after_action) after_action();
  });
  executor.end();
  stages.end();
}

StepInput Trainer::Impl::input(std::int64_t microbatch) {
  if (!stale) return current;
  auto& step = met(stale->step_of(microbatch));
  return {&step.batch, step.factor, &*step.loss};
}

// All data ranks meet a step first at the same action.
StaleFeed::Step& Trainer::Impl::met(std::int64_t number) {
  auto& step = stale->step(number);
  if (!step.loss) {
    step.loss.emplace(queue(), scalar_of(track), "loss");
    step.labels = count_labels(step.batch);
    step.factor = step.labels > 0 ? scale() / static_cast<double>(step.labels) : 0.0;
  }
  return step;
}

// Lines 3, 4, 8 and 10 of the list of design section 3, of one stage.
void Trainer::Impl::update(std::int64_t stage, std::int64_t microbatch) {
  const plan::Range steps = stale->steps_of_update(microbatch);
  const std::int64_t step = steps.end - 1;
  std::int64_t labels = 0;
  for (std::int64_t k = steps.begin; k < steps.end; ++k) labels += met(k).labels;
  for (const auto& gradient : gradients) {
    if (gradient.slot->layout->overlaps()) share_rows(*gradient.slot);
    is_ready(gradient);
  }
  for (const auto& [copies, sync] : syncs) sync->finish();
  queue().synchronize();
  WideTotal squares(queue(), scalar_of(track), "gradient_squares");  // what is not finite shows in it, in any track
  for (auto& slot : store.slots()) {
    if (!slot.gradient) continue;
    const Tensor gradient = slot.gradient.finish(queue());
    show(Observed::gradient, slot.parameter().name, gradient);
    norms::sum_of_squares(queue(), gradient, squares);
  }
  queue().synchronize();
  if (queue().device().overflow() || !std::isfinite(squares.fetch(queue())))
    throw NonFinite("step " + std::to_string(step) + ": a number of stage " + std::to_string(stage) +
                    " is out of range, and " + plan.strategy.schedule.text() +
                    " cannot skip the step: other stages have made their updates (a smaller " +
                    (track == Track::exact ? "loss_scale" : "learning_rate") + " may keep it in range)");
  if (labels > 0) ++steps_taken;
  const step::UpdateContext update{workload, scale(), 1.0, workload::learning_rate(workload, step), steps_taken};
  for (auto& slot : store.slots()) {
    if (stale->is_read(slot.version)) slot.keep_version(queue());
    if (slot.gradient && labels > 0)
      optimizer.update(queue(), update, slot.parameter(), slot.value, slot.gradient.finish(queue()), slot.state);
    ++slot.version;
  }
  restarts = true;
  for (auto& slot : store.slots()) {
    show(Observed::parameter, slot.parameter().name, slot.value);
    for (const auto& state : slot.state) show(Observed::state, state.name(), state);
  }
}

void Trainer::Impl::step_of_stale(const std::function<void()>& after_action) {
  last.norm = std::numeric_limits<double>::quiet_NaN();  // of all stages together: observe() asks them
  const auto is_read = [this](std::int64_t version) { return stale->is_read(version); };
  executor.run(stale->next_actions(last.step), stages, [&](const plan::Action&) {
    stale->done();
    for (auto& slot : store.slots()) slot.keep_versions(is_read);
    if (after_action) after_action();
  });
  last.tokens = met(last.step).labels;
  if (last.tokens == 0) last.skipped = Skipped::no_label;
  queue().synchronize();
  if (!stale->has_ended()) return;
  executor.end();
  stages.end();
}

/// Copies of the same rows on several tensor ranks: everybody takes the owner's sum, for two ranks whose matmuls have
/// other shapes may round the same rows differently, and copies would drift apart.
void Trainer::Impl::share_rows(const ParameterSlot& slot) {
  const auto& layout = *slot.layout;
  const auto t = static_cast<std::size_t>(place.tp);
  const auto dims = layout.parameter.dims;
  const std::int64_t row = layout.parameter.elements() / dims[0];  // overlaps are of rows
  const auto held = layout.held[t], owned = layout.owned[t];
  const Accumulator all(queue(), {layout.parameter.name + ".shared_rows", scalar_of(track), dims, Category::workspace});
  if (owned.size() > 0) {
    add_window(queue(), slot.gradient, {(owned.begin - held.begin) * row, 0}, all, {owned.begin * row, 0}, 1,
               owned.size() * row);
  }
  split->join(queue(), all, "shared_rows_gradient");
  Accumulator mine = slot.gradient;
  mine.restart(queue());
  add_window(queue(), all, {held.begin * row, 0}, mine, {0, 0}, 1, held.size() * row);
}

void Trainer::Impl::sum_gradients() {
  for (const auto& gradient : gradients) {
    if (!gradient.waits()) continue;
    const auto& slot = *gradient.slot;
    if (gradient.partial != nullptr) gradient.partial->all_reduce(queue(), slot.gradient, "copies_gradient");
    if (slot.layout->overlaps()) share_rows(slot);
    is_ready(gradient);
  }
  for (const auto& [copies, sync] : syncs) sync->finish();
  for (auto& slot : store.slots()) {
    if (slot.gradient) show(Observed::gradient, slot.parameter().name, slot.gradient.finish(queue()));
  }
}

double Trainer::Impl::global_norm(comm::Communicator& all, std::string_view purpose) {
  WideTotal squares(queue(), scalar_of(track), "gradient_squares");
  for (auto& slot : store.slots()) {
    if (!slot.gradient || !slot.is_primary || !plan.is_updated(*slot.layout, last.step)) continue;
    const auto t = static_cast<std::size_t>(place.tp);
    const auto owned = slot.layout->owned.at(t), held = slot.layout->held.at(t);
    Tensor gradient = slot.gradient.finish(queue());
    // Only rows are ever held without being owned: key and value heads, and copies of what no rank cuts.
    if (owned != held)
      gradient = gradient.rows(owned.begin - (owned.size() > 0 ? held.begin : owned.begin), owned.size());
    norms::sum_of_squares(queue(), gradient, squares);
  }
  all.all_reduce(queue(), squares, purpose);
  return std::sqrt(squares.fetch(queue()) * (track == Track::exact ? 0x1p-80 : 1.0)) / scale();
}

double Trainer::Impl::total_loss(const WideTotal& loss, comm::Communicator& all, std::string_view purpose) {
  // One tensor rank of the last stage counts a sample's loss.
  WideTotal counted(queue(), scalar_of(track), "counted_loss");
  if (split->first()) copy(queue(), loss.tensor(), counted.tensor());
  all.all_reduce(queue(), counted, purpose);
  return counted.fetch(queue()) * (track == Track::exact ? 0x1p-40 : 1.0);
}

void Trainer::Impl::observe_scalars() {
  last.norm = global_norm(observers, "observe");
  const double total = total_loss(*met(last.step).loss, observers, "observe");
  show(Observed::norm, last.norm);
  show(Observed::clip, last.clip_factor);
  if (last.tokens == 0) return;
  last.loss = total / static_cast<double>(last.tokens);
  show(Observed::loss, *last.loss);
}

bool Trainer::Impl::agree_on_non_finite() {
  queue().synchronize();
  const Tensor overflow(queue(), {"overflow", Dtype::i32, {1}, Category::workspace});
  upload<std::int32_t>(queue(), overflow, std::array{std::int32_t{queue().device().overflow()}});
  everyone.all_reduce(queue(), overflow, comm::Operator::bit_or, "overflow");
  return fetch<std::int32_t>(queue(), overflow)[0] != 0;
}

// The list of design section 3: 1 and 2 are the schedule's and sum_gradients', 3 is the sync's; 4 unscale (in `exact`
// lines 6 and 8 divide), 5 agree on non-finite, 6 norm, 7 clip, 8 optimizer, 10 advance.
void Trainer::Impl::end_of_step(const WideTotal& loss) {
  sum_gradients();
  last.norm = global_norm(everyone, "gradient_norm");
  const double total = total_loss(loss, everyone, "loss");
  last.clip_factor = workload.clip > 0 ? std::min(1.0, workload.clip / (last.norm + 1e-6)) : 1.0;
  if (agree_on_non_finite() || !std::isfinite(last.norm)) {
    last.skipped = Skipped::non_finite;
    return;
  }
  show(Observed::norm, last.norm);
  show(Observed::clip, last.clip_factor);
  if (last.tokens == 0) {
    last.skipped = Skipped::no_label;
    return;
  }
  last.loss = total / static_cast<double>(last.tokens);
  show(Observed::loss, *last.loss);
  ++steps_taken;
  const step::UpdateContext update{workload, scale(), last.clip_factor, last.learning_rate, steps_taken};
  for (auto& slot : store.slots()) {
    if (!slot.gradient) continue;
    optimizer.update(queue(), update, slot.parameter(), slot.value, slot.gradient.finish(queue()), slot.state);
  }
  for (auto& slot : store.slots()) slot.version = steps_taken;
  for (auto& slot : store.slots()) {
    show(Observed::parameter, slot.parameter().name, slot.value);
    for (const auto& state : slot.state) show(Observed::state, state.name(), state);
  }
}

comm::ThreadsOptions threads_for(const plan::Plan& plan, comm::ThreadsOptions options) {
  options.send_depth = std::max(options.send_depth, plan.pipeline.schedule.send_depth);
  return options;
}

Trainer::Trainer(Queue& queue, comm::World& world, const workload::Workload& workload, Track track,
                 const plan::Plan& plan, Tamper tamper, Batches ahead) {
  if (plan.mesh.ranks() != world.size() || queue.device().rank() != world.rank())
    throw InternalError("trainer: the plan is for " + std::to_string(plan.mesh.ranks()) + " ranks, the world has " +
                        std::to_string(world.size()));
  impl_ = std::make_unique<Impl>(queue, world, workload, track, plan, std::move(tamper), std::move(ahead));
}
Trainer::~Trainer() = default;

StepResult Trainer::step(const workload::Batch& batch, const std::function<void()>& after_action) {
  auto& t = *impl_;
  t.begin(batch);
  if (t.stale) {
    t.step_of_stale(after_action);
    return t.last;
  }
  t.last.tokens = t.count_labels(batch);
  const WideTotal loss(t.queue(), scalar_of(t.track), "loss");
  t.run_schedule(batch, loss, after_action);
  t.end_of_step(loss);
  t.queue().synchronize();
  return t.last;
}

std::vector<std::optional<double>> Trainer::losses() {
  std::vector<std::optional<double>> losses;
  auto& t = *impl_;
  for (std::int64_t k = 1; k <= t.workload.steps; ++k) {
    const auto& step = t.met(k);
    const double total = t.total_loss(*step.loss, t.observers, "observe");
    losses.push_back(step.labels > 0 ? std::optional(total / static_cast<double>(step.labels)) : std::nullopt);
  }
  return losses;
}

Observation Trainer::observe() {
  auto& t = *impl_;
  if (t.stale) t.observe_scalars();
  return Observer{t.queue(), t.observers, t.plan, t.optimizer, t.track}.all(t.store, t.last);
}

Observation Trainer::parameters() {
  auto& t = *impl_;
  return Observer{t.queue(), t.observers, t.plan, t.optimizer, t.track}.parameters(t.store, t.last.step);
}

const std::vector<SavedBytes>& Trainer::saved_bytes() const { return impl_->stages.saved_bytes(); }
std::int64_t Trainer::peak_in_flight() const { return impl_->stages.peak_in_flight(); }

}  // namespace shardproof::engine
