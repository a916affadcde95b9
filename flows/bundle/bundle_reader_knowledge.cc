// Lexicons and knowledge stores of a bundle.
#include <algorithm>
#include <utility>

#include "flows/bundle/bundle_reader.h"
#include "flows/flow_compiler.h"

namespace conversed::flows {

void BundleReader::read_lexicon(const View& view) {
  const Fields fields(view, {"name", "slots", "entries"});
  model::BundleLexicon lexicon;
  lexicon.name = fields.name("name");
  expect_unique(fields, "name", lexicon.name, seen_lexicons_);
  lexicon.slots = fields.names("slots");
  Names phrases;
  fields.each("entries", [&](const View& item) {
    auto entry = read_entry(item, lexicon, phrases);
    lexicon.entries.push_back(std::move(entry));
  });
  bundle_.lexicons.push_back(std::move(lexicon));
}

model::BundleLexiconEntry BundleReader::read_entry(const View& view,
                                                   const model::BundleLexicon& lexicon,
                                                   Names& phrases) {
  const Fields fields(view, {"mainKeyphrase", "keyphrases", "slots", "data"});
  model::BundleLexiconEntry entry;
  entry.main_keyphrase = fields.name("mainKeyphrase");
  expect_unique(fields, "mainKeyphrase", entry.main_keyphrase, phrases);
  entry.keyphrases = fields.names("keyphrases");
  entry.slots = fields.names("slots");
  const Names slots(lexicon.slots.begin(), lexicon.slots.end());
  fields.each("slots",
              [&](const View& item) { expect_known(item, "the lexicon has no slot", slots); });
  if (const auto data = fields.find("data")) entry.data = data->value().to_json();
  return entry;
}

void BundleReader::read_knowledge_store(const View& view) {
  const Fields fields(view, {"name", "sources"});
  model::BundleKnowledgeStore store;
  store.name = fields.name("name");
  expect_unique(fields, "name", store.name, seen_stores_);
  Names names;
  fields.each("sources", [&](const View& item) {
    auto source = read_source(item);
    if (!source.name.empty() && !names.insert(source.name).second) {
      item.problem("the source '" + source.name + "' is in this knowledge store twice; rename one");
    }
    store.sources.push_back(std::move(source));
  });
  bundle_.knowledge_stores.push_back(std::move(store));
}

model::BundleSource BundleReader::read_source(const View& view) {
  const Fields fields(view, {"name", "chunks"});
  model::BundleSource source;
  source.name = fields.name("name");
  fields.each("chunks", [&](const View& item) {
    const Fields chunk_fields(item, {"text", "data"});
    model::BundleChunk chunk;
    chunk.text = chunk_fields.text("text");
    if (const auto data = chunk_fields.find("data")) chunk.data = data->value().to_json();
    source.chunks.push_back(std::move(chunk));
  });
  return source;
}

}  // namespace conversed::flows
