// SPDX-License-Identifier: Apache-2.0
// Owners of the CUDA runtime's objects. What fails throws DeviceError with the call's name and the runtime's own word
// for it; a kernel's failure may be found by any later call. Nothing here is ordered by chance: streams are ordered
// with one another by events, with the host by synchronize().
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

struct CUstream_st;
struct CUevent_st;

namespace shardproof::cuda {

class Event;

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Later work of this stream starts after the event's last record().
  void wait(const Event& event);
  /// Blocks the host until all work has run.
  void synchronize();
  CUstream_st* handle() const { return handle_; }

 private:
  CUstream_st* handle_ = nullptr;
};

/// A point in a stream's work.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream& stream);

 private:
  friend class Stream;
  CUevent_st* handle_ = nullptr;
};

/// Bytes of device memory, contents unspecified. Freed once all work on the device has run.
class Memory {
 public:
  explicit Memory(std::int64_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  /// Sizes must agree (InternalError). The host's memory stays as it is until the stream has been synchronized.
  void upload(Stream& stream, const void* from, std::int64_t bytes);
  void download(Stream& stream, void* to, std::int64_t bytes) const;
  /// All bytes zero.
  void zero(Stream& stream);

 private:
  void* data_ = nullptr;
  std::int64_t bytes_;
};

/// n elements of device memory.
template <class T>
class Buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  explicit Buffer(std::int64_t n) : memory_(n * std::int64_t{sizeof(T)}) {}

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::int64_t size() const { return memory_.bytes() / std::int64_t{sizeof(T)}; }
  void upload(Stream& stream, std::span<const T> from) {
    memory_.upload(stream, from.data(), static_cast<std::int64_t>(from.size_bytes()));
  }
  void download(Stream& stream, std::span<T> to) const {
    memory_.download(stream, to.data(), static_cast<std::int64_t>(to.size_bytes()));
  }
  void zero(Stream& stream) { memory_.zero(stream); }

 private:
  Memory memory_;
};

}  // namespace shardproof::cuda
