#pragma once

#include <set>
#include <string>
#include <vector>

#include "flows/bundle/loader.h"
#include "flows/fields.h"
#include "flows/flow.h"
#include "store/model/bundle.h"

namespace conversed::flows {

// Reads the parts of a bundle. It collects all names first, so that each reference is checked at
// its place. Problems go to the view's report and never hold the value of a `${NAME}`. Kept by:
// LoaderProblems.NeverHoldASecret. One use, one thread.
class BundleReader {
 public:
  BundleReader(const View& root, const Environment& environment, Variables variables)
      : root_(root), environment_(environment), variables_(variables) {}

  // The result may be used only if the report has no problems.
  [[nodiscard]] model::Bundle read();

 private:
  using Names = std::set<std::string, std::less<>>;

  // bundle_reader.cc
  void read_project(const Fields& top);
  void read_member(const View& view);
  void read_token(const View& view);
  void read_connection(const View& view);
  [[nodiscard]] static std::vector<std::string> read_hosts(const Fields& fields,
                                                           std::string_view type);
  void check_connection(const Fields& fields, const model::BundleConnection& connection);
  // Whether the text has a `${NAME}`; `$${` is none.
  [[nodiscard]] static bool has_variable(std::string_view text);
  // Whether all variables of the text have values here, so that it can be checked.
  [[nodiscard]] bool is_known(std::string_view text) const {
    return variables_ == Variables::needed || !has_variable(text);
  }
  // The text with each `${NAME}` replaced; `$${` stands for `${`.
  [[nodiscard]] std::string expand(const View& view, const std::string& text);
  // The names that Flows may refer to. Reports no problems: reading the elements does.
  void collect_names();
  [[nodiscard]] static Names names_in(const Located& from, std::string_view list,
                                      std::string_view field);
  // Adds `name` to `seen`; a problem if it is there already.
  static void expect_unique(const Fields& fields, std::string_view field, const std::string& name,
                            Names& seen);

  // bundle_reader_knowledge.cc
  void read_lexicon(const View& view);
  [[nodiscard]] model::BundleLexiconEntry read_entry(const View& view,
                                                     const model::BundleLexicon& lexicon,
                                                     Names& phrases);
  void read_knowledge_store(const View& view);
  [[nodiscard]] static model::BundleSource read_source(const View& view);

  // bundle_reader_flows.cc
  void read_flow(const View& view);
  void read_endpoint(const View& view);
  void read_output(const View& view, model::BundleEndpoint& endpoint);
  void read_proactive(const Fields& top);
  void read_journey(const View& view);

  const View root_;
  const Environment& environment_;
  const Variables variables_;
  model::Bundle bundle_;
  KnownNames known_;
  Names locales_;
  Names seen_members_;
  Names seen_tokens_;
  Names seen_connections_;
  Names seen_lexicons_;
  Names seen_stores_;
  Names seen_flows_;
  Names seen_endpoints_;
  Names seen_url_tokens_;
};

}  // namespace conversed::flows
