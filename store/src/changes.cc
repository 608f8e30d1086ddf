#include "changes.h"

#include <utility>

namespace drover::store {
namespace {

/// Requires: it does not change meanwhile.
CutState present_state(const Collection& collection) {
  CutState state{collection.state(), {}};
  if (state.late_count > 0) state.late_growth = state.view->late->growth;
  return state;
}

}  // namespace

Changes::Interval Changes::begin(std::uint32_t next) {
  const model::LockGuard lock(mutex_);
  Interval ended;
  ended.collections.reserve(notes_.size());
  for (const Note& note : notes_) ended.collections.push_back(note.collection);
  ended.settled = std::exchange(last_collections_, ended.collections);
  ended.gone = std::exchange(gone_, {});
  ended.apart = std::exchange(apart_, {});
  ended.merges = std::exchange(merges_, {});
  notes_.clear();
  by_collection_.clear();
  mapped_ = 0;
  interval_ = next;
  return ended;
}

void Changes::note(Collection& collection) {
  const model::LockGuard lock(mutex_);
  notes_.push_back({&collection, present_state(collection)});
  collection.cut = interval_;
}

void Changes::add_gone(const Collection& collection) {
  if (gone_keys_.empty()) return;
  const model::LockGuard lock(mutex_);
  for (model::Bytes& key : gone_keys_) gone_.push_back({&collection, std::move(key)});
  gone_keys_.clear();
}

void Changes::add_apart(const Collection& collection, std::string_view first_key, std::string_view last_key) {
  const model::LockGuard lock(mutex_);
  apart_.push_back({&collection, model::Bytes(first_key), model::Bytes(last_key)});
}

CutState Changes::state_at_cut(const Collection& collection) {
  const model::LockGuard lock(mutex_);
  for (; mapped_ < notes_.size(); ++mapped_) by_collection_.emplace(notes_[mapped_].collection, notes_[mapped_].before);
  const auto noted = by_collection_.find(&collection);
  return noted != by_collection_.end() ? noted->second : present_state(collection);
}

}  // namespace drover::store
