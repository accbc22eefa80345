//! Promises of the splitter for random answers.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::escape::visible_html;
use super::*;
use crate::testkit::{Kinds, Numbers, answer};

const DIALECTS: [Dialect; 7] = [
    Dialect::Plain,
    Dialect::TelegramHtml,
    Dialect::SlackMrkdwn,
    Dialect::FeishuCard,
    Dialect::Discord,
    Dialect::DingTalk,
    Dialect::WeCom,
];
const UNITS: [LengthUnit; 3] = [
    LengthUnit::Utf16,
    LengthUnit::Utf8Bytes,
    LengthUnit::JsonBytes,
];

/// Returns what must be equal: no white space, no marks of lists, quotes and tables, no separators.
fn essence(text: &str) -> Vec<char> {
    text.chars()
        .filter(|character| is_visible(*character))
        .filter(|character| !matches!(character, '>' | '•' | '-' | '|' | '+' | '—' | '☐' | '☑'))
        .collect()
}

fn is_subsequence(wanted: &[char], text: &[char]) -> bool {
    let mut found = text.iter();
    wanted
        .iter()
        .all(|wanted| found.any(|found| found == wanted))
}

fn reference(markdown: &str) -> Vec<char> {
    let limit = TextLimit {
        unit: LengthUnit::Utf8Bytes,
        max: usize::MAX / 4,
    };
    let whole = parts(markdown, Dialect::Plain, limit);
    essence(
        &whole
            .iter()
            .map(|part| part.plain.as_str())
            .collect::<String>(),
    )
}

