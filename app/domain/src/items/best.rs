//! The best of many, seen one by one, in bounded room.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Keeps the `room` best of what it is shown: the greatest rank first, ties by the smaller place.
#[derive(Debug)]
pub struct Best<P, T> {
    room: usize,
    /// The worst on top.
    heap: BinaryHeap<Entry<P, T>>,
}

#[derive(Debug)]
struct Entry<P, T> {
    rank: f64,
    place: P,
    what: T,
}

impl<P: Ord, T> Ord for Entry<P, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .rank
            .total_cmp(&self.rank)
            .then_with(|| self.place.cmp(&other.place))
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

impl<P: Ord, T> Best<P, T> {
    /// Room for so many.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            heap: BinaryHeap::new(),
        }
    }

    /// Shows one.
    pub fn show(&mut self, rank: f64, place: P, what: T) {
        self.heap.push(Entry { rank, place, what });
        if self.heap.len() > self.room {
            self.heap.pop();
        }
    }

    /// What was kept, best first, without the first `offset`.
    pub fn into_page(self, offset: usize) -> Vec<(f64, T)> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .skip(offset)
            .map(|entry| (entry.rank, entry.what))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_best_are_kept_in_order() {
        let mut best = Best::new(3);
        for (place, rank) in [
            (0, 0.5),
            (1, 0.9),
            (2, -1.0),
            (3, 0.9),
            (4, 0.7),
            (5, f64::MIN),
        ] {
            best.show(rank, place, place);
        }
        assert_eq!(best.into_page(1), [(0.9, 3), (0.7, 4)]);
        let mut none = Best::new(0);
        none.show(1.0, 1, 1);
        assert_eq!(none.into_page(0), []);
    }
}
