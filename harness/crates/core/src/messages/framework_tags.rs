//! Tags that mark the framework's text for a model, and the neutralisation of such tags in
//! untrusted text.

use std::borrow::Cow;

use super::folded::Folded;
use super::marks::{BEGIN_USER_INPUT, END_USER_INPUT};

/// Tags of the framework and of providers' prompt templates, lower-case.
const RESERVED: &[&str] = &[
    "system",
    "system-reminder",
    "system_reminder",
    "system-prompt",
    "system_prompt",
    "instruction",
    "instructions",
    "function_calls",
    "function_results",
    "tool_call",
    "tool_result",
    "invoke",
    "think",
    "thinking",
    "thinking_style",
    "soul",
    "self_update",
    "memory",
    "current_date",
    "durable_context",
    "conversation_summary",
    "uploaded_files",
    "current_uploads",
    "skill_system",
    "available_skills",
    "slash_skill_activation",
    "subagent_system",
    "clarification_system",
    "working_directory",
    "response_style",
    "citations",
    "critical_reminders",
    "available-deferred-tools",
    "mcp_routing_hints",
    "todo_list_system",
    "delegations",
    "start_of_turn",
    "end_of_turn",
];

/// Tags of the same kind that are also common identifiers in code: reserved only in all lower or all
/// upper case, without spaces, and not as a generic argument.
const NOUNS: &[&str] = &[
    "important",
    "developer",
    "assistant",
    "human",
    "user",
    "tool",
    "role",
    "skill",
    "skills",
];

/// Tokens that prompt templates write in square brackets, case-sensitive.
const BRACKETED: &[&str] = &[
    "INST",
    "SYSTEM_PROMPT",
    "AVAILABLE_TOOLS",
    "TOOL_CALLS",
    "TOOL_RESULTS",
];

/// Maximum bytes after a name that are searched for the end of a tag, and maximum characters of a
/// name between bars.
const MAX_TAG_BYTES: usize = 4 * 1024;
const MAX_TOKEN_CHARS: usize = 64;

/// Neutralises reserved tags, template tokens and boundary markers in a text, even if invisible or
/// look-alike characters disguise them; the rest is unchanged.
pub fn neutralised(text: &str) -> Cow<'_, str> {
    let folded = Folded::of(text);
    let read = folded.read();
    // Every tag, token and marker begins with one of these, so a text without them is searched once.
    if !read.bytes().any(|byte| matches!(byte, b'<' | b'[' | b'-')) {
        return Cow::Borrowed(text);
    }
    let mut parts = Vec::new();
    for (mark, plain) in [
        (BEGIN_USER_INPUT, "[BEGIN USER INPUT]"),
        (END_USER_INPUT, "[END USER INPUT]"),
    ] {
        parts.extend(
            read.match_indices(mark)
                .map(|(at, _)| (at..at + mark.len(), plain)),
        );
    }
    let bracketed = read
        .match_indices('[')
        .filter(|(at, _)| begins_bracketed(&read[at + 1..]));
    parts.extend(bracketed.map(|(at, _)| (at..at + 1, "&#91;")));
    for (at, _) in read.match_indices('<') {
        let inside = &read[at + 1..];
        if !is_token(inside) && !is_reserved(&read[..at], inside) {
            continue;
        }
        parts.push((at..at + 1, "&lt;"));
        // End of the tag, if it has one; another `<` starts a new tag.
        if let Some(end) = inside
            .find(['<', '>'])
            .filter(|end| inside.as_bytes()[*end] == b'>')
        {
            parts.push((at + 1 + end..at + 2 + end, "&gt;"));
        }
    }
    folded.replaced(parts)
}

/// Reports whether a template token follows a `[`.
fn begins_bracketed(inside: &str) -> bool {
    let word = inside.strip_prefix('/').unwrap_or(inside);
    BRACKETED.iter().any(|known| {
        word.strip_prefix(known)
            .is_some_and(|rest| rest.starts_with(']'))
    })
}

/// Reports whether a template token follows a `<`: a name between bars, as in `<|im_start|>`.
fn is_token(inside: &str) -> bool {
    let is_name_char =
        |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-' | '\u{2581}');
    let Some(name) = inside.strip_prefix('|') else {
        return false;
    };
    let name_chars = name
        .chars()
        .take(MAX_TOKEN_CHARS)
        .take_while(|ch| is_name_char(*ch));
    let length: usize = name_chars.map(char::len_utf8).sum();
    length > 0 && name[length..].starts_with("|>")
}

/// Reports whether a reserved name follows, as an opening or a closing tag, complete or truncated.
fn is_reserved(before: &str, inside: &str) -> bool {
    let tag = inside.trim_start();
    let name = tag.trim_start_matches('/').trim_start();
    let end = name
        .find(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '_' || ch == '-'))
        .unwrap_or(name.len());
    let (name, after) = name.split_at(end);
    if !after
        .chars()
        .next()
        .is_none_or(|ch| ch == '>' || ch == '/' || ch.is_whitespace())
    {
        return false;
    }
    // `a < memory` is a comparison; so a tag with a space before its name counts only if it is
    // closed on the same line.
    let is_tight = tag.len() == inside.len();
    let is_closing = tag.starts_with('/');
    let closes = || {
        is_closing
            || after
                .bytes()
                .take(MAX_TAG_BYTES)
                .take_while(|byte| *byte != b'\n')
                .any(|byte| byte == b'>')
    };
    let is_generic =
        || !is_closing && before.ends_with(|ch: char| ch.is_alphanumeric() || ch == '_');
    let is_upper_case = !name.bytes().any(|ch| ch.is_ascii_lowercase());
    let is_known = |noun: &&str| name == *noun || is_upper_case && name.eq_ignore_ascii_case(noun);
    let is_noun = is_tight && NOUNS.iter().any(is_known) && !is_generic();
    let is_of_template = name == "SYS" && before.ends_with('<');
    is_noun
        || is_of_template
        || ((is_tight || closes())
            && RESERVED
                .iter()
                .any(|reserved| name.eq_ignore_ascii_case(reserved)))
}

#[cfg(test)]
#[path = "framework_tags_tests.rs"]
mod tests;
