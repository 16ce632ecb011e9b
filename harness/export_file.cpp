// SPDX-License-Identifier: Apache-2.0
#include "harness/export_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/judge_expectation.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using workload::Workload;

struct Form {
  Dtype dtype;
  Dims dims;
  bool required = true;
};
using Forms = std::map<std::string, Form>;

void add_tensor(Forms& forms, Track track, const std::string& name, const Dims& dims) {
  forms[name] = {Dtype::f64, dims};
  if (track == Track::exact && !name.starts_with("state/")) forms["raw/" + name] = {Dtype::i64, dims};
}

Forms initial_forms(const Workload& workload) {
  Forms forms;
  for (const auto& p : workload::parameters(workload)) forms["parameter/" + p.name] = {Dtype::f64, p.dims};
  return forms;
}

/// `skipped`: as in ARITHMETIC.md, section 12.
Forms step_forms(const Workload& w, Track track, std::int64_t samples, std::int64_t skipped) {
  Forms forms;
  const Dims rows{samples, w.sequence};
  for (const char* name : {"tokens", "labels", "documents"}) forms[name] = {Dtype::i32, rows};
  forms["label_mask"] = {Dtype::u8, rows};
  for (const MaskSite& site : mask_sites(w, samples)) forms[site.name] = {Dtype::u8, site.dims};
  forms["skipped"] = {Dtype::i64, {1}};
  if (skipped != 1) {
    forms["loss"] = {Dtype::f64, {skipped == 2 ? 0 : 1}};
    forms["norm"] = forms["clip"] = {Dtype::f64, {1}};
  }
  for (const auto& p : workload::parameters(w)) {
    add_tensor(forms, track, "parameter/" + p.name, p.dims);
    if (p.trainable && skipped != 1) add_tensor(forms, track, "gradient/" + p.name, p.dims);
    for (const auto& state : state_names(w, p)) add_tensor(forms, track, "state/" + state, p.dims);
  }
  return forms;
}

/// "f32/STEP/KIND/NAME"; none of them is required, for float and double may skip different steps.
Forms yardstick_forms(const Workload& workload, const std::vector<safetensors::Entry>& entries) {
  const Forms of_step = step_forms(workload, Track::f64, 0, 0);
  Forms forms;
  for (const auto& entry : entries) {
    const std::string_view name = entry.name;
    const auto slash = std::min(name.find('/', 4), name.size());
    const auto step = parse_number<std::int64_t>(name.substr(std::min<std::size_t>(4, name.size()), slash - 4));
    if (!name.starts_with("f32/") || slash == name.size() || !step || *step < 1 || *step > workload.steps) continue;
    const auto form = of_step.find(std::string(name.substr(slash + 1)));
    if (form != of_step.end() && (form->second.dtype == Dtype::f64 || form->first == "skipped"))
      forms[entry.name] = {Dtype::f64, {1}, false};
  }
  return forms;
}

class Examiner {
 public:
  Examiner(const safetensors::File& file, const ExportOf& of) : file_(file), of_(of) {
    for (const char* key : {"schema", "track", "loss_scale", "workload_hash", "workload"})
      if (!file.metadata.contains(key)) report(fmt::format("the metadata lack \"{}\"", key));
    if (!findings.empty()) return;
    if (const std::string& found = text("schema"); found != export_schema)
      report(fmt::format("its schema is \"{}\": this program reads \"{}\"", found, export_schema));
    if (!of.track.empty() && text("track") != of.track)
      report(fmt::format("it is of another run: its track is \"{}\", not {}", text("track"), of.track));
    if (!of.workload_hash.empty() && text("workload_hash") != of.workload_hash)
      report(fmt::format("it belongs to another workload: its hash is {}, not {}", text("workload_hash"),
                         of.workload_hash));
    try {
      track_ = track_named(text("track"));
      workload_ = workload::parse(text("workload"), "its workload");
    } catch (const BadInput& error) {
      report(error.what());
      return;
    }
    metadata();
    tensors();
  }

  std::vector<std::string> findings;

 private:
  void report(std::string finding) { findings.push_back(std::move(finding)); }
  const std::string& text(const char* key) const { return file_.metadata.at(key); }

  void metadata() {
    const double scale = track_ == Track::exact ? workload_.loss_scale : 1;
    if (parse_number<double>(text("loss_scale")) != scale)
      report(fmt::format("its loss_scale is \"{}\", its track and workload say {}", text("loss_scale"), scale));
    if (workload_.corpus != "markov") return;  // the file may be gone
    if (const std::string hash = workload::hash(workload_); hash != text("workload_hash"))
      report(fmt::format("its workload_hash is \"{}\", its workload's is {}", text("workload_hash"), hash));
  }

