// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/safetensors.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/philox.hpp"
#include "kernels/core/testing/folder.hpp"

namespace shardproof::safetensors {
namespace {

struct Safetensors : ::testing::Test {
  testing::Folder folder;
  std::filesystem::path path = folder / "f.safetensors";

  void put(std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  /// A file with this header and so many bytes of data.
  void put(const std::string& header, std::size_t data_bytes) {
    const std::uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    put(bytes + header + std::string(data_bytes, '\1'));
  }
  /// What reading it finds, without the path at each line's start; "" when nothing.
  std::string findings() {
    try {
      read(path);
    } catch (const BadInput& error) {
      std::string text = error.what();
      const auto prefix = path.string() + ": ";
      for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) text.erase(at, prefix.size());
      return text;
    }
    return "";
  }
  std::string findings(const std::string& header, std::size_t data_bytes) {
    put(header, data_bytes);
    return findings();
  }
};

TEST_F(Safetensors, RoundTrip) {
  const std::vector<double> doubles{0.1, -0.0, HUGE_VAL, 1e-310, -2.5, 7};
  const std::vector<float> floats{0.1f, -3};
  const std::vector<std::int64_t> longs{std::numeric_limits<std::int64_t>::min(), 5, -1};
  const std::vector<std::int32_t> ints{std::numeric_limits<std::int32_t>::max(), -1};
  const std::vector<std::uint8_t> bytes{0, 255, 7};
  File file;
  file.metadata = {{"track", "exact"}, {"odd \"key\"\n", "\xc3\xa9 / \\"}};
  file.entries = {entry("mask", {3}, bytes),
                  entry("weight", {2, 3}, doubles),
                  entry("f", {1, 2, 1}, floats),
                  entry("long", {3}, longs),
                  entry("int", {2}, ints),
                  entry("scalar", {}, std::vector<double>{4}),
                  entry("none", {0, 7}, std::vector<float>{})};
  write(path, file);
  const File back = read(path);
  EXPECT_EQ(back.metadata, file.metadata);
  EXPECT_EQ(back.entries.size(), file.entries.size());
  for (const auto& e : file.entries) {
    const auto* found = back.find(e.name);
    ASSERT_NE(found, nullptr) << e.name;
    EXPECT_EQ(found->dtype, e.dtype);
    EXPECT_EQ(found->dims, e.dims);
    EXPECT_EQ(found->bytes, e.bytes);
  }
  EXPECT_EQ(values<float>(*back.find("f")), floats);
  EXPECT_EQ(values<std::int64_t>(*back.find("long")), longs);
  EXPECT_EQ(values<std::int32_t>(*back.find("int")), ints);
  EXPECT_EQ(values<std::uint8_t>(*back.find("mask")), bytes);
  EXPECT_TRUE(std::signbit(values<double>(*back.find("weight"))[1]));
  EXPECT_EQ(back.find("other"), nullptr);
  EXPECT_THROW(values<float>(*back.find("weight")), BadInput);
}

TEST_F(Safetensors, TheBytesAreTheFormats) {
  write(path,
        {{{"k", "v"}}, {entry("b", {1}, std::vector<std::uint8_t>{9}), entry("a", {2}, std::vector<float>{1, 2})}});
  const std::string header = R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})";
  const auto bytes = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.substr(8 + header.size(), length - header.size()), std::string(length - header.size(), ' '));
  EXPECT_EQ(bytes.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\x40\x09", 9));
}

TEST_F(Safetensors, EmptyFilesRoundTrip) {
  write(path, {});
  EXPECT_EQ(read(path).entries.size(), 0u);
  EXPECT_EQ(findings("{}", 0), "");
}

TEST_F(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const auto e = entry("a", {2}, std::vector<double>{1, 2});
  auto wrong = e;
  wrong.dims = {3};
  auto fixed = e;
  fixed.dtype = Dtype::fixed;
  auto reserved = e;
  reserved.name = "__metadata__";
  EXPECT_THROW(write(path, {{}, {e, e}}), InternalError);
  EXPECT_THROW(write(path, {{}, {wrong}}), InternalError);
  EXPECT_THROW(write(path, {{}, {fixed}}), InternalError);
  EXPECT_THROW(write(path, {{}, {reserved}}), InternalError);
  EXPECT_THROW(write(folder / "no/such/file", {{}, {e}}), WriteError);
  EXPECT_EQ(folder.names(), std::vector<std::string>());
}

