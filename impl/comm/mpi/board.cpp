// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/board.hpp"

#include <algorithm>
#include <cstring>

namespace shardproof::comm {

namespace {

std::vector<Rank> members_here(const Group& group, const std::vector<std::int64_t>& process_of, std::int64_t own) {
  std::vector<Rank> here;
  for (std::size_t k = 0; k < process_of.size(); ++k)
    if (process_of[k] == own) here.push_back(group.members[k]);
  return here;
}

}  // namespace

Signature signature_of(const MpiHeader& header) {
  Signature signature{Call{.kind = Kind::send, .purpose = header.purpose}};
  signature.dtype = static_cast<Dtype>(header.dtype);
  signature.elements = header.elements;
  signature.number = header.number;
  signature.tag = {header.stage, header.microbatch};
  return signature;
}

MpiBoard::MpiBoard(ThreadState& threads, const Group& group, const std::vector<std::int64_t>& process_of,
                   std::int64_t own)
    : ThreadBoard(threads, {group.axis, members_here(group, process_of, own), group.channel}),
      all(group.members),
      processes(process_of),
      outboxes(members.size()),
      calls(members.size()) {
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  std::vector<std::int64_t> counts(processes.size());
  for (std::size_t k = 0; k < process_of.size(); ++k) {
    const auto at = std::lower_bound(processes.begin(), processes.end(), process_of[k]) - processes.begin();
    process.push_back(static_cast<int>(at));
    index.push_back(counts[static_cast<std::size_t>(at)]++);
    if (process_of[k] == own) here.push_back(static_cast<std::int64_t>(k));
  }
}

MpiBoard::~MpiBoard() {
  if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
}

bool MpiBoard::is_here(std::int64_t place) const {
  return process[static_cast<std::size_t>(place)] == process[static_cast<std::size_t>(here.front())];
}

int MpiBoard::tag(MpiTraffic what, std::int64_t from, std::int64_t to) const {
  const auto pair = index[static_cast<std::size_t>(from)] * most_thread_ranks + index[static_cast<std::size_t>(to)];
  return static_cast<int>(pair * 4 + static_cast<std::int64_t>(what));
}

std::string MpiBoard::undelivered() const {
  std::string first = mailbox.undelivered();
  while (true) {
    int there = 0;
    MPI_Status status;
    require_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &there, &status), "MPI_Iprobe");
    if (there == 0) return first;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<std::byte> message(static_cast<std::size_t>(std::max(bytes, 0)));
    require_mpi(
        MPI_Recv(message.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, communicator, MPI_STATUS_IGNORE),
        "MPI_Recv");
    if (status.MPI_TAG % 4 != static_cast<int>(MpiTraffic::header) || !first.empty()) continue;
    MpiHeader header;
    std::memcpy(&header, message.data(), std::min(message.size(), sizeof header));
    const std::int64_t pair = status.MPI_TAG / 4;
    std::size_t from = 0, to = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (process[k] == status.MPI_SOURCE && index[k] == pair / most_thread_ranks) from = k;
      if (is_here(static_cast<std::int64_t>(k)) && index[k] == pair % most_thread_ranks) to = k;
    }
    first = "message of axis " + axis + ", channel " + channel + " was never received: " + name_of(all[from]) +
            " calls " + print(signature_of(header)) + " to " + name_of(all[to]);
  }
}

}  // namespace shardproof::comm