  ExportPart part() const {
    if (file_.metadata.contains("step")) return ExportPart::step;
    const auto measured = [](const safetensors::Entry& entry) { return entry.name.starts_with("f32/"); };
    return std::ranges::any_of(file_.entries, measured) ? ExportPart::yardstick : ExportPart::initial;
  }

  void tensors() {
    if (file_.entries.empty()) return report("it holds no tensor");
    if (of_.part && part() != *of_.part) return report("it is another file of an export");
    if (part() == ExportPart::initial) return hold(initial_forms(workload_));
    if (part() == ExportPart::yardstick) return hold(yardstick_forms(workload_, file_.entries));
    const auto step = parse_number<std::int64_t>(text("step"));
    if (!step || *step < 1 || (of_.step && *step != *of_.step)) report(fmt::format("it is of step {}", text("step")));
    const auto* tokens = file_.find("tokens");
    const auto* skipped = file_.find("skipped");
    std::int64_t why = 0;
    if (skipped != nullptr && skipped->dtype == Dtype::i64 && skipped->dims == Dims{1}) {
      why = safetensors::values<std::int64_t>(*skipped)[0];
      if (why < 0 || why > 2) report(fmt::format("\"skipped\" is {}; it must be 0, 1 or 2", why));
    }
    const std::int64_t samples = tokens != nullptr && tokens->dims.size() == 2 ? tokens->dims[0] : workload_.batch;
    if (samples > workload_.batch) report(fmt::format("{} samples are more than a batch", samples));
    hold(step_forms(workload_, track_, samples, why));
    if (!findings.empty()) return;
    hold_symbols("tokens", 0);
    hold_symbols("labels", -1);
  }

  void hold(const Forms& forms) {
    for (const safetensors::Entry& entry : file_.entries) {
      const auto form = forms.find(entry.name);
      if (form == forms.end())
        report(fmt::format("tensor \"{}\" is none that its workload has in such a file", entry.name));
      else if (entry.dtype != form->second.dtype)
        report(fmt::format("tensor \"{}\" is of type {}, not {}", entry.name, name_of(entry.dtype),
                           name_of(form->second.dtype)));
      else if (entry.dims != form->second.dims)
        report(fmt::format("tensor \"{}\" has dims {}, its workload says {}", entry.name, fmt::join(entry.dims, "x"),
                           fmt::join(form->second.dims, "x")));
    }
    for (const auto& [name, form] : forms)
      if (form.required && file_.find(name) == nullptr) report(fmt::format("tensor \"{}\" is missing", name));
  }

  void hold_symbols(const char* name, std::int32_t low) {
    const auto values = safetensors::values<std::int32_t>(*file_.find(name));
    const auto bad = std::ranges::find_if(values, [&](std::int32_t x) { return x < low || x >= workload_.vocab; });
    if (bad == values.end()) return;
    report(fmt::format("\"{}\" holds {} at element {}; the vocabulary is {}", name, *bad, bad - values.begin(),
                       workload_.vocab));
  }

  const safetensors::File& file_;
  const ExportOf& of_;
  Track track_ = Track::exact;
  Workload workload_;
};

}  // namespace

std::vector<MaskSite> mask_sites(const Workload& w, std::int64_t samples) {
  std::vector<MaskSite> sites;
  if (w.dropout == 0) return sites;
  using enum workload::DropoutSite;
  const Dims rows{samples, w.sequence, w.hidden}, scores{samples, w.heads, w.sequence, w.sequence};
  sites.push_back({"dropout_mask/embedding", embedding, 0, rows});
  for (std::int64_t l = 0; l < w.layers; ++l) {
    const auto block = fmt::format("dropout_mask/blocks.{}.", l);
    sites.push_back({block + "attention_probability", attention_probability, l, scores});
    sites.push_back({block + "attention_output", attention_output, l, rows});
    sites.push_back({block + "mlp_output", mlp_output, l, rows});
  }
  return sites;
}

bool is_export(const safetensors::File& file) {
  const auto found = file.metadata.find("schema");
  return found != file.metadata.end() && found->second.starts_with("shardproof.export/");
}

std::vector<std::string> export_findings(const safetensors::File& file, const ExportOf& of) {
  return Examiner(file, of).findings;
}

}  // namespace shardproof::harness
