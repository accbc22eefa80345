//! Decodes bytes from the web. The encoding is determined by the byte order mark, the header, the
//! page's own declaration, or a default, in this order. Pure.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of leading bytes that are searched for an encoding declaration.
const MAX_DECLARATION_OFFSET: usize = 2_048;

/// Decodes `bytes` received with this content type. Undecodable bytes become replacement
/// characters.
pub(super) fn decoded(bytes: &[u8], content_type: &str) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding
            .decode_without_bom_handling(&bytes[mark..])
            .0
            .into_owned();
    }
    let named = label_in(content_type).or_else(|| {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_DECLARATION_OFFSET)]);
        label_in(&head)
    });
    match named {
        // The declaration was read as ASCII, so the encoding cannot be UTF-16, whatever the page
        // states.
        Some(encoding)
            if encoding != encoding_rs::UTF_16LE && encoding != encoding_rs::UTF_16BE =>
        {
            encoding.decode(bytes).0.into_owned()
        }
        _ if std::str::from_utf8(bytes).is_ok() => UTF_8.decode(bytes).0.into_owned(),
        // A page that was truncated in the middle of a character is still UTF-8.
        _ if is_cut_utf8(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => WINDOWS_1252.decode(bytes).0.into_owned(),
    }
}

/// Returns the encoding that is named after `charset=` or, in XML, `encoding=`.
fn label_in(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let xml = lower.starts_with("<?xml").then_some("encoding=");
    [Some("charset="), xml]
        .into_iter()
        .flatten()
        .find_map(|key| {
            let rest = lower
                .split_once(key)?
                .1
                .trim_start()
                .trim_start_matches(['"', '\'']);
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c))
                .unwrap_or(rest.len());
            Encoding::for_label(&rest.as_bytes()[..end])
        })
}

/// Reports whether all but the last bytes are UTF-8 with at least one non-ASCII character.
fn is_cut_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_in_its_encoding() {
        let latin = b"caf\xe9";
        assert_eq!(decoded("café".as_bytes(), "text/html"), "café");
        assert_eq!(decoded(latin, "text/html"), "café");
        assert_eq!(decoded(latin, "text/html; charset=ISO-8859-1"), "café");
        assert_eq!(
            decoded(b"\x82\xa0", "text/html; charset=\"Shift_JIS\""),
            "あ"
        );
        assert_eq!(
            decoded(b"<meta charset='gb2312'>\xc4\xe3", ""),
            "<meta charset='gb2312'>你"
        );
        assert_eq!(
            decoded(b"<?xml version='1.0' encoding='euc-kr'?>\xb0\xa1", ""),
            "<?xml version='1.0' encoding='euc-kr'?>가"
        );
        assert_eq!(decoded(b"\xff\xfea\0b\0", "text/html; charset=utf-8"), "ab");
        assert_eq!(decoded(b"\xef\xbb\xbfa", ""), "a");
        assert_eq!(
            decoded(
                "éé".as_bytes().split_last().unwrap().1,
                "text/plain; charset=nonsense"
            ),
            "é\u{fffd}"
        );
        assert_eq!(decoded(b"", "charset="), "");
    }
}
