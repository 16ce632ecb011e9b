// SPDX-License-Identifier: Apache-2.0
#include "harness/export.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/export_file.hpp"
#include "harness/export_folder.hpp"
#include "harness/export_reader.hpp"
#include "harness/judge_expectation.hpp"
#include "harness/judge_yardstick.hpp"
#include "harness/signals.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/safetensors.hpp"
#include "reference/oracle.hpp"

namespace shardproof::harness {
namespace {

using safetensors::entry;
using safetensors::File;
using Metadata = std::map<std::string, std::string>;

/// What every file says of the run it belongs to.
Metadata metadata_of(const TrainingJob& job, const workload::Corpus& corpus) {
  const double scale = job.track == Track::exact ? job.workload.loss_scale : 1.0;
  return {{"schema", std::string(export_schema)},
          {"track", std::string(name_of(job.track))},
          {"loss_scale", fmt::format("{}", scale)},
          {"global_offset", "0"},
          {"workload_hash", workload::hash(job.workload, corpus)},
          {"workload", workload::print(job.workload)}};
}

std::string key_of(const Observable& o) {
  const std::string kind(name_of(o.kind));
  return o.name == kind ? kind : kind + "/" + o.name;
}

void add_observable(const Observable& o, double loss_scale, File& file) {
  if (const auto* counts = std::get_if<std::vector<std::int64_t>>(&o.values)) {
    file.entries.push_back(entry(key_of(o), o.dims, *counts));
    return;
  }
  auto values = as_doubles(o.values);
  if (o.kind == Observed::gradient) {
    for (double& v : values) v /= loss_scale;
  }
  file.entries.push_back(entry(key_of(o), o.dims, values));
  if (const auto* fixed = std::get_if<std::vector<Fixed>>(&o.values)) {
    std::vector<std::int64_t> raw(fixed->size());
    std::ranges::transform(*fixed, raw.begin(), &Fixed::raw);
    file.entries.push_back(entry("raw/" + key_of(o), o.dims, raw));
  }
}

std::vector<std::uint8_t> mask(const workload::Workload& w, workload::DropoutSite site, std::int64_t layer,
                               std::int64_t step, std::int64_t elements) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(elements));
  workload::dropout_stream(w, site, layer, step).words(0, words);
  const auto threshold = workload::dropout_threshold(w.dropout);
  std::vector<std::uint8_t> kept(words.size());
  std::ranges::transform(words, kept.begin(), [=](std::uint32_t word) { return std::uint8_t{word >= threshold}; });
  return kept;
}

void add_masks(const workload::Workload& w, const workload::Batch& batch, File& file) {
  for (const auto& [name, site, layer, dims] : mask_sites(w, batch.size()))
    file.entries.push_back(entry(name, dims, mask(w, site, layer, batch.step, elements_of(dims))));
}

File step_file(const TrainingJob& job, const Metadata& metadata, const workload::Batch& batch,
               const std::vector<Observable>& shown) {
  File file{.metadata = metadata, .entries = {}};
  file.metadata["step"] = std::to_string(batch.step);
  file.metadata["digest"] = digest_of(shown);
  const Dims dims{batch.size(), batch.sequence};
  file.entries.push_back(entry("tokens", dims, batch.tokens));
  file.entries.push_back(entry("labels", dims, batch.labels));
  file.entries.push_back(entry("documents", dims, batch.documents));
  std::vector<std::uint8_t> labelled(batch.labels.size());
  std::ranges::transform(batch.labels, labelled.begin(), [](std::int32_t label) { return std::uint8_t{label >= 0}; });
  file.entries.push_back(entry("label_mask", dims, labelled));
  add_masks(job.workload, batch, file);
  const double loss_scale = job.track == Track::exact ? job.workload.loss_scale : 1.0;
  for (const Observable& o : shown) add_observable(o, loss_scale, file);
  return file;
}

/// Fewer for large models: their tensors have elements enough to show float's error in two draws, and every draw is a
/// training of its own.
std::int64_t yardstick_draws(const workload::Workload& workload) {
  std::int64_t elements = 0;
  for (const auto& p : workload::parameters(workload)) elements += p.elements();
  return std::clamp<std::int64_t>((1 << 22) / std::max<std::int64_t>(elements, 1), 2, most_draws);
}

