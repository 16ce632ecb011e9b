// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::safetensors {

namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::uint64_t header_limit = 100'000'000;  // as in the format's own library
constexpr std::string_view metadata_key = "__metadata__";

struct Type {
  std::string_view name;
  Dtype dtype;
};
constexpr std::array types{Type{"F64", Dtype::f64}, Type{"F32", Dtype::f32}, Type{"BF16", Dtype::bf16},
                           Type{"F16", Dtype::f16}, Type{"I64", Dtype::i64}, Type{"I32", Dtype::i32},
                           Type{"U8", Dtype::u8}};

std::string_view type_name(const Entry& e) {
  const auto* type = std::ranges::find(types, e.dtype, &Type::dtype);
  if (type == types.end()) {
    throw InternalError("safetensors: '" + e.name + "' is " + std::string(shardproof::name_of(e.dtype)) +
                        ", which the format lacks");
  }
  return type->name;
}

/// What a header says of one tensor.
struct Piece {
  Entry entry;
  std::uint64_t begin = 0, end = 0;
};

/// Collects every finding about one file.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), text_(read_file(path)) {}
  File read();

 private:
  void find(const std::string& what) {
    if (!findings_.empty()) findings_ += '\n';
    findings_.append(path_.string()).append(": ").append(what);
  }
  void find(const std::string& tensor, const std::string& what) { find("tensor '" + tensor + "': " + what); }
  void stop_if_any() const {
    if (!findings_.empty()) throw BadInput(findings_);
  }
  std::string_view header();
  Json parse(std::string_view header);
  void take_metadata(const Json& value);
  std::optional<Piece> piece(const std::string& name, const Json& value);
  void check_layout();

  std::filesystem::path path_;
  std::string text_;
  std::string_view data_;
  std::string findings_;
  File file_;
  std::vector<Piece> pieces_;
};

std::string_view Reader::header() {
  std::uint64_t length = 0;
  if (text_.size() < sizeof length) {
    find("is " + std::to_string(text_.size()) + " bytes long; a safetensors file has at least 8");
    stop_if_any();
  }
  std::memcpy(&length, text_.data(), sizeof length);
  const std::string_view rest = std::string_view(text_).substr(sizeof length);
  if (length > header_limit) {
    find("claims a header of " + std::to_string(length) + " bytes; at most " + std::to_string(header_limit) +
         " are allowed");
  } else if (length > rest.size()) {
    find("claims a header of " + std::to_string(length) + " bytes, but only " + std::to_string(rest.size()) +
         " follow");
  }
  stop_if_any();
  data_ = rest.substr(length);
  return rest.substr(0, length);
}

Json Reader::parse(std::string_view header) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    const auto open = event == Json::parse_event_t::object_start;
    if ((open || event == Json::parse_event_t::array_start) && depth > 2) {
      find("the header is nested deeper than a safetensors header");
      stop_if_any();
    }
    if (open) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      find("the header has '" + value.get<std::string>() + "' twice");
    }
    return true;
  };
  try {
    auto json = Json::parse(header, watch);
    if (!json.is_object()) find("the header is no JSON object");
    stop_if_any();
    return json;
  } catch (const Json::parse_error& error) {
    find("the header is not JSON, from its byte " + std::to_string(error.byte) + " on");
    throw BadInput(findings_);
  } catch (const Json::out_of_range&) {
    find("the header has a number beyond the range of numbers");
    throw BadInput(findings_);
  }
}

void Reader::take_metadata(const Json& value) {
  if (!value.is_object()) return find("__metadata__ is no object");
  for (const auto& [key, text] : value.items()) {
    if (text.is_string())
      file_.metadata[key] = text.get<std::string>();
    else
      find("__metadata__ '" + key + "' is no string");
  }
}

bool is_list_of_counts(const Json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const Json& v) { return v.is_number_unsigned(); });
}

std::optional<Piece> Reader::piece(const std::string& name, const Json& value) {
  if (!value.is_object()) return find(name, "is no object"), std::nullopt;
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") find(name, "has the unknown key '" + key + "'");
  }
  const auto dtype = value.value("dtype", Json());
  const auto shape = value.value("shape", Json());
  const auto offsets = value.value("data_offsets", Json());
  const auto* type = std::ranges::find_if(types, [&](const Type& t) { return dtype == t.name; });
  const bool typed = type != types.end(), shaped = is_list_of_counts(shape) && shape.size() <= Dims::most;
  const bool placed = is_list_of_counts(offsets) && offsets.size() == 2;
  if (!typed) find(name, "has the dtype " + dtype.dump() + "; known are F64, F32, BF16, F16, I64, I32 and U8");
  if (!shaped) find(name, "has no shape of at most " + std::to_string(Dims::most) + " non-negative integers");
  if (!placed) find(name, "has no data_offsets [begin, end]");
  if (!typed || !shaped || !placed) return std::nullopt;

  Piece p;
  p.begin = offsets[0].get<std::uint64_t>();
  p.end = offsets[1].get<std::uint64_t>();
  p.entry.name = name;
  p.entry.dtype = type->dtype;
  const auto range = std::to_string(p.begin) + ".." + std::to_string(p.end);
  uint128 bytes = size_of(type->dtype);
  for (const auto& dim : shape) {
    const auto d = dim.get<std::uint64_t>();
    p.entry.dims.push_back(static_cast<std::int64_t>(d));
    bytes = bytes > data_.size() || d > data_.size() ? (d == 0 ? 0 : uint128{data_.size()} + 1) : bytes * d;
  }
  if (p.begin > p.end || p.end > data_.size()) {
    return find(name, "has bytes " + range + ", outside the " + std::to_string(data_.size()) + " bytes of data"),
           std::nullopt;
  }
  if (bytes != p.end - p.begin) {
    find(name, "has bytes " + range + ", which do not fit shape " + shape.dump() + " of " + std::string(type->name));
  }
  return p;
}

