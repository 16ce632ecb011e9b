// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_candidate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "harness/candidate.hpp"
#include "harness/judge_expectation.hpp"
#include "harness/own_updates.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

using safetensors::File;

std::string key_of(Observed kind, const std::string& name) {
  const std::string text(name_of(kind));
  return is_tensor(kind) ? text + "/" + name : text;
}

/// One step of the export.
struct OracleStep {
  File file;
  workload::Batch batch;  // its sizes only
  std::vector<Observable> shown;
  double skipped = 0;

  OracleStep(const std::filesystem::path& folder, const ExportAbout& about, std::int64_t step)
      : file(read_export_file(folder / export_step_name(step),
                              {about.workload_hash, std::string(name_of(about.track)), ExportPart::step, step})) {
    skipped = static_cast<double>(safetensors::values<std::int64_t>(*file.find("skipped"))[0]);
    batch.samples.resize(static_cast<std::size_t>(file.find("tokens")->dims[0]));
    batch.label_count = std::ranges::count_if(safetensors::values<std::int32_t>(*file.find("labels")),
                                              [](std::int32_t label) { return label >= 0; });
    if (skipped == 1) return;
    add(step, Observed::loss, "loss");
    const auto parameters = workload::parameters(about.workload);
    for (auto p = parameters.rbegin(); p != parameters.rend(); ++p)
      if (p->trainable) add(step, Observed::gradient, p->name);
    add(step, Observed::norm, "norm");
    add(step, Observed::clip, "clip");
  }

 private:
  void add(std::int64_t step, Observed kind, const std::string& name) {
    const auto* entry = file.find(key_of(kind, name));
    shown.push_back({step, kind, name, entry->dims, safetensors::values<double>(*entry)});
  }
};

/// Judges step after step.
class CandidateJudge {
 public:
  CandidateJudge(const ExportAbout& about, Candidate& candidate, const Precision& precision, File yardstick)
      : about_(about),
        candidate_(candidate),
        precision_(precision),
        yardstick_(std::move(yardstick)),
        parameters_(workload::parameters(about.workload)),
        updates_(about.workload, precision) {}

  void step(const OracleStep& oracle, std::int64_t step);

  std::vector<TensorResult> results;
  std::vector<std::string> wrong_metadata;
  std::set<std::string> extra;
  std::int64_t compared = 0;
  std::string mistrusted;  // why the verdict cannot be trusted
  bool saw_gradient = false;

 private:
  TensorResult& result(std::int64_t step, Observed kind, const std::string& name) {
    TensorResult& r = results.emplace_back();
    r.step = r.found.step = step, r.kind = r.found.kind = kind, r.name = r.found.name = name;
    return r;
  }

  /// Takes the tensor, or says why it cannot be judged.
  bool take(TensorResult& r, Taken taken, std::vector<double>& values) {
    values = std::move(taken.values);
    if (taken.problem.empty()) {
      const auto bad = std::ranges::find_if(values, [](double x) { return !std::isfinite(x); });
      if (bad == values.end()) return true;
      const auto count = std::ranges::count_if(values, [](double x) { return !std::isfinite(x); });
      taken.problem = fmt::format("element {} is {}; {} of {} are not finite", bad - values.begin(), *bad, count,
                                  counted(values.size(), "element"));
    }
    r.failed = true;
    r.found.problem = std::move(taken.problem);
    r.worst = std::numeric_limits<double>::infinity();
    return false;
  }

  void compare(TensorResult& r, const std::vector<double>& values, const std::vector<double>& right,
               const std::vector<double>& bounds) {
    r.elements = std::ssize(values);
    compared += r.elements;
    const Comparison c = compare_bounded(values, right, bounds);
    r.worst = c.worst;
    r.failed = c.outside > 0;
    if (!r.failed) return;
    r.found.index = c.index, r.found.candidate = c.candidate, r.found.oracle = c.oracle;
    r.found.error = c.error, r.found.bound = c.bound, r.found.outside = c.outside;
    r.ratio = constant_ratio(values, right, greatest_magnitude(bounds));
  }

