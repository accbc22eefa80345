//! Form of each dialect, and the places where texts are split.

use super::*;

fn limit(max: usize) -> TextLimit {
    TextLimit {
        unit: LengthUnit::Utf8Bytes,
        max,
    }
}

fn markup(markdown: &str, dialect: Dialect) -> String {
    let rendered = parts(markdown, dialect, limit(10_000));
    assert_eq!(rendered.len(), 1, "{markdown}");
    rendered[0].markup.clone()
}

fn split(markdown: &str, dialect: Dialect, max: usize) -> Vec<String> {
    let rendered = parts(markdown, dialect, limit(max));
    rendered.into_iter().map(|part| part.markup).collect()
}

const DOCUMENT: &str = "# Title `x`\n\nSome **bold**, *italic* and ~~old~~ text <b>&</b>.\n\n\
- one\n- two [link](https://a.b/?x=1&y=(2))\n  1. inner\n\n> quote\n\n```rust\nlet a = 1 < 2;\n```";

#[test]
fn telegram_html_uses_its_tags() {
    assert_eq!(
        markup(DOCUMENT, Dialect::TelegramHtml),
        "<b>Title</b> <code>x</code>\n\nSome <b>bold</b>, <i>italic</i> and <s>old</s> text \
         &lt;b&gt;&amp;&lt;/b&gt;.\n\n• one\n• two <a href=\"https://a.b/?x=1&amp;y=(2)\">link</a>\n  \
         1. inner\n\n<blockquote>quote</blockquote>\n\n\
         <pre><code class=\"language-rust\">let a = 1 &lt; 2;</code></pre>"
    );
}

#[test]
fn slack_mrkdwn_escapes_and_marks() {
    assert_eq!(
        markup(DOCUMENT, Dialect::SlackMrkdwn),
        "*Title `x`*\n\nSome *bold*, _italic_ and ~old~ text &lt;b&gt;&amp;&lt;/b&gt;.\n\n\
         • one\n• two <https://a.b/?x=1&amp;y=(2)|link>\n  1. inner\n\n> quote\n\n\
         ```\nlet a = 1 &lt; 2;\n```"
    );
}

#[test]
fn markdown_dialects_keep_markdown() {
    assert_eq!(
        markup(DOCUMENT, Dialect::Discord),
        "# Title `x`\n\nSome **bold**, *italic* and ~~old~~ text <b>&</b>.\n\n\
         - one\n- two [link](https://a.b/?x=1&y=%282%29)\n  1. inner\n\n> quote\n\n\
         ```rust\nlet a = 1 < 2;\n```"
    );
    assert_eq!(
        markup(DOCUMENT, Dialect::FeishuCard),
        "**Title `x`**\n\nSome **bold**, *italic* and ~~old~~ text &#60;b>&&#60;/b>.\n\n\
         - one\n- two [link](https://a.b/?x=1&y=%282%29)\n  1. inner\n\n> quote\n\n\
         ```rust\nlet a = 1 < 2;\n```"
    );
    assert_eq!(
        markup(DOCUMENT, Dialect::WeCom),
        "# Title `x`\n\nSome **bold**, italic and old text <b>&</b>.\n\n\
         - one\n- two [link](https://a.b/?x=1&y=%282%29)\n  1. inner\n\n> quote\n\n\
         ```rust\nlet a = 1 < 2;\n```"
    );
    assert_eq!(
        markup(DOCUMENT, Dialect::DingTalk),
        "# Title **x**\n\nSome **bold**, *italic* and old text <b>&</b>.\n\n\
         - one  \n- two [link](https://a.b/?x=1&y=%282%29)  \n  1. inner\n\n> quote\n\n\
         > let a = 1 < 2;"
    );
}

#[test]
fn plain_text_names_addresses() {
    assert_eq!(
        markup(DOCUMENT, Dialect::Plain),
        "Title x\n\nSome bold, italic and old text <b>&</b>.\n\n\
         • one\n• two link (https://a.b/?x=1&y=(2))\n  1. inner\n\n> quote\n\nlet a = 1 < 2;"
    );
}

