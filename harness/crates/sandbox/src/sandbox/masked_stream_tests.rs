//! Tests of host names that are masked in streamed output.

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
fn stream_buffers_only_possible_name_prefixes() {
    let names = names(&[("/srv/home/t1", "/mnt/user-data")]);
    let mut stream = MaskedStream::default();
    for (bytes, passed) in [
        (&b"one\ntwo "[..], "one\ntwo "),
        (b"50%", "50%"),
        // A letter may be part of a word before a host path, and no host path contains
        // consecutive dots.
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

/// Folder names where one may be a prefix of another, or contain a space or a line break.
fn any_names() -> impl Strategy<Value = HostNames> {
    let path = || "(/[ab. \nä]{1,3}){1,3}";
    prop::collection::vec((path(), prop_oneof![Just("/v/w".to_owned()), path()]), 1..4)
        .prop_map(HostNames::new)
}

/// Output full of folder names and near misses.
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
    fn stream_output_equals_masked_whole_for_any_chunking(
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