void Reader::check_layout() {
  std::ranges::stable_sort(pieces_, {}, [](const Piece& p) { return std::pair(p.begin, p.end); });
  std::uint64_t at = 0;
  for (const auto& p : pieces_) {
    if (p.begin < at) find(p.entry.name, "overlaps the tensor before it, which ends at byte " + std::to_string(at));
    if (p.begin > at)
      find(p.entry.name,
           "follows a gap: bytes " + std::to_string(at) + ".." + std::to_string(p.begin) + " belong to no tensor");
    at = std::max(at, p.end);
  }
  if (at < data_.size()) {
    find("the last " + std::to_string(data_.size() - at) + " bytes belong to no tensor");
  }
}

File Reader::read() {
  const auto json = parse(header());
  for (const auto& [name, value] : json.items()) {
    if (name == metadata_key)
      take_metadata(value);
    else if (auto p = piece(name, value))
      pieces_.push_back(std::move(*p));
  }
  stop_if_any();  // the layout of what was understood says little about the rest
  check_layout();
  stop_if_any();
  for (auto& p : pieces_) {
    const auto bytes = std::as_bytes(std::span(data_)).subspan(p.begin, p.end - p.begin);
    p.entry.bytes.assign(bytes.begin(), bytes.end());
    file_.entries.push_back(std::move(p.entry));
  }
  return std::move(file_);
}

}  // namespace

const Entry* File::find(const std::string& name) const {
  const auto at = std::ranges::find(entries, name, &Entry::name);
  return at == entries.end() ? nullptr : &*at;
}

void write(const std::filesystem::path& path, const File& file) {
  // Widest elements first, so that all are aligned in a mapped file.
  std::vector<const Entry*> order;
  for (const auto& e : file.entries) order.push_back(&e);
  std::ranges::stable_sort(order, std::greater(), [](const Entry* e) { return size_of(e->dtype); });

  Json header = Json::object();
  if (!file.metadata.empty()) header[metadata_key] = file.metadata;
  std::uint64_t at = 0;
  std::set<std::string_view> names{metadata_key};
  for (const auto* e : order) {
    if (!names.insert(e->name).second) throw InternalError("safetensors: two tensors are named '" + e->name + "'");
    if (static_cast<std::size_t>(elements_of(e->dims)) * size_of(e->dtype) != e->bytes.size()) {
      throw InternalError("safetensors: '" + e->name + "' has " + std::to_string(e->bytes.size()) +
                          " bytes, which do not fit its dims");
    }
    header[e->name] = {{"dtype", type_name(*e)}, {"shape", e->dims}, {"data_offsets", {at, at + e->bytes.size()}}};
    at += e->bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();

  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(text))};
  for (const auto* e : order) pieces.emplace_back(e->bytes);
  write_file(path, pieces);
}

File read(const std::filesystem::path& path) { return Reader(path).read(); }

template <class T>
Entry entry(std::string name, Dims dims, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name), dtype_of<T>(), dims, {bytes.begin(), bytes.end()}};
}

template <class T>
std::vector<T> values(const Entry& entry) {
  if (entry.dtype != dtype_of<T>()) {
    throw BadInput("tensor '" + entry.name + "' is " + std::string(name_of(entry.dtype)) + ", not " +
                   std::string(name_of(dtype_of<T>())));
  }
  std::vector<T> result(entry.bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), entry.bytes.data(), entry.bytes.size());
  return result;
}

template Entry entry(std::string, Dims, const std::vector<double>&);
template Entry entry(std::string, Dims, const std::vector<float>&);
template Entry entry(std::string, Dims, const std::vector<std::int64_t>&);
template Entry entry(std::string, Dims, const std::vector<std::int32_t>&);
template Entry entry(std::string, Dims, const std::vector<std::uint8_t>&);
template std::vector<double> values(const Entry&);
template std::vector<float> values(const Entry&);
template std::vector<std::int64_t> values(const Entry&);
template std::vector<std::int32_t> values(const Entry&);
template std::vector<std::uint8_t> values(const Entry&);

}  // namespace shardproof::safetensors
