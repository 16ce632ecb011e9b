// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/flight.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

constexpr std::size_t most_step_times = 31;
constexpr auto relaxed = std::memory_order_relaxed;

template <std::size_t N>
void copy(std::string_view text, char (&to)[N]) {
  std::memset(to, 0, N);
  text.copy(to, N - 1);
}

/// FNV-1a over words, with a rotation so that high bits count too.
class Hash {
 public:
  Hash& add(std::uint64_t word) {
    value_ = std::rotl((value_ ^ word) * 0x100000001b3u, 29);
    return *this;
  }
  Hash& add(std::string_view text) {
    add(text.size());
    for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text.size(), 8))) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data(), std::min<std::size_t>(text.size(), 8));
      add(word);
    }
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

bool is_message(Kind kind) { return kind == Kind::send || kind == Kind::receive; }

std::int32_t peer_of(const Group& group, const Call& call) {
  const bool has = is_message(call.kind) || call.kind == Kind::broadcast;
  return has ? static_cast<std::int32_t>(group.members.at(static_cast<std::size_t>(call.peer))) : -1;
}

void* map(int file, int protection, int flags = MAP_SHARED) {
  void* const memory = mmap(nullptr, sizeof(FlightFile), protection, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* initialised(void* memory) {
  auto* const record = new (memory) FlightFile{};
  record->version = flight_version, record->bytes = sizeof(FlightFile);
  record->exit_code = record->status = -1;
  std::memcpy(record->magic, flight_magic, sizeof flight_magic);
  return memory;
}

}  // namespace

std::int64_t flight_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::unique_ptr<MappedFlight> MappedFlight::create(const std::filesystem::path& path) {
  const auto fail = [&](int error) {
    unlink(path.c_str());
    return WriteError("cannot write " + path.string() + ": " + std::strerror(error));
  };
  unlink(path.c_str());
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) throw WriteError("cannot write " + path.string() + ": " + std::strerror(errno));
  // Its blocks are taken now: a write to a mapping that finds the disk full would kill the process.
  const int error = posix_fallocate(file, 0, sizeof(FlightFile));
  void* const memory = error != 0 ? nullptr : map(file, PROT_READ | PROT_WRITE);
  if (memory == nullptr) {
    const int mapping_error = errno;
    close(file);
    throw fail(error != 0 ? error : mapping_error);
  }
  flock(file, LOCK_SH);
  return std::unique_ptr<MappedFlight>(new MappedFlight(initialised(memory), file));
}

std::unique_ptr<MappedFlight> MappedFlight::anonymous() {
  void* const memory = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  if (memory == nullptr) throw WriteError(std::string("no memory for a flight record: ") + std::strerror(errno));
  return std::unique_ptr<MappedFlight>(new MappedFlight(initialised(memory)));
}

std::unique_ptr<MappedFlight> MappedFlight::open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return nullptr;
  struct stat status {};
  const bool fits = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
                    status.st_size == std::int64_t{sizeof(FlightFile)};
  void* const memory = fits ? map(file, PROT_READ) : nullptr;
  close(file);
  if (memory == nullptr) return nullptr;
  auto mapped = std::unique_ptr<MappedFlight>(new MappedFlight(memory));
  const FlightFile& record = mapped->file();
  const bool known = std::memcmp(record.magic, flight_magic, sizeof flight_magic) == 0 &&
                     record.version == flight_version && record.bytes == sizeof(FlightFile);
  return known ? std::move(mapped) : nullptr;
}

MappedFlight::~MappedFlight() {
  munmap(file_, sizeof(FlightFile));
  if (lock_ >= 0) close(lock_);
}

std::span<const std::byte> MappedFlight::bytes() const {
  return {reinterpret_cast<const std::byte*>(file_), sizeof(FlightFile)};
}

FlightRecorder::FlightRecorder(std::unique_ptr<MappedFlight> mapped, const FlightIdentity& identity)
    : mapped_(std::move(mapped)) {
  FlightFile& record = file();
  record.process = identity.process, record.processes = identity.processes;
  record.pid = getpid();
  record.begin_ns = flight_clock();
  record.begin_wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  record.progress_ns = record.begin_ns;
  copy(identity.host, record.host);
  copy(identity.job, record.job);
}

