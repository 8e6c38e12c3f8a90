#include "troika/device/probe/probe.h"

#include <algorithm>
#include <cstring>

#include "troika/device/check/report_json.h"
#include "troika/device/probe/child_process.h"
#include "troika/device/probe/info_json.h"

namespace troika::device {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kRemedy = "update or reinstall its driver, or leave it out of --device";

ErrorCode code_of(int64_t number) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    if (exit_code(static_cast<ErrorCode>(i)) == number) return static_cast<ErrorCode>(i);
  }
  return ErrorCode::kDeviceFailed;
}

// The last line that is not empty.
std::string_view last_line(std::string_view text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  const size_t newline = text.find_last_of("\r\n", end);
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return text.substr(begin, end + 1 - begin);
}

// Short and printable: drivers say there why they give up.
std::string last_words(const std::string& text) {
  constexpr size_t kMost = 200;
  std::string line(last_line(text).substr(0, kMost));
  if (line.empty()) return {};
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  return fmt::format(" (its last words: {})", line);
}

ProbeReport bad(ProbeEnd end, std::string message) {
  ProbeReport report;
  report.end = end;
  report.error = {end == ProbeEnd::kHung ? ErrorCode::kTimeout : ErrorCode::kDeviceFailed,
                  std::move(message)};
  return report;
}

ProbeReport nonsense(const ProbeRequest& request, size_t bytes) {
  return bad(ProbeEnd::kNonsense,
             fmt::format("device {}: the program that opened it gave {} bytes and no answer; {}",
                         request.device, bytes, kRemedy));
}

ProbeReport understand(const ProbeRequest& request, const std::string& output) {
  // Whatever was loaded before may have printed something, too.
  const std::optional<Json> answer = parse_json(last_line(output));
  if (!answer || integer_of(*answer, "troika_probe") != kFormat) {
    return nonsense(request, output.size());
  }
  ProbeReport report;
  report.opened = flag_of(*answer, "opened");
  report.remembered = flag_of(*answer, "remembered");
  if (report.opened) {
    const auto info = info_from_json(answer->value("info", Json()));
    if (!info) return nonsense(request, output.size());
    report.info = *info;
  }
  const Json error = answer->value("error", Json());
  if (!text_of(error, "message").empty()) {
    report.end = report.opened ? ProbeEnd::kWrong : ProbeEnd::kRefused;
    report.error = {code_of(integer_of(error, "code")), text_of(error, "message")};
    return report;
  }
  const auto check = report_from_json(answer->value("check", Json()));
  if (!report.opened || !check) return nonsense(request, output.size());
  report.end = ProbeEnd::kGood;
  report.check = *check;
  return report;
}

ProbeReport judge(const ProbeRequest& request, const ChildOutcome& outcome) {
  const std::string words = last_words(outcome.last_words);
  switch (outcome.end) {
    case ChildOutcome::End::kTimedOut:
      return bad(ProbeEnd::kHung,
                 fmt::format("device {} hangs: no answer in {:.3g} s{}; {}", request.device,
                             to_seconds(request.time_limit), words, kRemedy));
    case ChildOutcome::End::kSignalled:
      return bad(
          ProbeEnd::kCrashed,
          fmt::format("the driver of device {} crashed, by signal {} ({}){}; {}", request.device,
                      outcome.code, strsignal(outcome.code), words, kRemedy));
    case ChildOutcome::End::kWroteTooMuch:
      return bad(ProbeEnd::kNonsense,
                 fmt::format("device {}: the program that opened it wrote without end; {}",
                             request.device, kRemedy));
    case ChildOutcome::End::kExited:
      break;
  }
  if (outcome.code == 0) return understand(request, outcome.output);
  return bad(ProbeEnd::kExited,
             fmt::format("the driver of device {} ended the program that opened it, with exit code "
                         "{}{}; {}",
                         request.device, outcome.code, words, kRemedy));
}

std::optional<ProbeReport> known_bad(const ProbeRequest& request, const DeviceStore& store) {
  const std::optional<DeviceRecord> record = store.find(request.key);
  // Wrong values are those of one driver: the child will see whether it is still the same.
  if (!record || record->good || record->kind == to_string(ProbeEnd::kWrong)) return std::nullopt;
  ProbeReport report = bad(ProbeEnd::kCrashed, record->message);
  for (const ProbeEnd end : {ProbeEnd::kHung, ProbeEnd::kExited, ProbeEnd::kNonsense}) {
    if (record->kind == to_string(end)) report = bad(end, record->message);
  }
  report.remembered = true;
  report.bad_since = record->time;
  return report;
}

}  // namespace

std::string_view to_string(ProbeEnd end) {
  switch (end) {
    case ProbeEnd::kGood:
      return "good";
    case ProbeEnd::kRefused:
      return "refused";
    case ProbeEnd::kWrong:
      return "wrong";
    case ProbeEnd::kHung:
      return "hung";
    case ProbeEnd::kCrashed:
      return "crashed";
    case ProbeEnd::kExited:
      return "exited";
    case ProbeEnd::kNonsense:
      return "nonsense";
  }
  return "";
}

Result<ProbeReport> probe(const ProbeRequest& request, const DeviceStore& store) {
  if (request.again) {
    store.forget(request.key);
  } else if (auto known = known_bad(request, store)) {
    return *known;
  }
  ChildCommand command;
  command.arguments = request.command;
  command.arguments.push_back(request.device);
  command.time_limit = request.time_limit;
  command.cancelled = request.cancelled;
  ASSIGN_OR_RETURN(const ChildOutcome outcome, run_child(command));
  ProbeReport report = judge(request, outcome);
  // Of a device that opened the child has remembered what it found; one that is only not there may
  // be there the next time.
  const bool broke = report.end != ProbeEnd::kGood && report.end != ProbeEnd::kRefused &&
                     report.end != ProbeEnd::kWrong;
  if (broke) {
    DeviceRecord record;
    record.message = report.error.message;
    record.kind = to_string(report.end);
    static_cast<void>(store.save(request.key, record));
  }
  return report;
}

std::string probe_answer(const Result<std::unique_ptr<Device>>& device, const std::string& key,
                         const DeviceStore& store) {
  Json answer = {{"troika_probe", kFormat}, {"opened", device.has_value()}};
  const auto tell = [&answer](const Error& error) {
    answer["error"] = {{"code", exit_code(error.code)}, {"message", error.message}};
  };
  if (!device) {
    tell(device.error());
  } else {
    bool remembered = false;
    const auto report = check_once(**device, key, store, &remembered);
    // The check may have shown what it cannot compute.
    answer["info"] = to_json((*device)->info());
    answer["remembered"] = remembered;
    if (report) answer["check"] = to_json(*report);
    if (!report) tell(report.error());
  }
  return answer.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace troika::device
