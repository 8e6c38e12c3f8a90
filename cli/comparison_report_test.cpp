#include "cli/comparison_report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/repository.h"
#include "troika/forecast/error_band.h"
#include "troika/published/catalogue.h"
#include "troika/soc/catalogue.h"

namespace troika::cli {
namespace {

published::Paper small_paper() {
  const auto paper = published::from_json(R"({
    "version": 1, "paper": "some", "title": "Some",
    "cases": [
      {"case": "fits", "metric": "memory_gbps", "input": {"soc": "snapdragon-8-gen-3", "units": ["gpu"]},
       "published": 40, "published_to": 45, "unit": "GB/s", "mark": "printed", "calibrated": true,
       "source": "<somewhere>"},
      {"case": "is-off", "metric": "memory_gbps", "input": {"soc": "snapdragon-8-gen-3", "units": ["gpu"]},
       "published": 21.65, "unit": "GB/s", "mark": "derived", "calibrated": false,
       "why_off": "half of it was not measured", "source": "there"},
      {"case": "no", "metric": "ttft_s", "input": {"soc": "snapdragon-8-gen-3", "shapes": ["tiny"], "prompts": [8],
       "strategy": "layer"}, "published": 3, "unit": "s", "mark": "printed", "calibrated": false,
       "left_out": "nobody knows", "source": "there"}]})");
  EXPECT_TRUE(paper.has_value()) << paper.error().message;
  return paper ? *paper : published::Paper();
}

reproduce::Comparison compared(const std::vector<published::Paper>& papers) {
  reproduce::Runs runs([](std::string_view name) { return soc::find(name); });
  auto comparison = reproduce::compare(papers, runs, {});
  EXPECT_TRUE(comparison.has_value()) << comparison.error().message;
  return comparison ? std::move(*comparison) : reproduce::Comparison();
}

TEST(ComparisonReport, JsonHasWhatIsComparedAndTheMeans) {
  const Json json = comparison_json(compared({small_paper()}));
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(json["calibration"]["figures"], 1);
  EXPECT_NEAR(json["validation"]["mean_abs_error_pct"].get<double>(), 100, 1e-6);
  const Json& off = json["cases"][1];
  EXPECT_EQ(off["paper"], "some");
  EXPECT_EQ(off["case"], "is-off");
  EXPECT_EQ(off["input"]["soc"], "snapdragon-8-gen-3");
  EXPECT_EQ(off["published"], 21.65);
  EXPECT_NEAR(off["simulated"].get<double>(), 43.3, 1e-9);
  EXPECT_NEAR(off["error_pct"].get<double>(), 100, 1e-6);
  EXPECT_EQ(off["calibrated"], false);
  EXPECT_EQ(off["unit"], "GB/s");
  EXPECT_TRUE(json["cases"][2]["simulated"].is_null());
  EXPECT_EQ(json["cases"][0]["error_pct"], 0);
}

TEST(ComparisonReport, TablesSayWhatIsOffAndWhatIsLeftOut) {
  const auto comparison = compared({small_paper()});
  const std::string page = comparison_markdown(comparison);
  EXPECT_NE(page.find("| fits | 40 to 45 | 43.3 | GB/s | +0.0 % | calibrates |"),
            std::string::npos);
  EXPECT_NE(page.find("| is-off | 21.65 (derived) | 43.3 | GB/s | +100.0 % | validates |"),
            std::string::npos);
  EXPECT_NE(page.find("- **some is-off** (+100.0 %): half of it was not measured.\n"),
            std::string::npos);
  EXPECT_NE(page.find("- no: nobody knows.\n"), std::string::npos);
  EXPECT_NE(comparison_text(comparison).find("validation: 1 figures, mean absolute error 100.0 %"),
            std::string::npos);
  const std::string html = comparison_html(comparison);
  EXPECT_NE(html.find("&lt;somewhere&gt;"), std::string::npos);
  EXPECT_EQ(html.find("<somewhere>"), std::string::npos);
}

TEST(ComparisonReport, BandsAreOfFiguresThatValidate) {
  EXPECT_TRUE(error_bands_json(compared({small_paper()}))["bands"].empty());  // one case
  const Json json = error_bands_json(compared({small_paper(), small_paper()}));
  ASSERT_EQ(json["bands"].size(), 1u);
  const Json& band = json["bands"][0];
  EXPECT_EQ(band["soc"], "snapdragon-8-gen-3");
  EXPECT_EQ(band["stack"], "default");
  EXPECT_EQ(band["cases"], 2);
  EXPECT_EQ(band["mean_error_pct"], 100);
  EXPECT_EQ(band["largest_error_pct"], 100);
  const auto read = forecast::error_band_from(json.dump(), "snapdragon-8-gen-3", "default");
  ASSERT_TRUE(read.has_value() && *read);
  EXPECT_EQ((*read)->cases, 2);
}

// The whole page takes half a minute (scripts/check_validation); its quick parts are simulated anew
// here.
TEST(ComparisonReport, ThePageOfTheDocumentationHasNotDrifted) {
  std::ifstream in(repository_path("docs/validation.md"));
  std::stringstream text;
  text << in.rdbuf();
  const std::string page = text.str();
  ASSERT_FALSE(page.empty());
  std::vector<published::Paper> papers;
  for (const char* name : {"heteroinfer", "llama-cpp"}) {
    published::Paper paper = published::find(name)->front();
    std::erase_if(paper.cases, [](const published::Case& one) {
      const bool quick = one.input.shapes.empty() || one.input.prompts.size() == 1;
      return !quick || one.input.strategy == "troika";
    });
    EXPECT_GT(paper.cases.size(), 5u);
    papers.push_back(std::move(paper));
  }
  std::istringstream lines(comparison_markdown(compared(papers)));
  std::string line;
  size_t rows = 0;
  while (std::getline(lines, line)) {
    if (line.empty() || line.front() != '|' || line.find("---") != std::string::npos) continue;
    ++rows;
    EXPECT_NE(page.find(line + "\n"), std::string::npos)
        << line << "\nrun scripts/check_validation --write";
  }
  EXPECT_GT(rows, 40u);
}

}  // namespace
}  // namespace troika::cli
