// SPDX-License-Identifier: Apache-2.0
#include "harness/candidate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/json_fields.hpp"
#include "harness/judge_yardstick.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;
using safetensors::Entry;

template <class Bits>
std::vector<Bits> bits_of(const Entry& entry) {
  std::vector<Bits> bits(entry.bytes.size() / sizeof(Bits));
  if (!bits.empty()) std::memcpy(bits.data(), entry.bytes.data(), entry.bytes.size());
  return bits;
}

/// IEEE binary16: 5 bits of exponent, 10 of fraction.
double from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value = std::ldexp(exponent == 0 ? fraction : fraction + 1024, std::max(exponent, 1) - 25);
  if (exponent == 31) value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  return (bits & 0x8000) != 0 ? -value : value;
}

double from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

struct Tensor {
  Dims dims;
  std::vector<double> values;
};

Tensor transposed(const Tensor& matrix) {
  const std::int64_t rows = matrix.dims[0], columns = matrix.dims[1];
  Tensor out{{columns, rows}, {}};
  out.values.reserve(matrix.values.size());
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r)
      out.values.push_back(matrix.values[static_cast<std::size_t>(r * columns + c)]);
  return out;
}

/// Elements of the dims after `dim`: how many lie together.
std::int64_t inner(const Dims& dims, std::int64_t dim) { return elements_of({dims.begin() + dim + 1, dims.end()}); }

Tensor cut(const Tensor& tensor, const Cut& c) {
  Tensor out{tensor.dims, {}};
  auto& size = out.dims[static_cast<std::size_t>(c.dim)];
  const std::int64_t step = inner(tensor.dims, c.dim), whole = step * size;
  size = c.end - c.begin;
  out.values.reserve(static_cast<std::size_t>(elements_of(out.dims)));
  const auto first = tensor.values.begin();
  for (std::int64_t at = 0; at < std::ssize(tensor.values); at += whole)
    out.values.insert(out.values.end(), first + at + c.begin * step, first + at + c.end * step);
  return out;
}

/// `part` behind `whole` along the dim; both have the same other dims.
Tensor joined(const Tensor& whole, const Tensor& part, std::int64_t dim) {
  Tensor out{whole.dims, {}};
  const auto d = static_cast<std::size_t>(dim);
  const std::int64_t a = inner(whole.dims, dim) * whole.dims[d], b = inner(part.dims, dim) * part.dims[d];
  out.dims[d] += part.dims[d];
  out.values.reserve(whole.values.size() + part.values.size());
  const std::int64_t outer = elements_of({whole.dims.begin(), whole.dims.begin() + dim});
  for (std::int64_t i = 0; i < outer; ++i) {
    out.values.insert(out.values.end(), whole.values.begin() + i * a, whole.values.begin() + (i + 1) * a);
    out.values.insert(out.values.end(), part.values.begin() + i * b, part.values.begin() + (i + 1) * b);
  }
  return out;
}

bool same_but(const Dims& a, const Dims& b, std::int64_t dim) {
  Dims c = b;
  if (a.size() != b.size() || dim >= std::ssize(a)) return false;
  c[static_cast<std::size_t>(dim)] = a[static_cast<std::size_t>(dim)];
  return a == c;
}

std::string shape(const Dims& dims) { return dims.empty() ? "none" : fmt::format("{}", fmt::join(dims, "x")); }

/// Numbers of the files that the pattern names.
std::set<std::int64_t> steps_of(const fs::path& folder, const std::string& pattern) {
  std::set<std::int64_t> steps;
  const fs::path parent = (folder / pattern).parent_path();
  const std::string name = fs::path(pattern).filename().string();
  const std::string_view mark = "{step}";
  const std::string before = name.substr(0, name.find(mark)), after = name.substr(name.find(mark) + mark.size());
  std::error_code error;
  for (auto entry = fs::directory_iterator(parent, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string found = entry->path().filename().string();
    if (found.size() < before.size() + after.size() || !found.starts_with(before) || !found.ends_with(after)) continue;
    const auto step =
        parse_number<std::int64_t>(found.substr(before.size(), found.size() - before.size() - after.size()));
    if (step && *step >= 0 && file_of_step(name, *step) == found) steps.insert(*step);
  }
  return steps;
}

bool is_input(const std::string& name) {
  constexpr std::array inputs = {"tokens", "labels", "documents", "label_mask", "skipped"};
  return std::ranges::find(inputs, name) != inputs.end() || name.starts_with("dropout_mask/") ||
         name.starts_with("raw/");
}

}  // namespace