/// Panics unless tags are known, closed in order and not within code.
fn check_html(html: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        let end = begin + rest[begin..].find('>').expect("end of a tag");
        let tag = &rest[begin + 1..end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{html}");
        } else {
            let name = tag.split(' ').next().unwrap_or_default().to_owned();
            assert!(
                ["b", "i", "s", "a", "code", "pre", "blockquote"].contains(&name.as_str()),
                "{name}"
            );
            let outer = open.last().map(String::as_str);
            assert_ne!(outer, Some("code"), "{html}");
            assert!(outer != Some("pre") || name == "code", "{html}");
            assert!(!open.contains(&name), "{html}");
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{html}");
}

/// Panics if a part holds what the platform reads as a mention.
fn check_mentions(part: &Part, dialect: Dialect) {
    let Part { markup, plain } = part;
    match dialect {
        Dialect::SlackMrkdwn => {
            for (at, _) in markup.match_indices('<') {
                let rest = markup[at + 1..].to_ascii_lowercase();
                assert!(
                    rest.starts_with("http") || rest.starts_with("mailto:"),
                    "{markup}"
                );
            }
            assert!(
                ["<!", "<@", "<#"].iter().all(|mark| !plain.contains(mark)),
                "{plain}"
            );
        }
        Dialect::FeishuCard => {
            for text in [markup, plain] {
                assert!(!text.to_ascii_lowercase().contains("<at"), "{text}");
            }
        }
        Dialect::WeCom => assert!(!markup.contains("<@") && !plain.contains("<@"), "{markup}"),
        _ => {}
    }
}

fn check(markdown: &str, dialect: Dialect, limit: TextLimit, kinds: Kinds) {
    let rendered = parts(markdown, dialect, limit);
    let mut plain = String::new();
    let mut markup = String::new();
    for part in &rendered {
        let length = counted_length(&part.markup, dialect, limit.unit);
        assert!(length <= limit.max, "{length} > {limit:?}: {}", part.markup);
        assert!(
            limit.unit.length(&part.plain) <= limit.max,
            "{}",
            part.plain
        );
        assert!(!part.markup.trim().is_empty());
        if dialect == Dialect::TelegramHtml {
            check_html(&part.markup);
        } else if dialect != Dialect::Plain {
            let fences = part.markup.matches("```").count();
            assert_eq!(fences % 2, 0, "{}", part.markup);
            assert!(
                fences == 0 || dialect != Dialect::DingTalk,
                "{}",
                part.markup
            );
        }
        plain.push_str(&part.plain);
        markup.push_str(&part.markup);
        markup.push('\n');
    }
    let wanted = reference(markdown);
    if !kinds.tables {
        assert_eq!(essence(&plain), wanted, "{dialect:?} {limit:?}");
    } else if dialect != Dialect::DingTalk {
        assert!(is_subsequence(&wanted, &essence(&plain)), "{dialect:?}");
    }
    if !kinds.tables && !kinds.links {
        let letters = |text: &[char]| -> Vec<char> {
            text.iter()
                .copied()
                .filter(|c| c.is_alphanumeric())
                .collect()
        };
        let shown = match dialect {
            Dialect::TelegramHtml => visible_html(&markup),
            _ => markup,
        };
        assert!(
            is_subsequence(&letters(&wanted), &letters(&essence(&shown))),
            "{dialect:?} {limit:?}"
        );
    }
    let shown = preview(markdown, dialect, limit);
    assert!(counted_length(&shown, dialect, limit.unit) <= limit.max);
    assert_eq!(shown.is_empty(), rendered.is_empty());
    let end = ending(markdown, dialect, limit);
    assert_eq!(end.is_none(), rendered.is_empty());
    let end = end.map_or_else(String::new, |end| end.markup);
    assert!(counted_length(&end, dialect, limit.unit) <= limit.max);
    if dialect == Dialect::TelegramHtml {
        check_html(&shown);
        check_html(&end);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn parts_keep_text_and_limits_for_answers(
        seed: u64,
        length in 0_usize..6_000,
        max in 40_usize..5_000,
        unit in 0_usize..3,
        links: bool,
        tables: bool,
    ) {
        let kinds = Kinds { links, tables };
        let markdown = answer(seed, length, kinds);
        let limit = TextLimit { unit: UNITS[unit], max };
        for dialect in DIALECTS {
            check(&markdown, dialect, limit, kinds);
        }
    }

    #[test]
    fn parts_keep_limits_for_any_text(
        markdown in r"(<at|<!|<@|@a|[`*_~#>|\[\]()<>&!@\\\-+0-9.: \n\t\r]|\PC|https://a\.b|```|\n\|-\|-\|\n){0,300}",
        max in 40_usize..300,
        unit in 0_usize..3,
    ) {
        let limit = TextLimit { unit: UNITS[unit], max };
        for dialect in DIALECTS {
            for part in parts(&markdown, dialect, limit) {
                prop_assert!(counted_length(&part.markup, dialect, limit.unit) <= max);
                prop_assert!(limit.unit.length(&part.plain) <= max);
                if dialect == Dialect::TelegramHtml {
                    check_html(&part.markup);
                }
                check_mentions(&part, dialect);
            }
            let shown = preview(&markdown, dialect, limit);
            prop_assert!(counted_length(&shown, dialect, limit.unit) <= max);
            if let Some(end) = ending(&markdown, dialect, limit) {
                prop_assert!(counted_length(&end.markup, dialect, limit.unit) <= max);
                if dialect == Dialect::TelegramHtml {
                    check_html(&end.markup);
                }
                check_mentions(&end, dialect);
            }
        }
    }
}

/// `MARKUP_ANSWERS` raises the number of answers.
#[test]
fn parts_keep_text_for_answers_of_every_length() {
    let count = option_env!("MARKUP_ANSWERS").and_then(|count| count.parse().ok());
    for seed in 0..count.unwrap_or(1_000_u64) {
        let mut numbers = Numbers::new(seed);
        let largest = [200, 2_000, 5_000, 20_000][numbers.below(4)];
        let largest = if seed % 100 == 0 { 200_000 } else { largest };
        let kinds = Kinds {
            links: numbers.below(2) == 0,
            tables: numbers.below(2) == 0,
        };
        let markdown = answer(seed, numbers.below(largest), kinds);
        let dialect = DIALECTS[numbers.below(DIALECTS.len())];
        let limit = TextLimit {
            unit: UNITS[numbers.below(3)],
            max: [400, 2_000, 4_096, 20_480, 28_000][numbers.below(5)],
        };
        check(&markdown, dialect, limit, kinds);
    }
}

#[test]
fn parts_of_hostile_texts_take_linear_time() {
    let limit = TextLimit {
        unit: LengthUnit::Utf16,
        max: 4_096,
    };
    let size = 200_000;
    let hostile = [
        ">".repeat(size),
        "> ".repeat(size / 2),
        "- ".repeat(size / 2),
        "(".repeat(size),
        "[".repeat(size),
        "![".repeat(size / 2),
        "*a ".repeat(size / 3),
        "**a _b ".repeat(size / 7),
        "`".repeat(size),
        "x".repeat(size),
        "\u{301}".repeat(size / 2),
        "🇩🇪".repeat(size / 8),
        "a\n".repeat(size / 2),
        format!("|{}|b|\n|-|-|\n", "x".repeat(size / 2)) + &"|y|\n".repeat(size / 8),
        format!("|{}\n|{}\n", "a|".repeat(size / 8), "-|".repeat(size / 8))
            + &"|x\n".repeat(size / 8),
        "> ".repeat(31) + &"a\n".repeat(size / 2),
        format!("|{}\n|{}\n", "a|".repeat(500), "-|".repeat(500)) + &"|x\n".repeat(500),
        format!("[{}](https://a.b)", "x".repeat(size)),
        answer(
            1,
            size,
            Kinds {
                links: true,
                tables: true,
            },
        ),
    ];
    for text in &hostile {
        for dialect in [
            Dialect::TelegramHtml,
            Dialect::SlackMrkdwn,
            Dialect::DingTalk,
        ] {
            let started = Instant::now();
            let rendered = parts(text, dialect, limit);
            let taken = started.elapsed();
            let begin: String = text.chars().take(20).collect();
            assert!(taken < Duration::from_secs(20), "{begin}: {taken:?}");
            assert!(rendered.len() < 20_000, "{begin}");
        }
    }
}
