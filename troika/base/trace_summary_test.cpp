#include "troika/base/trace_summary.h"

#include <gtest/gtest.h>

namespace troika {
namespace {

using std::chrono::microseconds;

TraceEvent task(const std::string& name, const std::string& device, int64_t pass, int64_t rows,
                int start, int end) {
  TraceEvent event;
  event.name = name;
  event.device = device;
  event.pass = pass;
  event.rows = rows;
  event.start = microseconds(start);
  event.end = microseconds(end);
  return event;
}

// Two devices: a prefill of 8 rows in two chunks, then two decode passes after a pause.
Trace two_devices() {
  Trace trace;
  trace.devices = {{"cpu", "core 0"}, {"npu", ""}};
  trace.events = {
      task("G1 layer 0", "npu", 0, 4, 100, 140),   task("G1 layer 0", "cpu", 0, 4, 100, 120),
      task("A layer 0", "cpu", 0, 4, 140, 160),    task("head", "cpu", 0, 1, 160, 170),
      task("G1 layer 0", "cpu", 1, 1, 1000, 1010), task("head", "npu", 1, 1, 1015, 1020),
      task("G1 layer 0", "cpu", 2, 1, 1020, 1030)};
  trace.events[1].row_begin = 4;
  trace.events[2].wait = microseconds(20);
  trace.events[5].wait = microseconds(5);
  trace.events[5].delay = microseconds(3);
  trace.events[6].wait = microseconds(2);
  trace.events[0].bytes = 1000;
  trace.events[0].copy_bytes = 10;
  trace.events[0].macs = 7;
  trace.events[0].predicted_us = 50;
  trace.events[5].predicted_us = 2;
  return trace;
}

TEST(TraceSummary, TellsBusyTimesAndWaitsOfDevices) {
  const TraceSummary summary = summarize(two_devices(), 0);
  EXPECT_EQ(summary.start, microseconds(100));
  EXPECT_EQ(summary.span_us, 930);
  ASSERT_EQ(summary.devices.size(), 2u);
  const DeviceSummary& cpu = summary.devices[0];
  EXPECT_EQ(cpu.device.name, "cpu");
  EXPECT_EQ(cpu.device.description, "core 0");
  EXPECT_EQ(cpu.tasks, 5);
  EXPECT_EQ(cpu.joins, 2);
  EXPECT_EQ(cpu.busy_us, 70);
  EXPECT_EQ(cpu.wait_us, 22);
  EXPECT_EQ(cpu.median_wait_us, 20);
  EXPECT_EQ(cpu.delay_us, 0);
  EXPECT_EQ(cpu.stage_us[static_cast<size_t>(TraceStage::kG1)], 40);
  EXPECT_EQ(cpu.stage_us[static_cast<size_t>(TraceStage::kAttention)], 20);
  EXPECT_EQ(cpu.stage_us[static_cast<size_t>(TraceStage::kHead)], 10);
  EXPECT_EQ(cpu.predicted_tasks, 0);
  const DeviceSummary& npu = summary.devices[1];
  EXPECT_EQ(npu.tasks, 2);
  EXPECT_EQ(npu.joins, 1);
  EXPECT_EQ(npu.busy_us, 45);
  EXPECT_EQ(npu.delay_us, 3);
  EXPECT_EQ(npu.bytes, 1000);
  EXPECT_EQ(npu.copy_bytes, 10);
  EXPECT_EQ(npu.macs, 7);
  EXPECT_EQ(npu.predicted_tasks, 2);
  EXPECT_EQ(npu.predicted_us, 52);
  EXPECT_EQ(npu.measured_of_predicted_us, 45);
}

TEST(TraceSummary, PhasesLeaveOutThePausesBetweenPasses) {
  const TraceSummary summary = summarize(two_devices(), 0);
  ASSERT_EQ(summary.passes.size(), 3u);
  EXPECT_EQ(summary.passes[0].rows, 8);
  EXPECT_FALSE(summary.passes[0].decode);
  EXPECT_EQ(summary.passes[1].start, microseconds(1000));
  EXPECT_EQ(summary.passes[1].end, microseconds(1020));
  ASSERT_EQ(summary.phases.size(), 2u);
  const PhaseSummary& prefill = summary.phases[0];
  EXPECT_FALSE(prefill.decode);
  EXPECT_EQ(prefill.passes, 1);
  EXPECT_EQ(prefill.rows, 8);
  EXPECT_EQ(prefill.span_us, 70);
  EXPECT_EQ(prefill.busy_us, (std::vector<double>{50, 40}));
  EXPECT_EQ(prefill.wait_us, (std::vector<double>{20, 0}));
  const PhaseSummary& decode = summary.phases[1];
  EXPECT_TRUE(decode.decode);
  EXPECT_EQ(decode.passes, 2);
  EXPECT_EQ(decode.rows, 2);
  EXPECT_EQ(decode.span_us, 30);
  EXPECT_EQ(decode.busy_us, (std::vector<double>{20, 5}));
  EXPECT_EQ(decode.wait_us, (std::vector<double>{2, 5}));
}

TEST(TraceSummary, ManySequencesWithARowEachAreDecode) {
  Trace trace;
  trace.events = {task("input", "cpu", 0, 4, 0, 1), task("input", "cpu", 1, 4, 1, 2)};
  trace.events[0].sequences = 4;
  trace.events[1].sequences = 3;
  const TraceSummary summary = summarize(trace, 0);
  EXPECT_TRUE(summary.passes[0].decode);
  EXPECT_FALSE(summary.passes[1].decode);
}

TEST(TraceSummary, TimeOfOverlappingTasksCountsOnce) {
  Trace trace;
  trace.events = {task("w", "cpu", 0, 1, 10, 20), task("x", "cpu", 0, 1, 0, 15),
                  task("y", "cpu", 0, 1, 2, 3), task("z", "cpu", 0, 1, 30, 31)};
  const TraceSummary summary = summarize(trace, 0);
  EXPECT_EQ(summary.devices[0].busy_us, 21);
  EXPECT_EQ(summary.devices[0].stage_us[static_cast<size_t>(TraceStage::kOther)], 27);
}

TEST(TraceSummary, ListsTheLongestTasksFirst) {
  EXPECT_EQ(summarize(two_devices(), 3).longest, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(summarize(two_devices(), 100).longest.size(), 7u);
}

TEST(TraceSummary, OfNothingIsEmpty) {
  Trace trace;
  trace.devices = {{"cpu", ""}};
  const TraceSummary summary = summarize(trace, 5);
  EXPECT_EQ(summary.span_us, 0);
  EXPECT_EQ(summary.devices.size(), 1u);
  EXPECT_TRUE(summary.passes.empty());
  EXPECT_TRUE(summary.phases.empty());
  EXPECT_TRUE(summary.longest.empty());
}

TEST(TraceSummary, StagesAreTakenFromTheStageElseTheName) {
  const auto stage = [](const std::string& name, const std::string& given) {
    TraceEvent event;
    event.name = name;
    event.stage = given;
    return to_string(trace_stage(event));
  };
  EXPECT_EQ(stage("input", ""), "input");
  EXPECT_EQ(stage("G1 layer 3", ""), "G1");
  EXPECT_EQ(stage("A layer 3", ""), "attention");
  EXPECT_EQ(stage("G2.down[0:64]", ""), "G2");
  EXPECT_EQ(stage("head", ""), "head");
  EXPECT_EQ(stage("gather q layer 1", ""), "join");
  EXPECT_EQ(stage("G1 layer 3", "copy"), "join");
  EXPECT_EQ(stage("all layers", ""), "other");
  EXPECT_EQ(stage("", ""), "other");
  EXPECT_EQ(stage("\xff\x80", ""), "other");
}

TEST(TraceSummary, TasksThatOnlyCopyAreJoins) {
  TraceEvent event = task("G2 layer 3", "cpu", 0, 1, 0, 1);
  event.copy_bytes = 10;
  EXPECT_EQ(trace_stage(event), TraceStage::kJoin);
  event.macs = 1;
  EXPECT_EQ(trace_stage(event), TraceStage::kG2);
}

// Each value as large as the reader lets through: sums must not overflow.
TEST(TraceSummary, AddsUpTheLargestNumbers) {
  Trace trace;
  TraceEvent event = task("a", "cpu", 1, int64_t{1} << 60, 0, 0);
  event.row_begin = event.rows;
  event.bytes = event.copy_bytes = event.macs = int64_t{1} << 60;
  event.start = TimePoint(4'000'000'000'000'000'000);
  event.wait = event.delay = Duration(1'000'000'000'000'000);
  event.end = event.start + event.wait;
  trace.events.assign(20'000, event);
  const TraceSummary summary = summarize(trace, 1);
  EXPECT_EQ(summary.devices[0].macs, 20'000.0 * static_cast<double>(int64_t{1} << 60));
  EXPECT_EQ(summary.devices[0].wait_us, 2e16);
  EXPECT_EQ(summary.devices[0].busy_us, 1e12);
}

}  // namespace
}  // namespace troika