/// The oracle in double beside several in float, each trained on its own; adds the greatest difference of each tensor
/// of the step.
class YardstickRuns {
 public:
  YardstickRuns(const TrainingJob& job, const Metadata& metadata) : file_{.metadata = metadata, .entries = {}} {
    exact_ = reference::make_oracle(job.workload, Track::f64);
    for (std::int64_t draw = 0; draw < yardstick_draws(job.workload); ++draw) {
      auto& rough = rough_.emplace_back(reference::make_oracle(job.workload, Track::native));
      for (const auto& p : workload::parameters(job.workload)) {
        const auto values = workload::initial_values(job.workload, p);
        rough->set(Observed::parameter, p.name, moved_by_an_ulp(values, p.name, draw, 0));
      }
    }
  }
  void step(const workload::Batch& batch) {
    const auto exact = exact_->step(batch);
    std::map<ObservableKey, double> greatest;
    std::set<ObservableKey> missing;  // skipped by one of them
    for (const auto& oracle : rough_) {
      stop_if_interrupted();
      const auto observables = oracle->step(batch);
      const auto rough = index_of(observables);
      for (const Observable& e : exact) {
        const ObservableKey key{e.kind, e.name};
        const auto r = rough.find(key);
        if (r == rough.end() || size_of(r->second->values) != size_of(e.values)) {
          missing.insert(key);
          continue;
        }
        const double error = greatest_difference(as_doubles(e.values), as_doubles(r->second->values));
        double& most = greatest[key];
        if (!(error <= most)) most = error;  // a NaN stays
      }
    }
    for (const Observable& e : exact) {
      const ObservableKey key{e.kind, e.name};
      if (missing.contains(key)) continue;
      file_.entries.push_back(entry(fmt::format("f32/{}/{}", batch.step, key_of(e)), {1}, std::vector{greatest[key]}));
    }
  }
  const File& file() const { return file_; }

 private:
  std::unique_ptr<reference::Oracle> exact_;
  std::vector<std::unique_ptr<reference::Oracle>> rough_;
  File file_;
};

}  // namespace

Exported export_run(const TrainingJob& job, const workload::Corpus& corpus, const std::filesystem::path& folder,
                    bool overwrite, bool yardstick) {
  ExportFolder out(folder, overwrite);
  const Metadata metadata = metadata_of(job, corpus);
  File initial{.metadata = metadata, .entries = {}};
  for (const auto& p : workload::parameters(job.workload)) {
    initial.entries.push_back(entry("parameter/" + p.name, p.dims, workload::initial_values(job.workload, p)));
  }
  safetensors::write(out.path() / "initial.safetensors", initial);

  std::optional<YardstickRuns> measured;
  if (yardstick) measured.emplace(job, metadata);
  Digest digest;
  const auto observe = [&](const workload::Batch& batch, const engine::Observation& seen) {
    const auto& shown = seen.observables;
    digest.add(shown);
    safetensors::write(out.path() / export_step_name(batch.step), step_file(job, metadata, batch, shown));
    if (measured) measured->step(batch);
  };
  const auto trained = train(job, corpus, {.observed_steps = job.workload.steps, .observe = observe, .step = {}});
  if (measured) safetensors::write(out.path() / "yardstick.safetensors", measured->file());

  Exported result{digest.finish(), std::ssize(trained.steps), trained.steps.back().skipped};
  nlohmann::ordered_json about = {{"schema", export_schema},
                                  {"track", name_of(job.track)},
                                  {"loss_scale", job.track == Track::exact ? job.workload.loss_scale : 1.0},
                                  {"steps", result.steps},
                                  {"strategy", plan::print(job.strategy)},
                                  {"digest", result.digest},
                                  {"workload_hash", metadata.at("workload_hash")},
                                  {"workload", nlohmann::ordered_json::parse(metadata.at("workload"))}};
  write_file(out.path() / "export.json", about.dump(2) + "\n");
  out.commit();
  return result;
}

}  // namespace shardproof::harness