void FlightRecorder::begin_training(double timeout_seconds, std::int64_t first_rank, std::int64_t ranks) {
  const std::lock_guard lock(mutex_);
  FlightFile& record = file();
  for (auto& group : record.groups) group.key.store(0, relaxed);
  for (auto& call : record.ring) call.sequence.store(0, relaxed);
  step_ns_.clear();
  timeout_ns_ = static_cast<std::int64_t>(timeout_seconds * 1e9);
  record.deadline_ns = timeout_ns_;
  record.median_step_ns = 0;
  record.step = 1;
  record.first_rank = first_rank, record.ranks = ranks;
  record.progress_ns = flight_clock();
  record.training.fetch_add(1);  // after which rows are of the new one
  record.phase = static_cast<std::uint32_t>(Phase::training);
}

void FlightRecorder::skip_training() {
  file().ranks = 0;
  file().training.fetch_add(1);
}

void FlightRecorder::end_training() { file().phase = static_cast<std::uint32_t>(Phase::idle); }

void FlightRecorder::end_step(double seconds) {
  const std::lock_guard lock(mutex_);
  FlightFile& record = file();
  if (step_ns_.size() == most_step_times) step_ns_.erase(step_ns_.begin());
  step_ns_.push_back(static_cast<std::int64_t>(seconds * 1e9));
  std::vector<std::int64_t> sorted = step_ns_;
  std::ranges::nth_element(sorted, sorted.begin() + std::ssize(sorted) / 2);
  const std::int64_t median = sorted[sorted.size() / 2];
  record.median_step_ns = median;
  if (timeout_ns_ > 0) record.deadline_ns = std::max(timeout_ns_, steps_of_a_deadline * median);
  record.step.fetch_add(1, relaxed);
}

std::uint16_t FlightRecorder::row(Rank rank, const Group& group) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t key = group_key(rank, group.axis, group.channel, group.members);
  auto& rows = file().groups;
  constexpr std::uint16_t last = FlightFile::most_groups - 1;
  std::uint16_t at = 0;
  while (at < last && rows[at].key != 0 && rows[at].key != key) ++at;
  FlightGroup& row = rows[at];
  if (row.key != 0) return at;
  const bool is_own = at < last;
  row.rank = is_own ? static_cast<std::int32_t>(rank) : -1;
  copy(is_own ? group.axis : "?", row.axis);
  copy(is_own ? group.channel : "?", row.channel);
  copy(is_own ? print_members(group.members, sizeof row.members - 1) : "", row.members);
  row.calls.store(0, relaxed);
  for (auto& signature : row.signatures) signature.store(0, relaxed);
  row.key.store(key, std::memory_order_release);
  return at;
}

