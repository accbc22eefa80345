//! Masking a text while it comes: what is passed on early, put together, is what masking the whole gives.

use super::masking::HostNames;

/// Bytes that came and are not passed on yet.
#[derive(Debug, Default)]
pub struct MaskedStream {
    held: Vec<u8>,
}

impl MaskedStream {
    /// Takes what comes next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Passes on, masked, what will mean the same whatever comes next. Bytes that are no text become `U+FFFD`.
    pub fn pass(&mut self, names: &HostNames) -> String {
        let whole = self.held.len() - begun_character(&self.held);
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        let cut = last_cut(&text, names);
        let rest = self.held.split_off(whole);
        self.held = [&text.as_bytes()[cut..], &rest].concat();
        names.mask(&text[..cut])
    }

    /// Passes on all the rest: nothing more comes.
    pub fn finish(&mut self, names: &HostNames) -> String {
        names.mask(&String::from_utf8_lossy(&std::mem::take(&mut self.held)))
    }
}

/// How many bytes at the end may be the beginning of a character.
fn begun_character(bytes: &[u8]) -> usize {
    let Some(last) = bytes.utf8_chunks().last() else {
        return 0;
    };
    let odd = last.invalid();
    // What is wrong in itself is not waited for.
    let is_begun = !odd.is_empty()
        && matches!(std::str::from_utf8(odd), Err(error) if error.error_len().is_none());
    if is_begun { odd.len() } else { 0 }
}

/// The last place where the text may be cut, 0 where there is none.
fn last_cut(text: &str, names: &HostNames) -> usize {
    let mut after = None;
    for (at, before) in text.char_indices().rev() {
        if names.may_part(before, after) {
            return at + before.len_utf8();
        }
        after = Some(before);
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(pairs: &[(&str, &str)]) -> HostNames {
        HostNames::new(
            pairs
                .iter()
                .map(|(host, inside)| ((*host).to_owned(), (*inside).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn only_what_may_be_the_beginning_of_a_name_is_waited_for() {
        let names = names(&[("/srv/home/t1", "/mnt/user-data")]);
        let mut stream = MaskedStream::default();
        for (bytes, passed) in [
            (&b"one\ntwo "[..], "one\ntwo "),
            (b"50%", "50%"),
            // A letter may be a part of what ends in a name that comes, and dots of a name do not follow each other.
            (b"....", "..."),
            (b" at /srv/ho", ". at "),
            (b"me/t1", ""),
            (b"0 /srv/home/t1", "/srv/home/t10 "),
            (b"/a.txt\r", "/mnt/user-data/a.txt\r"),
            (b"\xe2\x82", ""),
            (b"\xac \xff \xe2\x82", "\u{20ac} \u{fffd} "),
        ] {
            stream.push(bytes);
            assert_eq!(
                stream.pass(&names),
                passed,
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_eq!(
            (stream.held(), stream.finish(&names).as_str(), stream.held()),
            (2, "\u{fffd}", 0)
        );
    }

    /// Names of folders, where one may be the beginning of another, or have a space or a line's end in it.
    fn any_names() -> impl Strategy<Value = HostNames> {
        let path = || "(/[ab. \nä]{1,3}){1,3}";
        prop::collection::vec((path(), prop_oneof![Just("/v/w".to_owned()), path()]), 1..4)
            .prop_map(HostNames::new)
    }

    /// Output that is full of them, and of what is nearly one.
    fn any_output(names: &HostNames) -> impl Strategy<Value = Vec<Vec<u8>>> + use<> {
        let hosts: Vec<Vec<u8>> = names.hosts().map(|host| host.as_bytes().to_vec()).collect();
        let piece = prop_oneof![
            3 => prop::sample::select(hosts),
            3 => "[ab./: \nä\r\"]{1,4}".prop_map(String::into_bytes),
            1 => Just(b"://".to_vec()),
            1 => prop::collection::vec(any::<u8>(), 1..3),
        ];
        prop::collection::vec(piece, 0..12)
    }

    proptest! {
        #[test]
        fn pieces_put_together_are_the_masked_whole_wherever_the_bytes_are_cut(
            (names, pieces, cuts) in any_names().prop_flat_map(|names| {
                let pieces = any_output(&names);
                (Just(names), pieces, prop::collection::vec(1_usize..9, 0..40))
            })
        ) {
            let output = pieces.concat();
            let mut stream = MaskedStream::default();
            let mut passed = String::new();
            let mut rest = &output[..];
            for cut in cuts {
                let (next, further) = rest.split_at(cut.min(rest.len()));
                rest = further;
                stream.push(next);
                passed.push_str(&stream.pass(&names));
            }
            stream.push(rest);
            passed.push_str(&stream.finish(&names));
            prop_assert_eq!(passed, names.mask(&String::from_utf8_lossy(&output)));
        }
    }
}
