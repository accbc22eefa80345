//! Text in pieces.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::MessageBody;

/// Creates the text of a message's form that models receive; `None` if the message has no other
/// form.
pub type Frame = fn(&MessageBody) -> Option<TextPieces<'_>>;

/// Text in pieces, which is serialized as one string without being joined in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPieces<'a>(Vec<Cow<'a, str>>);

impl<'a> TextPieces<'a> {
    /// Creates a text of these pieces, in order.
    pub fn new(pieces: impl IntoIterator<Item = Cow<'a, str>>) -> Self {
        Self(pieces.into_iter().collect())
    }

    /// Returns the text in one buffer of its size.
    pub fn joined(&self) -> String {
        self.0.concat()
    }
}

impl<'a> From<&'a str> for TextPieces<'a> {
    fn from(text: &'a str) -> Self {
        Self::new([text.into()])
    }
}

impl fmt::Display for TextPieces<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|piece| formatter.write_str(piece))
    }
}

impl Serialize for TextPieces<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_serialized_as_the_joined_text() {
        let text = TextPieces::new(["a \"".into(), "".into(), "\u{e9}\n\u{0}".to_owned().into()]);
        assert_eq!(text.joined(), text.to_string());
        let json = serde_json::to_string(&text.joined()).unwrap();
        assert_eq!(serde_json::to_string(&text).unwrap(), json);
    }
}