#[test]
fn tables_become_code_or_quoted_lines() {
    let table = "| Name | Größe |\n|---|---|\n| a | 1 |\n| 名前 | 22 |";
    assert_eq!(
        markup(table, Dialect::Discord),
        "```\nName | Größe\n-----+------\na    | 1\n名前 | 22\n```"
    );
    assert_eq!(
        markup(table, Dialect::DingTalk),
        "> **Name**: a  \n> **Größe**: 1\n> \n> **Name**: 名前  \n> **Größe**: 22"
    );
}

#[test]
fn mentions_of_a_model_are_not_mentions() {
    let text = "Hi <!channel> <@U1> &lt;!here&gt; @everyone <at id=all></at> `<at id=all></at>` @bob a@b.de";
    let slack = markup(text, Dialect::SlackMrkdwn);
    assert!(slack.starts_with("Hi &lt;!channel&gt; &lt;@U1&gt; &lt;!here&gt; @everyone &lt;at"));
    let feishu = markup(text, Dialect::FeishuCard);
    assert!(
        !feishu.contains("<at") && !feishu.contains("</at"),
        "{feishu}"
    );
    let telegram = markup(text, Dialect::TelegramHtml);
    assert!(telegram.ends_with("@\u{2060}bob a@b.de"), "{telegram}");
    let discord = markup("@everyone <@123> <:my_emoji:1>", Dialect::Discord);
    assert_eq!(discord, "@everyone <@123> <:my_emoji:1>");
    assert!(!markup("<@zhang>", Dialect::WeCom).contains("<@"));
    for dialect in [Dialect::SlackMrkdwn, Dialect::FeishuCard, Dialect::WeCom] {
        let plain = &parts(text, dialect, limit(5_000))[0].plain;
        for mention in ["<!", "<at", "<@"] {
            let is_allowed = match dialect {
                Dialect::FeishuCard => mention != "<at",
                Dialect::WeCom => mention != "<@",
                _ => mention == "<at",
            };
            assert!(is_allowed || !plain.contains(mention), "{plain}");
        }
    }
}

#[test]
fn unsafe_links_become_text() {
    let text = "[a](javascript:x) [b](tg://user?id=1) [c](/d) <https://e.f> [g](mailto:h@i.j)";
    assert_eq!(
        markup(text, Dialect::TelegramHtml),
        "a (javascript:x) b (tg://user?id=1) c (/d) <a href=\"https://e.f\">https://e.f</a> \
         <a href=\"mailto:h@i.j\">g</a>"
    );
    assert_eq!(
        markup("[x|y>](https://a.b/|<!here>)", Dialect::SlackMrkdwn),
        "<https://a.b/%7C%3C!here%3E|x|y&gt;>"
    );
}

#[test]
fn literal_marks_are_escaped() {
    let text = "\\*a\\* snake_case \\# b\n\n\\# c\n\n1\\. d\n\nhttps://x.y/a_b_c";
    assert_eq!(
        markup(text, Dialect::Discord),
        "\\*a\\* snake\\_case # b\n\n\\# c\n\n1\\. d\n\nhttps://x.y/a_b_c"
    );
    assert_eq!(
        markup(text, Dialect::FeishuCard),
        "&#42;a&#42; snake_case # b\n\n&#35; c\n\n1&#46; d\n\nhttps://x.y/a_b_c"
    );
    let fence = markup("~~~\n```\ncode\n```\n~~~", Dialect::Discord);
    assert_eq!(fence.matches("```").count(), 2, "{fence}");
}

#[test]
fn slack_marks_are_separated_from_letters() {
    assert_eq!(
        markup("这是**重点**内容 and pre**mid**post", Dialect::SlackMrkdwn),
        "这是\u{200b}*重点*\u{200b}内容 and pre\u{200b}*mid*\u{200b}post"
    );
}

#[test]
fn empty_documents_have_no_parts() {
    for text in ["", " \n\n ", "\u{200b}", "```\n\n```", "- ", "[](<>)"] {
        let rendered = parts(text, Dialect::TelegramHtml, limit(100));
        assert!(
            rendered.iter().all(|part| part.plain == "•"),
            "{rendered:?}"
        );
        assert!(!preview(text, Dialect::TelegramHtml, limit(100)).contains('…'));
    }
}