  std::optional<double> stored(const Observable& o) const {
    const auto* entry = yardstick_.find(fmt::format("{}/{}/{}", precision_.yardstick, o.step, key_of(o.kind, o.name)));
    return entry == nullptr ? std::nullopt : std::optional(safetensors::values<double>(*entry)[0]);
  }

  /// Loss, gradients, norm and clip factor; false where a gradient cannot be used for the update.
  bool by_yardstick(const OracleStep& oracle, OwnUpdates::Tensors& gradients, double& clip, double& clip_error);
  void update(const OracleStep& oracle, std::int64_t step, const OwnUpdates::Tensors& gradients, double clip,
              double clip_error);
  void presence_of_parameters(std::int64_t step);

  /// What a candidate may leave out, it may not once it has shown it.
  bool left_out(const std::string& name, bool missing) {
    bool& shown = shown_[name];
    shown = shown || !missing;
    return !shown;
  }

  const ExportAbout& about_;
  Candidate& candidate_;
  const Precision& precision_;
  File yardstick_;
  std::vector<workload::Parameter> parameters_;
  OwnUpdates updates_;
  std::map<std::string, bool> shown_;
  bool can_update_ = true;
};

bool CandidateJudge::by_yardstick(const OracleStep& oracle, OwnUpdates::Tensors& gradients, double& clip,
                                  double& clip_error) {
  const Yardstick yardstick = yardstick_of(about_.workload, precision_, oracle.batch, oracle.shown);
  bool usable = true;
  double squares = 0, right_clip = 1, bound_of_clip = 0;
  std::optional<double> own_clip;
  for (const Observable& o : oracle.shown) {
    const auto right = as_doubles(o.values);
    const bool no_loss = o.kind == Observed::loss && right.empty();
    Taken taken = is_tensor(o.kind) ? candidate_.take(o.kind, o.name, "", o.dims) : candidate_.take_scalar(o.kind);
    if (no_loss && taken.missing) continue;
    const auto e = stored(o);
    const double greatest = greatest_magnitude(right);
    const auto* parameter =
        o.kind == Observed::gradient ? &*std::ranges::find(parameters_, o.name, &workload::Parameter::name) : nullptr;
    // The oracle's own zero is one of double, where terms cancel in its order.
    const bool zero = e == 0.0 && greatest <= 8 * 0x1p-53 * yardstick.model;
    const double bound = yardstick.bound(o.kind, o.name, greatest, e.value_or(0), zero, !parameter || parameter->used);
    if (o.kind == Observed::clip) right_clip = right[0], bound_of_clip = bound;
    if ((o.kind == Observed::norm || o.kind == Observed::clip) && left_out(o.name, taken.missing)) continue;
    if ((!e || !std::isfinite(bound)) && mistrusted.empty()) {
      mistrusted =
          fmt::format("step {}: the oracle stores no finite yardstick for its {}", o.step, described({o.kind, o.name}));
    }
    TensorResult& r = result(o.step, o.kind, o.name);
    std::vector<double> values;
    if (!take(r, std::move(taken), values)) {
      usable = usable && o.kind != Observed::gradient;
      continue;
    }
    if (values.size() != right.size()) {
      r.failed = true;
      r.found.problem = no_loss ? "the step has no label, and so no loss: leave it out" : "has no element";
      r.worst = std::numeric_limits<double>::infinity();
      continue;
    }
    compare(r, values, right, {bound});
    if (o.kind == Observed::clip) own_clip = values[0];
    if (o.kind != Observed::gradient) continue;
    saw_gradient = saw_gradient || greatest > 0;
    for (const double g : values) squares += g * g;
    gradients[o.name] = std::move(values);
  }
  const double norm = std::sqrt(squares), most = about_.workload.clip;
  clip = own_clip.value_or(most > 0 ? std::min(1.0, most / (norm + 1e-6)) : 1);
  clip_error = own_clip || most <= 0 ? 0 : bound_of_clip / right_clip;
  return usable;
}

