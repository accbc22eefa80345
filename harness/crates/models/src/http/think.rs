//! Separates the thoughts that some models write in front of their text, as `<think>..</think>`,
//! from the answer. Pure; any split of the text gives the same result.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SplitState {
    /// At the start, where a tag may open.
    Start,
    Thoughts,
    /// Directly after the thoughts, where white space is dropped.
    Gap,
    Answer,
}

/// Thoughts and answer text in a piece.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SplitText {
    pub(crate) thoughts: String,
    pub(crate) answer: String,
}

/// Splits the text of one answer.
#[derive(Debug)]
pub(crate) struct ThinkSplitter {
    state: SplitState,
    /// Text that may be the beginning of a tag.
    pending: String,
}

impl Default for ThinkSplitter {
    fn default() -> Self {
        Self {
            state: SplitState::Start,
            pending: String::new(),
        }
    }
}

impl ThinkSplitter {
    /// Splits a piece of text.
    pub(crate) fn push(&mut self, piece: &str) -> SplitText {
        let mut text = std::mem::take(&mut self.pending) + piece;
        let mut split = SplitText::default();
        if self.state == SplitState::Start {
            let trimmed = text.trim_start();
            if let Some(rest) = trimmed.strip_prefix(OPEN) {
                self.state = SplitState::Thoughts;
                text = rest.to_owned();
            } else if OPEN.starts_with(trimmed) {
                self.pending = text;
                return split;
            } else {
                self.state = SplitState::Answer;
            }
        }
        if self.state == SplitState::Thoughts {
            match text.split_once(CLOSE) {
                Some((thoughts, rest)) => {
                    split.thoughts.push_str(thoughts);
                    self.state = SplitState::Gap;
                    text = rest.to_owned();
                }
                None => {
                    let tag_bytes = partial_close_tag(&text);
                    self.pending = text.split_off(text.len() - tag_bytes);
                    split.thoughts = text;
                    return split;
                }
            }
        }
        if self.state == SplitState::Gap {
            text = text.trim_start().to_owned();
            if !text.is_empty() {
                self.state = SplitState::Answer;
            }
        }
        split.answer = text;
        split
    }

    /// Returns the pending text at the end of the answer: it is not a tag.
    pub(crate) fn end(&mut self) -> SplitText {
        let pending = std::mem::take(&mut self.pending);
        match self.state {
            SplitState::Thoughts => SplitText {
                thoughts: pending,
                ..SplitText::default()
            },
            _ => SplitText {
                answer: pending,
                ..SplitText::default()
            },
        }
    }
}

/// Returns the number of bytes at the end of `text` that may be the beginning of the closing tag.
fn partial_close_tag(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|length| text.ends_with(&CLOSE[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let mut all: Vec<SplitText> = pieces.iter().map(|piece| splitter.push(piece)).collect();
        all.push(splitter.end());
        let thoughts = all.iter().map(|split| split.thoughts.as_str()).collect();
        (
            thoughts,
            all.iter().map(|split| split.answer.as_str()).collect(),
        )
    }

    #[test]
    fn only_leading_thoughts_are_split() {
        for (text, thoughts, answer) in [
            (
                "\n<think>hm < </thin</think>\n\nyes <think>no</think>",
                "hm < </thin",
                "yes <think>no</think>",
            ),
            ("plain", "", "plain"),
            (" <thin", "", " <thin"),
            ("<think>never closed</th", "never closed</th", ""),
            ("", "", ""),
        ] {
            assert_eq!(
                split(&[text]),
                (thoughts.to_owned(), answer.to_owned()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_parts(pieces in prop::collection::vec("(<think>|</think>|</thi|<|é| |a|\n){0,3}", 0..8)) {
            let whole = pieces.concat();
            let characters: Vec<String> = whole.chars().map(String::from).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
            prop_assert_eq!(split(&pieces), split(&[&whole]));
            prop_assert_eq!(split(&characters), split(&[&whole]));
        }
    }
}
