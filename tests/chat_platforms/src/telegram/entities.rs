//! Formatted texts: the HTML of the Bot API, lengths in UTF-16 units, and detected entities.

use serde_json::{Value, json};

/// Maximum length of a text after entities are parsed, in UTF-16 units.
pub(super) const MAX_TEXT: usize = 4096;

/// Tags that the Bot API knows, with the type of their entity.
const TAGS: &[(&str, &str)] = &[
    ("b", "bold"),
    ("strong", "bold"),
    ("i", "italic"),
    ("em", "italic"),
    ("u", "underline"),
    ("ins", "underline"),
    ("s", "strikethrough"),
    ("strike", "strikethrough"),
    ("del", "strikethrough"),
    ("span", "spoiler"),
    ("tg-spoiler", "spoiler"),
    ("tg-emoji", "custom_emoji"),
    ("a", "text_link"),
    ("code", "code"),
    ("pre", "pre"),
    ("blockquote", "blockquote"),
];

/// Text with entities.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Formatted {
    pub(super) text: String,
    pub(super) entities: Vec<Value>,
}

/// Returns the length of a text in UTF-16 units.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

struct OpenTag {
    name: String,
    attribute: Option<String>,
    start: usize,
}

/// Parses the HTML of the Bot API, or returns the problem in its words.
pub(super) fn parse_html(source: &str) -> Result<Formatted, String> {
    let mut result = Formatted::default();
    let mut open: Vec<OpenTag> = Vec::new();
    let mut at = 0;
    while let Some(character) = source[at..].chars().next() {
        match character {
            '&' => {
                let (decoded, length) = reference(&source[at..]);
                result.text.push(decoded);
                at += length;
            }
            '<' if source[at..].starts_with("</") => {
                let length = source[at..]
                    .find('>')
                    .ok_or_else(|| format!("Unclosed end tag at byte offset {at}"))?;
                let found = source[at + 2..at + length].trim().to_lowercase();
                let tag = open
                    .pop()
                    .ok_or_else(|| format!("Unexpected end tag at byte offset {at}"))?;
                if !found.is_empty() && found != tag.name {
                    return Err(format!(
                        "Unmatched end tag at byte offset {at}, expected \"</{}>\", found \
                         \"</{found}>\"",
                        tag.name
                    ));
                }
                close(&mut result, tag);
                at += length + 1;
            }
            '<' => {
                let length = source[at..]
                    .find('>')
                    .ok_or_else(|| format!("Unclosed start tag at byte offset {at}"))?;
                let tag = start_tag(&source[at + 1..at + length], at, units(&result.text))?;
                open.push(tag);
                at += length + 1;
            }
            other => {
                result.text.push(other);
                at += other.len_utf8();
            }
        }
    }
    match open.pop() {
        Some(tag) => Err(format!(
            "Can't find end tag corresponding to start tag \"{}\"",
            tag.name
        )),
        None => Ok(result),
    }
}

fn start_tag(inner: &str, at: usize, start: usize) -> Result<OpenTag, String> {
    let name_end = inner.find(char::is_whitespace).unwrap_or(inner.len());
    let name = inner[..name_end].to_lowercase();
    if !TAGS.iter().any(|(known, _)| *known == name) {
        return Err(format!(
            "Unsupported start tag \"{name}\" at byte offset {at}"
        ));
    }
    let attributes = &inner[name_end..];
    let attribute = match name.as_str() {
        "a" => value_of(attributes, "href"),
        "code" => value_of(attributes, "class")
            .and_then(|class| class.strip_prefix("language-").map(str::to_owned)),
        "span" if value_of(attributes, "class").as_deref() != Some("tg-spoiler") => {
            return Err(format!(
                "Tag \"span\" must have class \"tg-spoiler\" at byte offset {at}"
            ));
        }
        _ => None,
    };
    Ok(OpenTag {
        name,
        attribute,
        start,
    })
}

fn value_of(attributes: &str, name: &str) -> Option<String> {
    let after = attributes.split_once(&format!("{name}="))?.1;
    let value = match after.chars().next()? {
        quote @ ('"' | '\'') => after[1..].split(quote).next()?,
        _ => after.split_whitespace().next()?,
    };
    Some(parse_references(value))
}