void CandidateJudge::update(const OracleStep& oracle, std::int64_t step, const OwnUpdates::Tensors& gradients,
                            double clip, double clip_error) {
  if (oracle.skipped != 0)
    updates_.keep(step);
  else
    updates_.update(step, gradients, clip, clip_error);
  const auto parameter_of = [](const Observable& o) {
    return o.kind == Observed::state ? o.name.substr(0, o.name.rfind('.')) : o.name;
  };
  const auto taken_of = [&](const Observable& o) {
    const std::string parameter = parameter_of(o);
    return candidate_.take(o.kind, parameter, o.name.substr(parameter.size()), o.dims);
  };
  for (const Observable& o : updates_.expected())
    if (o.kind == Observed::state) left_out("state", taken_of(o).missing);
  for (const Observable& o : updates_.expected()) {
    const bool is_state = o.kind == Observed::state;
    Taken taken = taken_of(o);
    if (is_state && left_out("state", taken.missing)) continue;
    TensorResult& r = result(step, o.kind, o.name);
    std::vector<double> values;
    if (!take(r, std::move(taken), values)) {
      can_update_ = can_update_ && is_state;
      continue;
    }
    compare(r, values, as_doubles(o.values), updates_.bounds({o.kind, o.name}));
    if (!is_state) updates_.advance(o.name, std::move(values));
  }
}

/// Where a gradient was missing there is no update to compare with.
void CandidateJudge::presence_of_parameters(std::int64_t step) {
  for (const auto& p : parameters_) {
    std::vector<double> values;
    TensorResult& r = result(step, Observed::parameter, p.name);
    if (take(r, candidate_.take(Observed::parameter, p.name, "", p.dims), values)) results.pop_back();
  }
}

void CandidateJudge::step(const OracleStep& oracle, std::int64_t step) {
  stop_if_interrupted();
  candidate_.open(step);
  for (auto& sentence : candidate_.wrong_metadata(about_.workload_hash)) wrong_metadata.push_back(std::move(sentence));
  OwnUpdates::Tensors gradients;
  double clip = 1, clip_error = 0;
  if (!by_yardstick(oracle, gradients, clip, clip_error)) can_update_ = false;
  if (can_update_)
    update(oracle, step, gradients, clip, clip_error);
  else
    presence_of_parameters(step);
  for (auto& name : candidate_.extra()) extra.insert(std::move(name));
}

/// The first result that failed, with what the others of its kind and step have in common.
std::optional<Divergence> first_wrong(const std::vector<TensorResult>& results, const plan::Strategy& strategy) {
  const auto first = std::ranges::find_if(results, &TensorResult::failed);
  if (first == results.end()) return std::nullopt;
  Divergence d = first->found;
  std::vector<double> ratios;
  for (const TensorResult& r : results) {
    if (r.step != first->step || r.kind != first->kind) continue;
    ++d.of;
    d.tensors += r.failed;
    if (r.ratio) ratios.push_back(*r.ratio);
  }
  if (const auto common = common_ratio(std::move(ratios))) {
    d.ratio = common->ratio;
    d.ratio_tensors = common->tensors;
    d.ratio_means = meaning_of(common->ratio, strategy);
  }
  return d;
}

File read_yardstick(const std::filesystem::path& folder, const ExportAbout& about, const Precision& precision) {
  const auto path = folder / "yardstick.safetensors";
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw BadInput(fmt::format("{}: there is no such file: export the oracle without --no-yardstick", path.string()));
  File file = read_export_file(path, {about.workload_hash, std::string(name_of(about.track)), ExportPart::yardstick});
  const std::string prefix = std::string(precision.yardstick) + "/";
  if (std::ranges::none_of(file.entries, [&](const auto& entry) { return entry.name.starts_with(prefix); }))
    throw NotSupported(fmt::format(
        "precision {}: {} stores no yardstick for it. `shardproof export` stores that of f32, by which f32 and f64 are "
        "judged; --precision f32 holds the candidate to f32's bounds",
        name_of(precision.dtype), path.string()));
  return file;
}

}  // namespace

