// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/signature.hpp"

namespace shardproof::comm {

namespace {

std::string list(const std::vector<std::int64_t>& counts) {
  std::string text = "[";
  for (const auto c : counts) text += (text.size() > 1 ? " " : "") + std::to_string(c);
  return text + "]";
}

std::string rank_calls(Rank rank, const Signature& call) {
  return "rank " + std::to_string(static_cast<std::int32_t>(rank)) + " calls " + print(call);
}

/// Names what differs; of messages, `ends` are expected to have different kinds and peers.
std::string differences(const Signature& a, const Signature& b, bool ends) {
  std::string names;
  const auto compare = [&](std::string_view what, bool same) {
    if (!same) names += (names.empty() ? "" : ", ") + std::string(what);
  };
  compare("kind", ends || a.kind == b.kind);
  compare("number", a.number == b.number);
  compare("operator", a.op == b.op);
  compare("dtype", a.dtype == b.dtype);
  compare("elements", a.elements == b.elements);
  if (a.kind == b.kind && a.kind != Kind::all_to_all) {
    compare("counts", a.inputs == b.inputs && a.outputs == b.outputs);
    compare("root", a.peer == b.peer);
  }
  compare("purpose", a.purpose == b.purpose);
  compare("stage", a.tag.stage == b.tag.stage);
  compare("microbatch", a.tag.microbatch == b.tag.microbatch);
  return names;
}

std::string sentence(Rank a, const Signature& call_a, Rank b, const Signature& call_b, const std::string& names) {
  return names.empty() ? ""
                       : "calls do not match: " + rank_calls(a, call_a) + ", " + rank_calls(b, call_b) +
                             ": they differ in " + names;
}

}  // namespace

Signature::Signature(const Call& call)
    : kind(call.kind),
      op(call.op),
      inputs(call.inputs),
      outputs(call.outputs),
      peer(call.peer),
      number(call.number),
      purpose(call.purpose),
      tag(call.tag) {
  const auto& whole = kind == Kind::reduce_scatter || kind == Kind::send ? call.input : call.output;
  if (!whole) return;
  dtype = whole.dtype();
  if (kind != Kind::all_to_all) elements = whole.elements();
}

std::string print(const Signature& call) {
  std::string text = std::string(name_of(call.kind)) + " " + std::to_string(call.number);
  if (call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter) text += " " + std::string(name_of(call.op));
  if (call.kind == Kind::broadcast) text += " from place " + std::to_string(call.peer);
  if (call.kind != Kind::barrier) text += " " + std::string(name_of(call.dtype));
  if (!call.inputs.empty()) text += " " + list(call.inputs);
  if (!call.outputs.empty()) text += " " + list(call.outputs);
  if (call.kind != Kind::all_to_all && call.kind != Kind::barrier) text += " (" + std::to_string(call.elements) + ")";
  return text + " for " + std::string(call.purpose) + print(call.tag);
}

std::string mismatch(const std::vector<Rank>& members, const std::vector<Signature>& calls) {
  for (std::size_t k = 1; k < calls.size(); ++k) {
    auto names = differences(calls[0], calls[k], false);
    if (!names.empty()) return sentence(members[0], calls[0], members[k], calls[k], names);
  }
  if (calls[0].kind != Kind::all_to_all) return "";
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      if (calls[i].inputs[k] != calls[k].outputs[i])
        return sentence(members[i], calls[i], members[k], calls[k], "counts");
    }
  }
  return "";
}

std::string mismatch(Rank sender, const Signature& send, Rank receiver, const Signature& receive) {
  return sentence(sender, send, receiver, receive, differences(send, receive, true));
}

}  // namespace shardproof::comm
