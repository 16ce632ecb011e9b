// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/runtime.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>
#include <utility>

#include "kernels/core/errors.hpp"
#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin {

Options parse_options(const std::string& text) {
  Options options;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::string shuffled = "shuffled=";
    const char* const end = word.data() + word.size();
    if (word == "forward") {
      options.order = {ThreadOrder::Kind::forward};
    } else if (word == "reverse") {
      options.order = {ThreadOrder::Kind::reverse};
    } else if (word == "late") {
      options.late = true;
    } else if (word.starts_with(shuffled)) {
      options.order = {ThreadOrder::Kind::shuffled};
      const auto [read, error] = std::from_chars(word.data() + shuffled.size(), end, options.order.seed);
      if (error != std::errc() || read != end) throw BadInput("CUDA_STANDIN: '" + word + "': the seed is a number");
    } else {
      throw BadInput("CUDA_STANDIN: '" + word + "' is none of: forward, reverse, shuffled=SEED, late");
    }
  }
  return options;
}

Runtime::Runtime() {
  if (const char* const text = std::getenv("CUDA_STANDIN")) options_ = parse_options(text);
}

Runtime& Runtime::get() {
  static Runtime runtime;
  return runtime;
}

CUstream_st* Runtime::make_stream() {
  auto stream = std::make_unique<CUstream_st>(options_.late);
  const sanitizer::UnseenLock lock(mutex_);
  streams_.push_back(stream.get());
  return stream.release();
}

bool Runtime::end_stream(CUstream_st* stream) {
  {
    const sanitizer::UnseenLock lock(mutex_);
    if (std::erase(streams_, stream) == 0) return false;
  }
  delete stream;
  return true;
}

bool Runtime::has(CUstream_st* stream) const {
  const sanitizer::UnseenLock lock(mutex_);
  return std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
}

void Runtime::demand(CUstream_st* stream, std::uint64_t work) {
  const sanitizer::UnseenLock lock(mutex_);
  if (std::find(streams_.begin(), streams_.end(), stream) != streams_.end()) stream->demand(work);
}

void Runtime::drain_streams() {
  std::vector<CUstream_st*> streams;
  {
    const sanitizer::UnseenLock lock(mutex_);
    streams = streams_;
  }
  for (auto* const stream : streams) stream->drain();
}

void Runtime::fail(const std::string& what, bool address) {
  const sanitizer::UnseenLock lock(mutex_);
  if (failed_) return;
  failure_ = what;
  by_address_ = address;
  failed_ = true;
}

bool Runtime::failed() const {
  const sanitizer::UnseenLock lock(mutex_);
  return failed_;
}

void Runtime::forget_failure() {
  const sanitizer::UnseenLock lock(mutex_);
  failed_ = false;
}

std::uint64_t Runtime::push(CUstream_st& stream, std::function<void()> work) {
  return stream.push([this, work = std::move(work)] {
    if (failed()) return;
    try {
      work();
      if (const auto overrun = memory_.overrun(); !overrun.empty()) fail(overrun, true);
    } catch (const std::exception& error) {
      fail(error.what(), false);
    }
  });
}

}  // namespace shardproof::cuda_standin