std::string meaning_of(double ratio, const plan::Strategy& s) {
  using Sizes = std::vector<std::pair<const char*, std::int64_t>>;
  const Sizes sizes = {{"dp", s.dp}, {"pp", s.pp}, {"tp", s.tp}, {"microbatches", s.microbatches}};
  const Sizes products = {{"dp x tp", s.dp * s.tp},
                          {"dp x pp", s.dp * s.pp},
                          {"pp x tp", s.pp * s.tp},
                          {"dp x microbatches", s.dp * s.microbatches},
                          {"ranks", s.ranks()}};
  const auto equal = [](const Sizes& among, double size) {
    std::vector<std::string> found;
    for (const auto& [name, value] : among)
      if (value > 1 && std::fabs(size - static_cast<double>(value)) <= 1e-4 * static_cast<double>(value))
        found.push_back(fmt::format("{} is {}", name, value));
    return workload::joined(found, ", ");
  };
  const bool inverse = std::fabs(ratio) < 1;
  const double size = inverse ? 1 / ratio : ratio;
  std::string found = equal(sizes, size);
  if (found.empty()) found = equal(products, size);  // a product says no more than the factor that equals it
  if (found.empty()) return "";
  const bool two = std::fabs(size - 2) < 1e-3;
  return (inverse ? two ? "halved, " : "divided, " : two ? "doubled, " : "multiplied, ") + found;
}

CandidateJudgement judge_candidate(const std::filesystem::path& oracle, const ExportAbout& about,
                                   const std::filesystem::path& folder, const CandidateMap& map,
                                   const CandidateOptions& options) {
  Candidate candidate(folder, map);
  CandidateJudgement judgement;
  const std::string wrong_steps = candidate.wrong_steps(about.steps);
  // A step that all files have; where there is none, nothing is compared.
  std::int64_t first = 1;
  while (first <= about.steps && !candidate.has(first)) ++first;
  if (first <= about.steps) candidate.open(first);
  judgement.precision = options.precision.value_or(candidate.coarsest());
  judgement.strategy = options.strategy.value_or(plan::Strategy{});
  if (const std::string text = candidate.metadata("strategy"); !options.strategy && !text.empty()) try {
      judgement.strategy = plan::parse_strategy(text);
    } catch (const Error& error) {
      throw BadInput(fmt::format("{}: its metadata's strategy: {}", folder.string(), error.what()));
    }

  const Precision& precision = precision_of(judgement.precision);
  CandidateJudge judge(about, candidate, precision, read_yardstick(oracle, about, precision));
  for (std::int64_t step = 1; step <= about.steps; ++step) {
    const OracleStep right(oracle, about, step);
    if (!candidate.has(step)) break;
    judge.step(right, step);
  }
  judgement.compared = judge.compared;
  judgement.results = std::move(judge.results);
  judgement.extra.assign(judge.extra.begin(), judge.extra.end());
  judgement.divergence = first_wrong(judgement.results, judgement.strategy);
  const auto decide = [&](Verdict verdict, std::string reason) {
    judgement.verdict = verdict;
    judgement.reason = std::move(reason);
  };
  if (!judge.wrong_metadata.empty())
    decide(Verdict::fail, judge.wrong_metadata[0]);
  else if (judgement.divergence)
    decide(Verdict::fail, print(*judgement.divergence));
  else if (!wrong_steps.empty())
    decide(Verdict::fail, wrong_steps);
  else if (!judge.mistrusted.empty())
    decide(Verdict::mistrusted, judge.mistrusted);
  else if (!judge.saw_gradient)
    decide(Verdict::mistrusted, "no step showed gradient: this input cannot reveal a fault");
  else
    decide(Verdict::pass, "");
  return judgement;
}

}  // namespace shardproof::harness
