//! Names of custom skills.

/// Maximum length of a custom skill's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Reports whether a text is a valid name of a custom skill: lower-case letters, digits and single
/// hyphens between them.
pub fn is_skill_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let hyphens_stand_between =
        !text.starts_with('-') && !text.ends_with('-') && !text.contains("--");
    !text.is_empty()
        && text.len() <= MAX_NAME_CHARS
        && text.bytes().all(is_plain)
        && hyphens_stand_between
}