int FlightRecorder::begin(std::uint16_t row, const Group& group, const Call& call) {
  FlightFile& record = file();
  const std::int64_t now = flight_clock();
  record.progress_ns.store(now, relaxed);
  FlightGroup& of_group = record.groups[row];
  std::uint64_t place = 0;
  if (!is_message(call.kind) && row + 1u < FlightFile::most_groups) {  // one queue makes the collectives of a channel
    place = of_group.calls.load(relaxed) + 1;
    of_group.signatures[place % FlightGroup::kept].store(signature_hash(call), relaxed);
    of_group.calls.store(place, std::memory_order_release);
  }
  std::uint64_t taken = record.open_taken.load(relaxed);
  int slot = 0;
  do {
    slot = std::countr_one(taken);
    if (slot >= static_cast<int>(FlightFile::most_open)) return -1;
  } while (!record.open_taken.compare_exchange_weak(taken, taken | std::uint64_t{1} << slot, relaxed));
  FlightCall& open = record.open[slot];
  const Tensor& whole = payload(call);
  open.sequence.store(0, relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  open.begin_ns = now, open.end_ns = 0;
  open.elements = whole ? whole.elements() : 0;
  open.number = call.number;
  open.place = static_cast<std::int64_t>(place);
  open.rank = static_cast<std::int32_t>(group.members[static_cast<std::size_t>(group.place)]);
  open.peer = peer_of(group, call);
  open.step = static_cast<std::int32_t>(record.step.load(relaxed));
  open.stage = static_cast<std::int32_t>(call.tag.stage);
  open.microbatch = static_cast<std::int32_t>(call.tag.microbatch);
  open.group = row;
  open.kind = static_cast<std::uint8_t>(call.kind);
  open.dtype = whole ? static_cast<std::uint8_t>(whole.dtype()) : std::uint8_t{0};
  open.op = static_cast<std::uint8_t>(call.op);
  copy(call.purpose, open.purpose);
  open.sequence.store(record.next_sequence.fetch_add(1, relaxed) + 1, std::memory_order_release);
  return slot;
}

void FlightRecorder::end(int slot) {
  FlightFile& record = file();
  const std::int64_t now = flight_clock();
  record.progress_ns.store(now, relaxed);
  if (slot < 0) return;
  FlightCall& open = record.open[slot];
  FlightCall& ended = record.ring[record.ended.fetch_add(1, relaxed) % FlightFile::most_ended];
  const std::uint64_t sequence = open.sequence.load(relaxed);
  ended.sequence.store(0, relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const auto after_sequence = [](FlightCall& call) { return reinterpret_cast<std::byte*>(&call.begin_ns); };
  open.end_ns = now;
  std::memcpy(after_sequence(ended), after_sequence(open), sizeof(FlightCall) - sizeof open.sequence);
  ended.sequence.store(sequence, std::memory_order_release);
  open.sequence.store(0, std::memory_order_release);
  record.open_taken.fetch_and(~(std::uint64_t{1} << slot), std::memory_order_release);
}

void FlightRecorder::decide(std::int32_t exit_code, std::string_view failure) {
  const std::lock_guard lock(mutex_);
  if (file().exit_code >= 0) return;
  copy(failure, file().failure);
  file().exit_code = exit_code;
}

void FlightRecorder::keep_in(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  copy(folder.string(), file().folder);
}

Blocked::Blocked(FlightRecorder* recorder, std::string_view function) : recorder_(recorder) {
  if (recorder_ == nullptr) return;
  const std::lock_guard lock(recorder_->mutex_);
  if (recorder_->blocked_++ > 0) return;
  copy(function, recorder_->file().blocked_in);
  recorder_->file().blocked_ns = flight_clock();
}

Blocked::~Blocked() {
  if (recorder_ == nullptr) return;
  const std::lock_guard lock(recorder_->mutex_);
  recorder_->file().blocked_ns = --recorder_->blocked_ > 0 ? flight_clock() : 0;
}

std::string print_members(const std::vector<Rank>& members, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < members.size();) {
    std::size_t end = i + 1;
    const auto whole = [&](std::size_t k) { return static_cast<std::int32_t>(members[k]); };
    while (end < members.size() && whole(end) == whole(end - 1) + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(whole(i));
    if (end - i > 1) text += "-" + std::to_string(whole(end - 1));
    i = end;
  }
  return text.size() <= most ? text : "";
}

std::uint64_t group_key(Rank rank, std::string_view axis, std::string_view channel, const std::vector<Rank>& members) {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(rank)).add(axis).add(channel);
  for (const Rank member : members) hash.add(static_cast<std::uint64_t>(member));
  return std::max<std::uint64_t>(hash.value(), 1);
}

// As Signature (signature.hpp), without its copies.
std::uint64_t signature_hash(const Call& call) {
  const Tensor& whole = call.kind == Kind::reduce_scatter ? call.input : call.output;
  const auto dtype = whole ? static_cast<std::uint64_t>(whole.dtype()) : 0;
  Hash hash;
  hash.add(static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.op) << 8 | dtype << 16);
  hash.add(static_cast<std::uint64_t>(call.number)).add(call.purpose);
  if (call.kind == Kind::all_to_all) return hash.value();  // counts differ, as they may
  hash.add(static_cast<std::uint64_t>(whole ? whole.elements() : 0)).add(static_cast<std::uint64_t>(call.peer));
  for (const auto count : call.inputs) hash.add(static_cast<std::uint64_t>(count));
  for (const auto count : call.outputs) hash.add(static_cast<std::uint64_t>(count));
  return hash.value();
}

}  // namespace shardproof::comm
