//! The text of bytes from the web: a byte order mark, the header, the page's own word, and then the usual. Pure.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its own word is looked for, in bytes.
const DECLARED_WITHIN: usize = 2_048;

/// Decodes `bytes` that came with this content type. What cannot be decoded becomes a replacement character.
pub(super) fn decoded(bytes: &[u8], content_type: &str) -> String {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding
            .decode_without_bom_handling(&bytes[mark..])
            .0
            .into_owned();
    }
    let named = label_in(content_type).or_else(|| {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARED_WITHIN)]);
        label_in(&head)
    });
    match named {
        // What was read as ASCII so far is neither of these, whatever it says.
        Some(encoding)
            if encoding != encoding_rs::UTF_16LE && encoding != encoding_rs::UTF_16BE =>
        {
            encoding.decode(bytes).0.into_owned()
        }
        _ if std::str::from_utf8(bytes).is_ok() => UTF_8.decode(bytes).0.into_owned(),
        // A page that was cut in the middle of a character is UTF-8 all the same.
        _ if is_cut_utf8(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => WINDOWS_1252.decode(bytes).0.into_owned(),
    }
}

/// The encoding that stands behind `charset=` or, in XML, `encoding=`.
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

/// Whether all but the last bytes is UTF-8, and not by being ASCII.
fn is_cut_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_err_and(|error| error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
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
