// SPDX-License-Identifier: Apache-2.0
#include "harness/junit.hpp"

#include <fmt/format.h>

namespace shardproof::harness {
namespace {

std::string_view element_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "";
    case Verdict::fail:
    case Verdict::mistrusted:
    case Verdict::inconclusive: return "failure";
    case Verdict::unsupported:
    case Verdict::skipped: return "skipped";
    case Verdict::error: break;
  }
  return "error";
}

// As an attribute's value. XML 1.0 has no control characters but tab and line ends.
std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\n': out += "&#10;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  return out;
}

}  // namespace

std::string junit(const std::vector<Ended>& cases) {
  std::string body;
  std::size_t failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  for (const Ended& ended : cases) {
    const std::string_view element = element_of(ended.verdict);
    failures += element == "failure";
    errors += element == "error";
    skipped += element == "skipped";
    seconds += ended.seconds;
    body += fmt::format("  <testcase classname=\"shardproof\" name=\"{}\" time=\"{:.3f}\"", escaped(ended.case_text),
                        ended.seconds);
    body += element.empty() ? "/>\n"
                            : fmt::format(">\n    <{} type=\"{}\" message=\"{}&#10;rerun: {}\"/>\n  </testcase>\n",
                                          element, name_of(ended.verdict), escaped(ended.reason), escaped(ended.rerun));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"shardproof\" tests=\"{}\" failures=\"{}\" "
      "errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuite>\n",
      cases.size(), failures, errors, skipped, seconds, body);
}

}  // namespace shardproof::harness
