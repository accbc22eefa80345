//! Parts the thoughts that some models write into their text, as `<think>..</think>` in front, from the answer. Pure; any
//! split of the text gives the same parts.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Where in the text the splitter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the start, where a tag may open.
    Start,
    Thoughts,
    /// Right behind the thoughts, where white space is dropped.
    Gap,
    Answer,
}

/// What a piece of text adds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::models) struct Parts {
    pub(in crate::models) thoughts: String,
    pub(in crate::models) answer: String,
}

/// Splits one answer's text.
#[derive(Debug)]
pub(in crate::models) struct ThinkSplitter {
    place: Place,
    /// What may still turn out to be a tag.
    held: String,
}

impl Default for ThinkSplitter {
    fn default() -> Self {
        Self {
            place: Place::Start,
            held: String::new(),
        }
    }
}

impl ThinkSplitter {
    /// Takes a piece of text in.
    pub(in crate::models) fn push(&mut self, piece: &str) -> Parts {
        let mut text = std::mem::take(&mut self.held) + piece;
        let mut parts = Parts::default();
        if self.place == Place::Start {
            let begun = text.trim_start();
            if let Some(rest) = begun.strip_prefix(OPEN) {
                self.place = Place::Thoughts;
                text = rest.to_owned();
            } else if OPEN.starts_with(begun) {
                self.held = text;
                return parts;
            } else {
                self.place = Place::Answer;
            }
        }
        if self.place == Place::Thoughts {
            match text.split_once(CLOSE) {
                Some((thoughts, rest)) => {
                    parts.thoughts.push_str(thoughts);
                    self.place = Place::Gap;
                    text = rest.to_owned();
                }
                None => {
                    let keep = begun_tag(&text);
                    self.held = text.split_off(text.len() - keep);
                    parts.thoughts = text;
                    return parts;
                }
            }
        }
        if self.place == Place::Gap {
            text = text.trim_start().to_owned();
            if !text.is_empty() {
                self.place = Place::Answer;
            }
        }
        parts.answer = text;
        parts
    }

    /// Takes the end of the text: what was held back is what it looked like.
    pub(in crate::models) fn end(&mut self) -> Parts {
        let held = std::mem::take(&mut self.held);
        match self.place {
            Place::Thoughts => Parts {
                thoughts: held,
                ..Parts::default()
            },
            _ => Parts {
                answer: held,
                ..Parts::default()
            },
        }
    }
}

/// How many bytes at the end of `text` may be the beginning of the closing tag.
fn begun_tag(text: &str) -> usize {
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
        let mut all: Vec<Parts> = pieces.iter().map(|piece| splitter.push(piece)).collect();
        all.push(splitter.end());
        let thoughts = all.iter().map(|parts| parts.thoughts.as_str()).collect();
        (
            thoughts,
            all.iter().map(|parts| parts.answer.as_str()).collect(),
        )
    }

    #[test]
    fn only_thoughts_in_front_are_parted() {
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
            let letters: Vec<String> = whole.chars().map(String::from).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            prop_assert_eq!(split(&pieces), split(&[&whole]));
            prop_assert_eq!(split(&letters), split(&[&whole]));
        }
    }
}