#[test]
fn blocks_that_fit_are_not_split() {
    let text = format!("{}\n\n{}", "first ".repeat(10), "second ".repeat(10));
    let rendered = split(&text, Dialect::TelegramHtml, 100);
    assert_eq!(rendered.len(), 2);
    assert!(rendered[0].ends_with("first") && rendered[1].starts_with("second"));
    let heading = format!("{}\n\n# H\n\n{}", "first ".repeat(10), "second ".repeat(10));
    let rendered = split(&heading, Dialect::TelegramHtml, 100);
    assert!(
        rendered[1].starts_with("<b>H</b>\n\nsecond"),
        "{rendered:?}"
    );
}

#[test]
fn split_code_is_closed_and_reopened() {
    let text = format!("```rust\n{}```", "let value = 1;\n".repeat(12));
    let rendered = split(&text, Dialect::Discord, 100);
    assert!(rendered.len() > 1);
    for part in &rendered {
        assert!(part.starts_with("```rust\nlet value"), "{part}");
        assert!(part.ends_with("= 1;\n```"), "{part}");
    }
}

#[test]
fn split_tables_repeat_their_head() {
    let text = format!(
        "| A | B |\n|---|---|\n{}",
        "| cell one | cell two |\n".repeat(20)
    );
    let rendered = split(&text, Dialect::SlackMrkdwn, 200);
    assert!(rendered.len() > 1);
    for part in &rendered {
        assert!(part.starts_with("```\nA        | B\n"), "{part}");
    }
}

#[test]
fn split_quotes_and_styles_continue() {
    let text = format!("> **{}**", "word ".repeat(40).trim());
    for part in split(&text, Dialect::Discord, 80) {
        assert!(
            part.starts_with("> **word") && part.ends_with("word**"),
            "{part}"
        );
    }
    for part in split(&text, Dialect::TelegramHtml, 80) {
        assert!(part.starts_with("<blockquote><b>word"), "{part}");
        assert!(part.ends_with("word</b></blockquote>"), "{part}");
    }
}

#[test]
fn paragraphs_of_a_quote_stay_together() {
    let text = "> a\n>\n> b\n\nc";
    assert_eq!(markup(text, Dialect::Discord), "> a\n> \n> b\n\nc");
    assert_eq!(
        markup(text, Dialect::TelegramHtml),
        "<blockquote>a\n\nb</blockquote>\n\nc"
    );
}

#[test]
fn long_words_are_split_between_clusters() {
    let family = "👩‍👩‍👧‍👦";
    for part in split(&family.repeat(50), Dialect::TelegramHtml, 90) {
        assert_eq!(part.replace(family, ""), "");
    }
}

#[test]
fn preview_is_cut_with_closed_formatting() {
    let text = format!("```\n{}\n```", "line of code\n".repeat(50));
    let shown = preview(&text, Dialect::TelegramHtml, limit(100));
    assert!(shown.ends_with("line of code</pre>\n…"), "{shown}");
    assert!(counted_length(&shown, Dialect::TelegramHtml, LengthUnit::Utf8Bytes) <= 100);
    assert_eq!(preview("a **b", Dialect::Discord, limit(100)), "a \\*\\*b");
}

#[test]
fn telegram_limit_counts_visible_utf16_units() {
    let text = "😀".repeat(2_100);
    let limit = TextLimit {
        unit: LengthUnit::Utf16,
        max: 4_096,
    };
    assert_eq!(parts(&text, Dialect::TelegramHtml, limit).len(), 2);
    let bold = "**a** ".repeat(2_000);
    assert_eq!(parts(&bold, Dialect::TelegramHtml, limit).len(), 1);
}

#[test]
fn neutral_marks_count_for_the_limit() {
    let limit = TextLimit {
        unit: LengthUnit::Utf8Bytes,
        max: 40,
    };
    for part in parts(
        "https://a.b`````````https://a.b🌀<at",
        Dialect::Discord,
        limit,
    ) {
        assert!(part.markup.len() <= limit.max, "{part:?}");
    }
}
