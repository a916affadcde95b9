#include "store/commit/receipt_blocks.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "store/commit/receipt_keys.h"
#include "store/commit/stored_steps.h"
#include "store/model/ids.h"

namespace conversed::store {
namespace {

constexpr std::size_t most_entries = 64;  // in a block; entries of one event stay together
constexpr char begin_of_entry = '\x1d';
constexpr char begin_of_step = '\x1e';
constexpr char separator = ' ';

constexpr std::string_view sql_to_add_number =
    "INSERT INTO receipt_numbers (number, event_id) VALUES (:n, :e)"
    " ON CONFLICT (number, event_id) DO NOTHING";

std::string beginning_of(std::string_view event_id) {
  return begin_of_entry + std::string(event_id);
}

// Calls `seen` with the text of each entry behind its mark.
template <typename Seen>
void each_entry(std::string_view block, const Seen& seen) {
  while (!block.empty()) {
    block.remove_prefix(1);
    const auto entry = block.substr(0, block.find(begin_of_entry));
    seen(entry);
    block.remove_prefix(entry.size());
  }
}

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view next_word(std::string_view& text) {
  const auto word = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

// Where the step of a receipt's entry begins; the end if it has none.
std::size_t step_in(std::string_view entry) {
  const auto mark = entry.find(begin_of_step);
  return mark == std::string_view::npos ? entry.size() : mark + 1;
}

// Compresses the steps of each part, if that makes it shorter.
std::string packed_block(std::string block) {
  if (block.size() <= most_plain_step) return block;
  std::string stored;
  std::string heads;
  std::string steps;
  const char* begin_of_part = block.data();
  each_entry(block, [&](std::string_view entry) {
    const auto step = step_in(entry);
    heads.append(1, begin_of_entry).append(entry.substr(0, step));
    steps.append(1, begin_of_step).append(entry.substr(step));
    const char* const end = entry.data() + entry.size();
    if (steps.size() < most_part_bytes && end != block.data() + block.size()) return;
    const auto text = packed(std::exchange(steps, {}));
    is_packed(text) ? stored.append(heads).append(text) : stored.append(begin_of_part, end);
    heads.clear();
    begin_of_part = end;
  });
  return stored;
}

// The steps of a packed text. All are `damaged_step` if it has another number of steps.
std::vector<std::string_view> steps_of(std::string_view text, std::size_t count) {
  std::vector<std::string_view> steps;
  while (!text.empty()) {
    text.remove_prefix(1);
    steps.push_back(text.substr(0, text.find(begin_of_step)));
    text.remove_prefix(steps.back().size());
  }
  if (steps.size() != count) steps.assign(count, damaged_step);
  return steps;
}

// The entries of a stored block of receipts, each with its step.
std::string unpacked_block(const std::string& stored) {
  std::string block;
  std::vector<std::string_view> heads;  // of the part, whose steps come with its last entry
  const auto end_part = [&](std::string_view steps) {
    const auto all = steps_of(steps, heads.size());
    for (std::size_t at = 0; at < heads.size(); ++at) {
      block.append(1, begin_of_entry).append(heads[at]).append(all[at]);
    }
    heads.clear();
  };
  each_entry(stored, [&](std::string_view entry) {
    const auto head = entry.substr(0, step_in(entry));
    const auto step = entry.substr(head.size());
    const bool is_whole = heads.empty() && !step.empty() && !is_packed(step);
    if (is_whole) {
      block.append(1, begin_of_entry).append(entry);
      return;
    }
    heads.push_back(head);
    // A part without its mark has no readable steps.
    if (!step.empty()) end_part(is_packed(step) ? unpacked(std::string(step)).value_or("") : "");
  });
  end_part("");
  return block;
}

ReceiptBegin begin_in(std::string_view entry) {
  const auto step = step_in(entry);
  auto head = entry.substr(0, step);
  if (head.ends_with(begin_of_step)) head.remove_suffix(1);
  ReceiptBegin begin;
  begin.event_id = next_word(head);
  begin.session = number_in(next_word(head));
  begin.written_at = model::from_unix_ms(number_in(next_word(head)));
  begin.trace_id = next_word(head);
  begin.previous = next_word(head);
  while (!head.empty()) begin.numbers.push_back(number_in(next_word(head)));
  begin.step = entry.substr(step);
  return begin;
}

void add_word(model::TextWriter& text, std::string_view word) {
  text.add(separator);
  text.add(word);
}

void add_number(model::TextWriter& text, std::int64_t number) {
  text.add(separator);
  text.add_number(number);
}

// Deletes the other rows of a receipt.
void remove_rows_of(Connection& connection, const ReceiptBegin& begin) {
  connection.run_row("DELETE FROM later_steps WHERE event_id = :e", begin.event_id);
  for (const auto number : begin.numbers) {
    connection.run_row("DELETE FROM receipt_numbers WHERE number = :n AND event_id = :e", number,
                       begin.event_id);
  }
}

struct Block {
  std::int64_t n = 0;
  std::string steps;
};

// The blocks with receipts of the event, unpacked.
std::vector<Block> read_blocks(Connection& connection, std::string_view event_id) {
  std::vector<Block> blocks;
  if (!model::is_id(event_id)) return blocks;
  const auto range = blocks_of(event_id);
  const auto beginning = beginning_of(event_id);
  connection.rows(
      [&](std::int64_t n, const std::string& steps) {
        if (steps.find(beginning) == std::string::npos) return;
        blocks.push_back({n, unpacked_block(steps)});
      },
      sql_of_blocks, range.from, range.to);
  return blocks;
}

std::optional<ReceiptBegin> receipt_in(const std::vector<Block>& blocks,
                                       std::string_view event_id) {
  std::optional<ReceiptBegin> found;
  for (const auto& block : blocks) {
    each_entry(block.steps, [&](std::string_view entry) {
      if (!entry.starts_with(event_id)) return;
      auto begin = begin_in(entry);
      if (!found || begin.written_at < found->written_at) found = std::move(begin);
    });
  }
  return found;
}

void keep(Connection& connection, std::int64_t n, std::string kept) {
  if (kept.empty()) {
    connection.run_row("DELETE FROM receipts WHERE n = :n", n);
  } else {
    connection.run_row("UPDATE receipts SET steps = :s WHERE n = :n", packed_block(std::move(kept)),
                       n);
  }
}

void cut_out(Connection& connection, const Block& block, std::string_view event_id) {
  std::string kept;
  each_entry(block.steps, [&](std::string_view entry) {
    if (!entry.starts_with(event_id)) kept.append(1, begin_of_entry).append(entry);
  });
  keep(connection, block.n, std::move(kept));
}

// The receipts of some sessions in a block.
struct Part {
  std::vector<ReceiptBegin> receipts;
  std::int64_t first = 0;  // the numbers of the first and the last event
  std::int64_t last = 0;
  std::string steps;  // a stored block of these receipts
  std::string plain;  // a stored block of the events' plain deliveries
};

Part part_of(const std::string& block, const OfSession& is_meant) {
  Part part;
  std::string steps;
  each_entry(unpacked_block(block), [&](std::string_view entry) {
    auto begin = begin_in(entry);
    if (!is_meant(begin.session)) return;
    steps.append(1, begin_of_entry).append(entry);
    const auto number = model::id_number(begin.event_id);
    part.first = part.receipts.empty() ? number : std::min(part.first, number);
    part.last = std::max(part.last, number);
    part.receipts.push_back(std::move(begin));
  });
  part.steps = packed_block(std::move(steps));
  return part;
}

// Calls `seen` with each plain delivery of the parts' events, and with its part.
template <typename Seen>
void each_plain_delivery(Connection& connection, std::vector<Part>& parts, const Seen& seen) {
  std::unordered_map<std::string_view, Part*> events;
  auto first = parts.front().first;
  auto last = parts.front().last;
  for (auto& part : parts) {
    first = std::min(first, part.first);
    last = std::max(last, part.last);
    for (const auto& begin : part.receipts) events.emplace(begin.event_id, &part);
  }
  connection.rows(
      [&](const std::string& block) {
        each_entry(block, [&](std::string_view entry) {
          auto rest = entry;
          const auto part = events.find(next_word(rest));
          if (part != events.end()) seen(entry, *part->second);
        });
      },
      sql_of_plain_deliveries, first - block_span, last);
}

// Adds a row for each part. It gets the number of the first event or, if that is taken, the highest
// free one from which its entries are found.
void insert_blocks(Connection& connection, const std::string& table, const std::vector<Part>& parts,
                   std::string Part::*steps) {
  const auto insert = "INSERT INTO " + table + " (n, steps) VALUES (:n, :s)";
  auto numbers = nlohmann::json::array();
  for (const auto& part : parts) numbers.push_back(part.first);
  const auto found = connection.values<std::int64_t>(
      "SELECT n FROM " + table + " WHERE n IN (SELECT CAST(value AS BIGINT) FROM json_each(:n))",
      numbers.dump());
  std::set<std::int64_t> taken(found.begin(), found.end());
  for (const auto& part : parts) {
    if ((part.*steps).empty()) continue;
    if (taken.insert(part.first).second) {
      connection.run_row(insert, part.first, part.*steps);
      continue;
    }
    auto n = part.first - 1;
    while (connection.run_counted(insert + " ON CONFLICT (n) DO NOTHING", n, part.*steps) == 0) {
      if (--n < part.last - block_span) {
        throw SqlError(SqlError::Kind::failed, "(no number is free for receipts)",
                       SqlError::Effect::none);
      }
    }
  }
}

}  // namespace

void ReceiptBlocks::begin(const NewReceiptRow& row, std::int64_t session, model::Timestamp now) {
  const auto& first = *row.first;
  auto& text = begun_.text;
  const auto begin = text.size();
  text.add(begin_of_entry);
  text.add(row.input_id);
  add_number(text, session);
  add_number(text, model::to_unix_ms(now));
  add_word(text, first.trace_id);
  add_word(text, first.previous);
  for (const auto number : {trace_number(first.trace_id, row.input_id), key_number(first.key)}) {
    if (!number) continue;
    add_number(text, *number);
    numbers_.emplace_back(*number, row.input_id);
  }
  text.add(begin_of_step);
  text.add(row.body);
  begun_.all.push_back({model::id_number(row.input_id), begin, text.size()});
}

void ReceiptBlocks::add(const PlainDelivery& delivery) {
  auto& text = delivered_.text;
  const auto begin = text.size();
  text.add(begin_of_entry);
  text.add(delivery.input_id);
  add_number(text, delivery.seq);
  add_number(text, model::to_unix_ms(delivery.at));
  add_number(text, delivery.took.count());
  add_number(text, delivery.status);
  delivered_.all.push_back({model::id_number(delivery.input_id), begin, text.size()});
}

void ReceiptBlocks::write(Connection& connection, std::string_view sql, Stored stored,
                          Entries& entries) {
  auto& all = entries.all;
  std::ranges::stable_sort(all, {}, &Entry::number);
  for (auto next = all.begin(); next != all.end();) {
    const auto first = next->number;
    auto last = first;
    std::size_t count = 0;
    std::string block;
    for (; next != all.end() && next->number <= first + block_span &&
           (count < most_entries || next->number == last);
         ++next, ++count) {
      last = next->number;
      block += entries.text.view().substr(next->begin, next->end - next->begin);
    }
    connection.run_row(sql, first, stored(std::move(block)));
  }
  all.clear();
  entries.text.cut(0);
}

void ReceiptBlocks::flush(Connection& connection) {
  write(connection,
        "INSERT INTO receipts (n, steps) VALUES (:n, :s)"
        " ON CONFLICT (n) DO UPDATE SET steps = receipts.steps || excluded.steps",
        packed_block, begun_);
  write(
      connection,
      "INSERT INTO plain_deliveries (n, steps) VALUES (:n, :s)"
      " ON CONFLICT (n) DO UPDATE SET steps = plain_deliveries.steps || excluded.steps",
      [](std::string block) { return block; }, delivered_);
  for (const auto& [number, event_id] : numbers_) {
    connection.run_row(sql_to_add_number, number, event_id);
  }
  numbers_.clear();
}

std::optional<ReceiptBegin> find_receipt(Connection& connection, std::string_view event_id) {
  return receipt_in(read_blocks(connection, event_id), event_id);
}

nlohmann::json plain_deliveries(Connection& connection, std::string_view event_id) {
  auto steps = nlohmann::json::array();
  if (!model::is_id(event_id)) return steps;
  const auto range = blocks_of(event_id);
  connection.rows(
      [&](const std::string& block) {
        each_entry(block, [&](std::string_view entry) {
          if (next_word(entry) != event_id) return;
          const auto seq = number_in(next_word(entry));
          const auto at = number_in(next_word(entry));
          const auto took = number_in(next_word(entry));
          steps.push_back({{"w", at},
                           {"at", at - took / 1'000},
                           {"what", "delivery"},
                           {"seq", seq},
                           {"try", 1},
                           {"us", took},
                           {"status", number_in(next_word(entry))}});
        });
      },
      sql_of_plain_deliveries, range.from, range.to);
  return steps;
}

std::optional<std::string> remove_receipt(Connection& connection, const std::string& event_id,
                                          std::int64_t session) {
  const auto blocks = read_blocks(connection, event_id);
  auto found = receipt_in(blocks, event_id);
  if (!found || found->session != session) return std::nullopt;
  for (const auto& block : blocks) cut_out(connection, block, event_id);
  remove_rows_of(connection, *found);
  return std::move(found->previous);
}

std::vector<ReceiptBegin> receipts_in(const std::string& block) {
  std::vector<ReceiptBegin> receipts;
  each_entry(unpacked_block(block),
             [&](std::string_view entry) { receipts.push_back(begin_in(entry)); });
  return receipts;
}

std::int64_t remove_block(Connection& connection, std::int64_t n, const std::string& block,
                          std::string_view first_kept) {
  auto receipts = receipts_in(block);
  const auto all = receipts.size();
  std::erase_if(receipts, [&](const auto& begin) { return begin.previous >= first_kept; });
  const bool stays = receipts.size() < all;
  for (const auto& begin : receipts) {
    if (stays) {
      remove_receipt(connection, begin.event_id, begin.session);
    } else {
      remove_rows_of(connection, begin);
    }
  }
  if (!stays) connection.run_row("DELETE FROM receipts WHERE n = :n", n);
  return std::ssize(receipts);
}

std::vector<std::string> copy_receipts(Connection& from, Connection& to,
                                       const std::vector<std::string>& blocks,
                                       const OfSession& is_meant) {
  std::vector<Part> parts;
  for (const auto& block : blocks) {
    auto part = part_of(block, is_meant);
    if (!part.receipts.empty()) parts.push_back(std::move(part));
  }
  std::vector<std::string> events;
  if (parts.empty()) return events;
  std::set<std::string> known;
  each_plain_delivery(to, parts, [&](std::string_view entry, Part&) { known.emplace(entry); });
  each_plain_delivery(from, parts, [&](std::string_view entry, Part& part) {
    if (known.emplace(entry).second) part.plain.append(1, begin_of_entry).append(entry);
  });
  insert_blocks(to, "receipts", parts, &Part::steps);
  insert_blocks(to, "plain_deliveries", parts, &Part::plain);
  for (const auto& part : parts) {
    for (const auto& begin : part.receipts) {
      events.push_back(begin.event_id);
      for (const auto number : begin.numbers) to.run_row(sql_to_add_number, number, events.back());
    }
  }
  return events;
}

std::int64_t remove_from_block(Connection& connection, std::int64_t n, const OfSession& is_meant) {
  const auto stored =
      connection.value<std::string>("SELECT steps FROM receipts WHERE n = :n", n).value_or("");
  std::int64_t removed = 0;
  std::string kept;
  each_entry(unpacked_block(stored), [&](std::string_view entry) {
    const auto begin = begin_in(entry);
    if (!is_meant(begin.session)) {
      kept.append(1, begin_of_entry).append(entry);
      return;
    }
    remove_rows_of(connection, begin);
    ++removed;
  });
  if (removed > 0) keep(connection, n, std::move(kept));
  return removed;
}

BlockRange blocks_of(std::string_view event_id) {
  const auto number = model::id_number(event_id);
  return {.from = number - block_span, .to = number};
}

std::string pattern_of_receipt(std::optional<std::int64_t> session) {
  auto pattern = '%' + beginning_of("?") + separator;
  if (session) pattern += std::to_string(*session) + separator;
  return pattern + '%';
}

}  // namespace conversed::store