TEST_F(Safetensors, BrokenAtTheStart) {
  put("");
  EXPECT_EQ(findings(), "is 0 bytes long; a safetensors file has at least 8");
  put("1234567");
  EXPECT_EQ(findings(), "is 7 bytes long; a safetensors file has at least 8");
  put(std::string("\0\0\0\0\1\0\0\0{}", 10));
  EXPECT_EQ(findings(), "claims a header of 4294967296 bytes; at most 100000000 are allowed");
  put(std::string(100, '\xff'));
  EXPECT_EQ(findings(), "claims a header of 18446744073709551615 bytes; at most 100000000 are allowed");
  put(std::string("\3\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(findings(), "claims a header of 3 bytes, but only 2 follow");
  EXPECT_THROW(read(folder / "missing"), BadInput);
}

TEST_F(Safetensors, NotJson) {
  EXPECT_EQ(findings("", 0), "the header is not JSON, from its byte 1 on");
  EXPECT_EQ(findings("{\"a\": nonsense}", 0), "the header is not JSON, from its byte 8 on");
  EXPECT_EQ(findings("{} {}", 0), "the header is not JSON, from its byte 4 on");
  EXPECT_EQ(findings("{\"\xff\xfe\": 1}", 0), "the header is not JSON, from its byte 3 on");
  EXPECT_EQ(findings("[1, 2]", 0), "the header is no JSON object");
  EXPECT_EQ(findings("{\"a\": 1e999}", 0), "the header has a number beyond the range of numbers");
  EXPECT_EQ(findings(std::string(1000000, '['), 0), "the header is nested deeper than a safetensors header");
  EXPECT_EQ(findings("{\"a\":{\"b\":[{\"c\":[[]]}]}}", 0), "the header is nested deeper than a safetensors header");
}

TEST_F(Safetensors, Doubled) {
  EXPECT_EQ(
      findings(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      "the header has 'a' twice");
  EXPECT_EQ(
      findings(R"({"a":{"dtype":"U8","shape":[1],"shape":[2],"data_offsets":[0,1]},"__metadata__":{"k":"1","k":"2"}})",
               1),
      "the header has 'shape' twice\nthe header has 'k' twice");
}

TEST_F(Safetensors, EveryFindingAtOnce) {
  const std::string header = R"({"__metadata__":{"k":1,"l":"fine"},
    "number":7,
    "type":{"dtype":"I7","shape":[1],"data_offsets":[0,1]},
    "fields":{"dtype":"U8","extra":0},
    "shape":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]},
    "fraction":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]},
    "many":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]},
    "offsets":{"dtype":"U8","shape":[1],"data_offsets":[0]},
    "backward":{"dtype":"U8","shape":[1],"data_offsets":[3,2]},
    "outside":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},
    "misfit":{"dtype":"F64","shape":[1],"data_offsets":[0,4]},
    "huge":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}})";
  EXPECT_EQ(findings(header, 8),
            "__metadata__ 'k' is no string\n"
            "tensor 'number': is no object\n"
            "tensor 'type': has the dtype \"I7\"; known are F64, F32, BF16, F16, I64, I32 and U8\n"
            "tensor 'fields': has the unknown key 'extra'\n"
            "tensor 'fields': has no shape of at most 8 non-negative integers\n"
            "tensor 'fields': has no data_offsets [begin, end]\n"
            "tensor 'shape': has no shape of at most 8 non-negative integers\n"
            "tensor 'fraction': has no shape of at most 8 non-negative integers\n"
            "tensor 'many': has no shape of at most 8 non-negative integers\n"
            "tensor 'offsets': has no data_offsets [begin, end]\n"
            "tensor 'backward': has bytes 3..2, outside the 8 bytes of data\n"
            "tensor 'outside': has bytes 0..9, outside the 8 bytes of data\n"
            "tensor 'misfit': has bytes 0..4, which do not fit shape [1] of F64\n"
            "tensor 'huge': has bytes 0..8, which do not fit shape [4294967296,4294967296] of F64");
}

TEST_F(Safetensors, Layout) {
  const std::string a = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_EQ(findings(a + "}", 3), "tensor 'a': has bytes 0..4, outside the 3 bytes of data");  // truncated
  EXPECT_EQ(findings(a + "}", 6), "the last 2 bytes belong to no tensor");
  EXPECT_EQ(findings(a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", 5),
            "tensor 'b': overlaps the tensor before it, which ends at byte 4");
  EXPECT_EQ(findings(a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})", 8),
            "tensor 'b': follows a gap: bytes 4..5 belong to no tensor\nthe last 1 bytes belong to no tensor");
  EXPECT_EQ(findings(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
            "tensor 'a': follows a gap: bytes 0..1 belong to no tensor");
  // One inside the other, and the same bytes twice.
  EXPECT_EQ(findings(a + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 4),
            "tensor 'b': overlaps the tensor before it, which ends at byte 4");
  EXPECT_EQ(findings(a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4),
            "tensor 'b': overlaps the tensor before it, which ends at byte 4");
  // Listed in any order; an empty tensor anywhere between two.
  EXPECT_EQ(
      findings(
          R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"e":{"dtype":"F64","shape":[0],"data_offsets":[2,2]},)"
          R"("a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}   )",
          3),
      "");
}

TEST_F(Safetensors, NoDamageIsWorseThanAnError) {
  File file;
  file.entries = {entry("weight", {2, 3}, std::vector<double>(6, 0.5)),
                  entry("mask", {5}, std::vector<std::uint8_t>(5))};
  write(path, file);
  const auto whole = read_file(path);
  const RandomStream random(1, "damage");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(std::string_view(whole).substr(0, size));
    EXPECT_NE(findings(), "") << "cut to " << size << " bytes";
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    auto damaged = whole;
    for (std::uint64_t k = 0; k <= i % 3; ++k)
      damaged[random.word(8 * i + 2 * k) % 150] = static_cast<char>(random.word(8 * i + 2 * k + 1));
    put(damaged);
    findings();  // BadInput or a legal file: nothing else leaves read()
  }
}

}  // namespace
}  // namespace shardproof::safetensors
