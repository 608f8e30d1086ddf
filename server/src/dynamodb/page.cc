#include "dynamodb/page.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "drover/model/key.h"
#include "drover/model/limits.h"
#include "dynamodb/errors.h"
#include "dynamodb/json_writer.h"
#include "expression/evaluate.h"

namespace drover::server {
namespace {

bool has(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name, std::less<>());
}

/// What a local index shows of an item; nothing: all of it.
std::optional<std::vector<std::string>> projected_attributes(const ReadTarget& target) {
  if (!target.local() || target.index->projection == model::ProjectionType::kAll) return std::nullopt;
  std::vector<std::string> names = target.index->included;
  for (const model::KeySchema* key : {&target.table.key, &target.index->key}) {
    names.push_back(key->partition_key.name);
    if (key->sort_key) names.push_back(key->sort_key->name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Page::Page(const ReadTarget& target, const model::AttributeNames& names, const PageOptions& options, std::string& out)
    : target_(target), names_(names), options_(options), out_(out), reader_(target.table, target.index, names) {
  if (!options.all_attributes && options.projection == nullptr) visible_ = projected_attributes(target);
  if (options.filter != nullptr) filtered_ = expression::attributes_of(*options.filter);
  if (options.projection != nullptr) projection_.emplace(*options.projection);
}

bool Page::add(const store::StoredItem& item) {
  ++scanned_;
  if (options_.filter == nullptr || passes(item)) {
    ++matched_;
    write(item);
  }
  if (scanned_ < options_.limit && size_bytes_ < model::kPageSizeBytesMax) return true;
  end(item);
  return false;
}

bool Page::is_visible(std::string_view attribute) const {
  return !visible_ || has(*visible_, attribute);
}

/// `counted`: whether the item's size has been added to the page's already.
template <typename Use>
void Page::for_each_visible(const store::StoredItem& item, bool counted, Use use) {
  reader_.for_each(item, [&](std::string_view name, model::ValueView value) {
    if (!is_visible(name)) return;
    if (!counted) size_bytes_ += name.size() + value_size_bytes(value, names_);
    use(name, value);
  });
}

bool Page::passes(const store::StoredItem& item) {
  model::Item wanted;
  for_each_visible(item, false, [&](std::string_view name, model::ValueView value) {
    if (has(filtered_, name)) wanted.emplace(name, value.to_value(names_));
  });
  return expression::matches(*options_.filter, wanted);
}

void Page::write(const store::StoredItem& item) {
  const bool counted = options_.filter != nullptr;
  if (options_.count_only) {
    return for_each_visible(item, counted, [](std::string_view, model::ValueView) {});
  }
  if (matched_ > 1) out_ += ',';
  if (projection_ && !projection_->flat()) {
    model::Item wanted;
    for_each_visible(item, counted, [&](std::string_view name, model::ValueView value) {
      if (projection_->wants(name)) wanted.emplace(name, value.to_value(names_));
    });
    return append_json_item(out_, projection_->project(wanted));
  }
  out_ += '{';
  first_attribute_ = true;
  for_each_visible(item, counted, [&](std::string_view name, model::ValueView value) {
    if (!projection_ || projection_->wants(name)) write_attribute(name, value);
  });
  out_ += '}';
}

void Page::write_attribute(std::string_view name, model::ValueView value) {
  out_ += first_attribute_ ? "\"" : ",\"";
  first_attribute_ = false;
  append_json_escaped(out_, name);
  out_ += "\":";
  append_json_value(out_, value, names_);
}

model::Item Page::key_of(const store::StoredItem& item) {
  model::Item key = reader_.key_of(item);
  if (target_.local()) {
    const model::KeyAttribute& attribute = *target_.index->key.sort_key;
    const std::optional<model::Bytes> encoded = local_index_key(target_, names_, item);
    key.insert_or_assign(attribute.name, model::key_value(attribute.type, *encoded));
  }
  return key;
}

void read_one(const store::Table& table, const EncodedKey& key, Page& page) {
  const store::KeyRange range{store::KeyRange::Bound{key.sort_key, true}, store::KeyRange::Bound{key.sort_key, true}};
  check(table.read("", key.partition_key, range, true,
                   [&page](const store::StoredItem& item) { return page.add(item); }));
}

LocalIndexItems::LocalIndexItems(const ReadTarget& target, const model::AttributeNames& names,
                                 const store::KeyRange& range, bool ascending, std::uint64_t limit)
    : target_(target), names_(names), range_(range), ascending_(ascending), limit_(limit) {}

void LocalIndexItems::add(const store::StoredItem& item) {
  const std::optional<model::Bytes> key = local_index_key(target_, names_, item);
  if (!key) return;
  model::Bytes position =
      store::index_sort_key(target_.table, *target_.index, *key, item.partition_key, item.row.sort_key());
  if (!contains(range_, position)) return;
  size_bytes_ += item.row.bytes().size();
  rows_.emplace(std::move(position), item.row.bytes());

  while (rows_.size() > limit_ || size_bytes_ > model::kPageSizeBytesMax + model::kItemSizeBytesMax) {
    const auto farthest = ascending_ ? std::prev(rows_.end()) : rows_.begin();
    size_bytes_ -= farthest->second.size();
    rows_.erase(farthest);
    dropped_ = true;
  }
}

void LocalIndexItems::read(std::string_view partition_key, Page& page) const {
  const auto item = [&](const auto& entry) { return store::StoredItem{partition_key, model::RowView(entry.second)}; };
  const auto add = [&](const auto& entry) { return page.add(item(entry)); };
  const bool all_fit =
      ascending_ ? std::all_of(rows_.begin(), rows_.end(), add) : std::all_of(rows_.rbegin(), rows_.rend(), add);
  if (all_fit && dropped_) page.end(item(ascending_ ? *rows_.rbegin() : *rows_.begin()));
}

std::optional<model::Bytes> local_index_key(const ReadTarget& target, const model::AttributeNames& names,
                                            const store::StoredItem& item) {
  const model::KeyAttribute& attribute = *target.index->key.sort_key;
  // The index may sort by the table's own sort key.
  if (is_key_attribute(target.table.key, attribute.name)) return model::Bytes(item.row.sort_key());
  const std::optional<model::ValueView> value = model::find_attribute(item.row.attributes(), attribute.name, names);
  if (!value || value->type() != expression::attribute_type(attribute.type)) return std::nullopt;
  model::Bytes key;
  if (!model::append_key(key, attribute, value->to_value(names), model::kSortKeySizeBytesMax).ok()) return std::nullopt;
  return key;
}

}  // namespace drover::server