fn parse_references(text: &str) -> String {
    let mut decoded = String::new();
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let (character, length) = match character {
            '&' => reference(&text[at..]),
            other => (other, other.len_utf8()),
        };
        decoded.push(character);
        at += length;
    }
    decoded
}

/// Decodes a character reference at the start of a text; unknown ones stay as they are.
fn reference(text: &str) -> (char, usize) {
    let Some(end) = text.find(';').filter(|end| *end <= 10) else {
        return ('&', 1);
    };
    let name = &text[1..end];
    let decoded = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        _ => name.strip_prefix('#').and_then(|number| {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|decoded| *decoded != '\0')
        }),
    };
    decoded.map_or(('&', 1), |decoded| (decoded, end + 1))
}

fn close(result: &mut Formatted, tag: OpenTag) {
    let length = units(&result.text) - tag.start;
    if length == 0 {
        return;
    }
    let kind = TAGS
        .iter()
        .find(|(name, _)| *name == tag.name)
        .map_or("", |(_, kind)| kind);
    let mut entity = json!({"type": kind, "offset": tag.start, "length": length});
    match (tag.name.as_str(), tag.attribute) {
        ("a", Some(href)) if href.contains(':') => entity["url"] = Value::String(href),
        // The Bot API drops links without an address.
        ("a", _) => return,
        ("code", Some(language)) => entity["language"] = Value::String(language),
        _ => {}
    }
    result.entities.push(entity);
}

/// Returns the entities that Telegram finds in the text of a person: commands and mentions.
pub(super) fn detect(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut offset = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let name: String = word
            .chars()
            .enumerate()
            .take_while(|(index, character)| {
                character.is_ascii_alphanumeric()
                    || "_@".contains(*character)
                    || (*index == 0 && *character == '/')
            })
            .map(|(_, character)| character)
            .collect();
        let kind = match name.as_bytes() {
            [b'/', _, ..] => Some("bot_command"),
            [b'@', _, ..] => Some("mention"),
            _ => None,
        };
        if let Some(kind) = kind {
            found.push(json!({"type": kind, "offset": offset, "length": name.len()}));
        }
        offset += units(word);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_text_with_entities_in_utf16_units() {
        let parsed = parse_html(
            "😀<b>a &lt; b</b> <a href=\"https://x.y/?a=1&amp;b\">l</a> &nbsp; \
             <pre><code class=\"language-rust\">fn</code></pre>",
        )
        .unwrap();
        assert_eq!(parsed.text, "😀a < b l &nbsp; fn");
        assert_eq!(
            parsed.entities,
            [
                json!({"type": "bold", "offset": 2, "length": 5}),
                json!({"type": "text_link", "offset": 8, "length": 1, "url": "https://x.y/?a=1&b"}),
                json!({"type": "code", "offset": 17, "length": 2, "language": "rust"}),
                json!({"type": "pre", "offset": 17, "length": 2}),
            ]
        );
    }

    #[test]
    fn invalid_html_is_refused_in_the_words_of_the_api() {
        for (source, problem) in [
            (
                "<b>x",
                "Can't find end tag corresponding to start tag \"b\"",
            ),
            ("x</b>", "Unexpected end tag at byte offset 1"),
            (
                "<h1>x</h1>",
                "Unsupported start tag \"h1\" at byte offset 0",
            ),
            (
                "<b><i>x</b></i>",
                "Unmatched end tag at byte offset 7, expected \"</i>\", found \"</b>\"",
            ),
            ("1 < 2", "Unclosed start tag at byte offset 2"),
        ] {
            assert_eq!(parse_html(source).unwrap_err(), problem, "{source}");
        }
    }

    #[test]
    fn commands_and_mentions_are_detected() {
        assert_eq!(
            detect("/new@bot 😀 @a_b, x"),
            [
                json!({"type": "bot_command", "offset": 0, "length": 8}),
                json!({"type": "mention", "offset": 12, "length": 4}),
            ]
        );
    }
}
