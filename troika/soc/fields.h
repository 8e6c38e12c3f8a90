// Reading JSON objects strictly: every access names the field's path in its error, and a field that
// nobody asked for is refused.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "troika/base/json_text.h"
#include "troika/base/result.h"
#include "troika/soc/figure.h"

namespace troika::soc {

// Parses text of at most `max_bytes`; refuses what is nested too deep, too long, or has a key
// twice.
Result<nlohmann::json> parse_strictly(std::string_view text, size_t max_bytes);

// What a number may be.
struct FigureRange {
  const char* unit = "";
  double min = 0;
  double max = 0;
  bool whole = false;
};

// One object while it is read. Borrows the JSON.
class Fields {
 public:
  // kInvalidData if it is not an object.
  static Result<Fields> of(const nlohmann::json& value, std::string path);

  bool has(const char* key) const { return object_->contains(key); }
  std::string path(const char* key) const { return path_ + "." + key; }

  Result<const nlohmann::json*> any(const char* key);
  Result<Fields> object(const char* key);
  // Arrays of up to `most` entries, at least one.
  Result<const nlohmann::json*> array(const char* key, size_t most);
  // Printable, of at most 400 bytes and at least one.
  Result<std::string> text(const char* key);
  // A word of letters, digits, '-', '_' and '.'.
  Result<std::string> name(const char* key);
  Result<std::string> choice(const char* key, const std::vector<std::string>& allowed);
  Result<bool> boolean(const char* key);
  Result<int64_t> integer(const char* key, int64_t min, int64_t max);
  // Finite, and without a unit.
  Result<double> number(const char* key, double min, double max);
  // {"value", "unit", "kind", "source"}
  Result<Figure> figure(const char* key, const FigureRange& range);
  Result<std::optional<Figure>> optional_figure(const char* key, const FigureRange& range);
  // {"values", "unit", "kind", "source"}, ascending
  Result<FigureList> figures(const char* key, const FigureRange& range, size_t most);
  // {"tokens", "values", "unit", "kind", "source"}: as many values as tokens, which are ascending
  Result<std::optional<FigureCurve>> optional_curve(const char* key, const FigureRange& tokens,
                                                    const FigureRange& range, size_t most);

  // kInvalidData naming a field that was not asked for.
  Status finish() const;

 private:
  Fields(const nlohmann::json& object, std::string path)
      : object_(&object), path_(std::move(path)) {}
  Result<std::vector<double>> numbers(const char* key, const FigureRange& range, size_t most,
                                      bool ascending);
  Status origin(const FigureRange& range, FigureKind& kind, std::string& source);

  const nlohmann::json* object_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
};

// Reads a name: a word of letters, digits, '-', '_' and '.'.
Result<std::string> name_from(const nlohmann::json& value, const std::string& path);

}  // namespace troika::soc
