//! Answers whose lengths are distributed evenly over the orders of magnitude.

use deerflow_channels::testkit::{Kinds, Numbers, answer};

/// Maximum length in characters.
pub(super) const MAX_CHARACTERS: usize = 200_000;

/// Answer of a seed.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) markdown: String,
    /// `true` if the text contains tables.
    pub(super) has_tables: bool,
}

/// Returns the answer of a seed. It has from 1 to [`MAX_CHARACTERS`] characters, and may end within
/// a block.
pub(super) fn sample(seed: u64) -> Sample {
    let mut numbers = Numbers::new(seed);
    let exponent = numbers.below(1_000) as f64 / 999.0;
    let length = (MAX_CHARACTERS as f64).powf(exponent).round() as usize;
    of_length(seed, length)
}

/// Returns the answer of a seed with a number of characters.
pub(super) fn of_length(seed: u64, length: usize) -> Sample {
    let mut numbers = Numbers::new(seed ^ 0x5bd1_e995);
    let kinds = Kinds {
        links: numbers.below(2) == 0,
        tables: numbers.below(2) == 0,
    };
    // A character has at least one byte.
    let mut bytes = length;
    loop {
        let text = answer(seed, bytes, kinds);
        if let Some((end, _)) = text.char_indices().nth(length) {
            return Sample {
                markdown: text[..end].to_owned(),
                has_tables: kinds.tables,
            };
        }
        bytes += bytes / 2 + 64;
    }
}
