//! Text of Slack's messages: escapes, mentions and links.

use crate::platform::floor_boundary;

/// Returns a text with Slack's escapes and references undone.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('<') {
            match rest.find('>') {
                Some(end) => {
                    plain.push_str(&reference(&rest[1..end]));
                    rest = &rest[end + 1..];
                }
                None => {
                    plain.push('<');
                    rest = &rest[1..];
                }
            }
        } else {
            let (character, length) = entity(rest);
            plain.push(character);
            rest = &rest[length..];
        }
    }
    plain.push_str(rest);
    plain
}

/// Returns the character of the entity at the start, and its length.
fn entity(text: &str) -> (char, usize) {
    for (entity, character) in [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>')] {
        if text.starts_with(entity) {
            return (character, entity.len());
        }
    }
    ('&', 1)
}

/// Returns the readable form of the inside of `<…>`.
fn reference(inside: &str) -> String {
    let decoded = |text: &str| {
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    };
    let (target, label) = match inside.split_once('|') {
        Some((target, label)) => (decoded(target), Some(decoded(label))),
        None => (decoded(inside), None),
    };
    let label = label.filter(|label| !label.is_empty());
    let named = |sign: &str, id: &str| {
        let name = label.as_deref().unwrap_or(id);
        format!("{sign}{}", name.strip_prefix(sign).unwrap_or(name))
    };
    match target.chars().next() {
        Some('@') => named("@", &target[1..]),
        Some('#') => named("#", &target[1..]),
        Some('!') => match target[1..].split('^').next() {
            Some("date") => label.unwrap_or(target),
            Some("subteam") => named("@", target.rsplit('^').next().unwrap_or_default()),
            _ => named("@", &target[1..]),
        },
        _ => match label {
            Some(label) if target == label || target.ends_with(&format!(":{label}")) => label,
            Some(label) if target.ends_with(&format!("//{label}")) => label,
            Some(label) => format!("{label} ({target})"),
            None => target,
        },
    }
}

/// Returns `true` if a raw text names the user.
pub(super) fn mentions(text: &str, user: &str) -> bool {
    text.contains(&format!("<@{user}>")) || text.contains(&format!("<@{user}|"))
}

/// Removes the mention of the user with which a raw text begins.
pub(super) fn without_leading_mention<'a>(text: &'a str, user: &str) -> &'a str {
    let rest = text
        .strip_prefix("<@")
        .and_then(|rest| rest.strip_prefix(user))
        .and_then(|rest| match rest.as_bytes().first() {
            Some(b'>') => Some(&rest[1..]),
            Some(b'|') => rest.split_once('>').map(|(_, rest)| rest),
            _ => None,
        });
    match rest {
        Some(rest) => rest.strip_prefix([':', ',']).unwrap_or(rest).trim_start(),
        None => text,
    }
}

/// Escapes the three special characters.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns a prefix of at most `max` bytes.
pub(super) fn prefix(text: &str, max: usize) -> &str {
    &text[..floor_boundary(text, max)]
}

/// Returns Markdown in which nothing notifies a person or a channel: the `<` of `<!`, `<@` and
/// `<#` is escaped. With `is_growing`, a `<` at the end waits for the next character.
pub(super) fn without_notifications(markdown: &str, is_growing: bool) -> String {
    let markdown = if is_growing {
        markdown.strip_suffix('<').unwrap_or(markdown)
    } else {
        markdown
    };
    markdown
        .replace("<!", "&lt;!")
        .replace("<@", "&lt;@")
        .replace("<#", "&lt;#")
}

/// Returns `true` for a timestamp of a message.
pub(super) fn is_timestamp(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 24
        && text
            .split_once('.')
            .is_some_and(|(seconds, fraction)| digits(seconds) && digits(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_references_are_undone() {
        let cases = [
            ("a &amp;&lt;b&gt; &amp;amp; &x &", "a &<b> &amp; &x &"),
            ("hi <@U2> and <@U3|ann>", "hi @U2 and @ann"),
            ("in <#C1|general> or <#C2>", "in #general or #C2"),
            (
                "<https://x.example/?a=1&amp;b=2>",
                "https://x.example/?a=1&b=2",
            ),
            (
                "<https://x.example|the page>",
                "the page (https://x.example)",
            ),
            ("<http://x.example|x.example>", "x.example"),
            ("<mailto:a@x.example|a@x.example>", "a@x.example"),
            ("<!here> <!channel|channel>", "@here @channel"),
            ("<!subteam^S1|@team> <!subteam^S2>", "@team @S2"),
            ("<!date^1^{date}|today>", "today"),
            ("1 < 2 <", "1 < 2 <"),
            ("", ""),
            ("<>", ""),
        ];
        for (raw, expected) in cases {
            assert_eq!(unescape(raw), expected, "{raw}");
        }
    }

    #[test]
    fn only_the_flush_mention_of_the_bot_is_removed() {
        let cases = [
            ("<@UBOT> /new", "/new"),
            ("<@UBOT|bot>: hi", "hi"),
            ("<@UBOT>", ""),
            ("<@UBOTTLE> hi", "<@UBOTTLE> hi"),
            ("hi <@UBOT>", "hi <@UBOT>"),
            (" <@UBOT> /new", " <@UBOT> /new"),
            ("<@UBOT|", "<@UBOT|"),
        ];
        for (raw, expected) in cases {
            assert_eq!(without_leading_mention(raw, "UBOT"), expected, "{raw}");
        }
    }

    #[test]
    fn streamed_markdown_notifies_no_one() {
        assert_eq!(
            without_notifications("<!channel> <@U1>", false),
            "&lt;!channel> &lt;@U1>"
        );
        assert_eq!(without_notifications("a <", true), "a ");
        assert_eq!(without_notifications("a <", false), "a <");
        assert_eq!(without_notifications("a < b", true), "a < b");
    }

    #[test]
    fn timestamps_are_two_numbers() {
        assert!(is_timestamp("1763870000.000100"));
        for text in [
            "",
            ".",
            "1.",
            "1",
            "1.a",
            "press:1.2",
            "-1.0",
            "1.0000000000000000000000000",
        ] {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