std::vector<double> decoded(const Entry& entry) {
  std::vector<double> values;
  const auto fill = [&](const auto& bits, auto decode) {
    values.resize(bits.size());
    std::ranges::transform(bits, values.begin(), decode);
  };
  switch (entry.dtype) {
    case Dtype::f64: return safetensors::values<double>(entry);
    case Dtype::f32: fill(safetensors::values<float>(entry), [](float x) { return static_cast<double>(x); }); break;
    case Dtype::f16: fill(bits_of<std::uint16_t>(entry), from_f16); break;
    case Dtype::bf16: fill(bits_of<std::uint16_t>(entry), from_bf16); break;
    default: break;
  }
  return values;
}

Candidate::Candidate(const fs::path& folder, CandidateMap map) : folder_(folder), map_(std::move(map)) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw BadInput(fmt::format("{}: there is no such folder", folder.string()));
  for (const auto& file : map_.files) steps_.push_back(steps_of(folder, file));
  for (const auto& [tensor, recipe] : map_.tensors)
    for (const Source& source : recipe.sources)
      for (const char* kind : {"gradient/", "parameter/"}) wanted_.insert(kind + source.name);
  if (std::ranges::all_of(steps_, &std::set<std::int64_t>::empty))
    throw BadInput(
        fmt::format("{}: it holds no step: {} is not there", folder.string(), file_of_step(map_.files[0], 1)));
}

std::string Candidate::wrong_steps(std::int64_t steps) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto& there = steps_[i];
    for (std::int64_t step = 1; step <= steps; ++step)
      if (!there.contains(step))
        return fmt::format("the candidate has {} of the oracle's {}: {} is missing", counted(there.size(), "step"),
                           steps, file_of_step(map_.files[i], step));
    const auto more = std::ranges::find_if(there, [&](std::int64_t step) { return step < 1 || step > steps; });
    if (more != there.end())
      return fmt::format("the candidate has {}, the oracle {}: {} is one too many", counted(there.size(), "step"),
                         steps, file_of_step(map_.files[i], *more));
  }
  return "";
}

bool Candidate::has(std::int64_t step) const {
  return std::ranges::all_of(steps_, [&](const auto& there) { return there.contains(step); });
}

void Candidate::open(std::int64_t step) {
  step_ = step;
  open_.clear();
  taken_.clear();
  std::vector<std::string> findings;
  for (const auto& file : map_.files) try {
      open_.push_back(safetensors::read(folder_ / file_of_step(file, step)));
    } catch (const BadInput& error) {
      findings.emplace_back(error.what());
    }
  throw_findings(findings);
}

const Entry* Candidate::find(const std::string& name, std::optional<std::size_t> file, Taken& taken) {
  const Entry* first = nullptr;
  std::size_t first_file = 0;
  for (std::size_t i = file.value_or(0); i < (file ? *file + 1 : open_.size()); ++i) {
    const Entry* there = open_[i].find(name);
    if (there == nullptr) continue;
    if (first == nullptr) {
      first = there, first_file = i;
    } else if (first->dtype != there->dtype || first->dims != there->dims || first->bytes != there->bytes) {
      taken.problem = fmt::format("its copies \"{}\" in {} and {} are not equal", name,
                                  file_of_step(map_.files[first_file], step_), file_of_step(map_.files[i], step_));
    }
  }
  taken_.insert(name);
  if (first != nullptr) return first;
  std::vector<std::string> names;  // those that nothing else is taken from
  for (const std::string& there : extra())
    if (!wanted_.contains(there)) names.push_back(there);
  taken.missing = true;
  taken.problem =
      fmt::format("missing: there is no \"{}\" in {}", name, file_of_step(map_.files[file.value_or(0)], step_));
  if (!file && open_.size() > 1) taken.problem += " and the other files";
  if (const std::string near = nearest(name, names); !near.empty())
    taken.problem += fmt::format(" (the nearest name is \"{}\")", near);
  return nullptr;
}

