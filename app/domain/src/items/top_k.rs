//! Selects the best of a sequence in bounded memory.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Collects the `capacity` entries with the highest rank; ties prefer the smaller tie breaker.
#[derive(Debug)]
pub struct TopK<P, T> {
    capacity: usize,
    /// The worst entry is on top.
    heap: BinaryHeap<Entry<P, T>>,
}

#[derive(Debug)]
struct Entry<P, T> {
    rank: f64,
    tie_breaker: P,
    item: T,
}

impl<P: Ord, T> Ord for Entry<P, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .rank
            .total_cmp(&self.rank)
            .then_with(|| self.tie_breaker.cmp(&other.tie_breaker))
    }
}

impl<P: Ord, T> PartialOrd for Entry<P, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P: Ord, T> PartialEq for Entry<P, T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P: Ord, T> Eq for Entry<P, T> {}

impl<P: Ord, T> TopK<P, T> {
    /// Creates an empty collection.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            heap: BinaryHeap::new(),
        }
    }

    /// Adds an entry if it is among the best.
    pub fn offer(&mut self, rank: f64, tie_breaker: P, item: T) {
        self.heap.push(Entry {
            rank,
            tie_breaker,
            item,
        });
        if self.heap.len() > self.capacity {
            self.heap.pop();
        }
    }

    /// Returns the collected entries, best first, after skipping `offset`.
    pub fn into_page(self, offset: usize) -> Vec<(f64, T)> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .skip(offset)
            .map(|entry| (entry.rank, entry.item))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_best_entries_are_returned_in_order() {
        let mut best = TopK::new(3);
        for (tie_breaker, rank) in [
            (0, 0.5),
            (1, 0.9),
            (2, -1.0),
            (3, 0.9),
            (4, 0.7),
            (5, f64::MIN),
        ] {
            best.offer(rank, tie_breaker, tie_breaker);
        }
        assert_eq!(best.into_page(1), [(0.9, 3), (0.7, 4)]);
        let mut none = TopK::new(0);
        none.offer(1.0, 1, 1);
        assert_eq!(none.into_page(0), []);
    }
}