void Candidate::add(const Source& source, const std::string& name, std::int64_t dim, Dims& dims, Taken& taken) {
  const Entry* entry = find(name, source.file, taken);
  if (entry == nullptr || !taken.problem.empty()) return;
  const auto refuse = [&](const std::string& why) {
    taken.problem = fmt::format("the candidate's \"{}\" {}", name, why);
  };
  if (std::ranges::find(precisions(), entry->dtype, &Precision::dtype) == precisions().end())
    return refuse(fmt::format("is of type {}, not F64, F32, F16 or BF16", name_of(entry->dtype)));
  Tensor part{entry->dims, decoded(*entry)};
  if (source.transpose) {
    if (part.dims.size() != 2) return refuse(fmt::format("has dims {}: only a matrix is transposed", shape(part.dims)));
    part = transposed(part);
  }
  if (source.cut) {
    const auto& c = *source.cut;
    if (c.dim >= std::ssize(part.dims) || c.end > part.dims[static_cast<std::size_t>(c.dim)])
      return refuse(
          fmt::format("has dims {}: there is no range {} to {} of dim {}", shape(part.dims), c.begin, c.end, c.dim));
    part = cut(part, c);
  }
  if (dims.empty() && taken.values.empty()) {
    dims = part.dims;
    taken.values = std::move(part.values);
    return;
  }
  if (!same_but(dims, part.dims, dim))
    return refuse(fmt::format("has dims {}, which do not go with {} along dim {}", shape(part.dims), shape(dims), dim));
  Tensor whole = joined({dims, std::move(taken.values)}, part, dim);
  dims = whole.dims;
  taken.values = std::move(whole.values);
}

Taken Candidate::take(Observed kind, const std::string& parameter, const std::string& state, const Dims& dims) {
  Taken taken;
  Dims found;
  const Recipe& recipe = map_.tensors.at(parameter);
  for (const Source& source : recipe.sources) {
    add(source, fmt::format("{}/{}{}", name_of(kind), source.name, state), recipe.dim, found, taken);
    if (!taken.problem.empty()) return taken;
  }
  if (found != dims) {
    taken.problem = fmt::format("has dims {}, not {}", shape(found), shape(dims));
    if (found == Dims(std::reverse_iterator(dims.end()), std::reverse_iterator(dims.begin())))
      taken.problem += " (a map can transpose it)";
  }
  return taken;
}

Taken Candidate::take_scalar(Observed kind) {
  Taken taken;
  Dims dims;
  add({std::string(name_of(kind))}, std::string(name_of(kind)), 0, dims, taken);
  if (taken.problem.empty() && taken.values.size() > 1) taken.problem = fmt::format("has dims {}, not 1", shape(dims));
  return taken;
}

std::vector<std::string> Candidate::wrong_metadata(const std::string& workload_hash) const {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const auto& metadata = open_[i].metadata;
    const std::string file = file_of_step(map_.files[i], step_);
    const auto hash = metadata.find("workload_hash"), step = metadata.find("step");
    if (hash == metadata.end())
      sentences.push_back(fmt::format("{}: its metadata lack \"workload_hash\", which is {}", file, workload_hash));
    else if (hash->second != workload_hash)
      sentences.push_back(fmt::format("{}: it is of another workload: its workload_hash is {}, the oracle's {}", file,
                                      hash->second, workload_hash));
    if (step != metadata.end() && parse_number<std::int64_t>(step->second) != step_)
      sentences.push_back(fmt::format("{}: its metadata say step {}", file, step->second));
  }
  return sentences;
}

std::string Candidate::metadata(const std::string& key) const {
  for (const auto& file : open_)
    if (const auto found = file.metadata.find(key); found != file.metadata.end()) return found->second;
  return "";
}

Dtype Candidate::coarsest() const {
  const Precision* coarsest = &precision_of(Dtype::f64);
  for (const auto& [tensor, recipe] : map_.tensors)
    for (const Source& source : recipe.sources)
      for (const auto& file : open_)
        for (const char* kind : {"gradient/", "parameter/"}) {
          const Entry* entry = file.find(kind + source.name);
          if (entry == nullptr) continue;
          const auto found = std::ranges::find(precisions(), entry->dtype, &Precision::dtype);
          if (found != precisions().end() && found->unit > coarsest->unit) coarsest = &*found;
        }
  return coarsest->dtype;
}

std::vector<std::string> Candidate::extra() const {
  std::set<std::string> names;
  for (const auto& file : open_)
    for (const Entry& entry : file.entries)
      if (!taken_.contains(entry.name) && !is_input(entry.name)) names.insert(entry.name);
  return {names.begin(), names.end()};
}

}  // namespace shardproof::harness
