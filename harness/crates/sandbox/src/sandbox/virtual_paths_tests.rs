//! Accepted and rejected virtual paths, as tables and as properties.

use proptest::prelude::*;

use super::*;

fn parsed(raw: &str) -> String {
    VirtualPath::parse(raw)
        .map_or_else(|error| format!("refused: {error}"), |path| path.to_string())
}

#[test]
fn parse_accepts_paths_beneath_roots_in_canonical_form() {
    let cases = [
        ("/mnt/user-data/workspace", "/mnt/user-data/workspace"),
        ("/mnt/user-data/workspace/", "/mnt/user-data/workspace"),
        (
            "/mnt/user-data/uploads/a.pdf",
            "/mnt/user-data/uploads/a.pdf",
        ),
        (
            "/mnt/user-data/outputs/x/./y//z/",
            "/mnt/user-data/outputs/x/y/z",
        ),
        (
            "//mnt//user-data/./workspace//a",
            "/mnt/user-data/workspace/a",
        ),
        (
            "/mnt/user-data/workspace/...",
            "/mnt/user-data/workspace/...",
        ),
        (
            "/mnt/user-data/workspace/..a",
            "/mnt/user-data/workspace/..a",
        ),
        (
            "/mnt/user-data/workspace/报告 final.md",
            "/mnt/user-data/workspace/报告 final.md",
        ),
    ];
    for (raw, canonical) in cases {
        assert_eq!(parsed(raw), canonical, "{raw}");
    }
}

#[test]
fn parse_rejects_other_paths_with_specific_reason() {
    let long_name = format!("/mnt/user-data/workspace/{}", "n".repeat(256));
    let long_path = format!("/mnt/user-data/workspace/{}", "d/".repeat(2048));
    let outside = |raw: &str| PathError::OutsideRoots { path: quoted(raw) };
    let cases = [
        ("", PathError::Empty),
        (
            "workspace/a",
            PathError::NotAbsolute {
                path: quoted("workspace/a"),
            },
        ),
        ("/etc/passwd", outside("/etc/passwd")),
        ("/mnt/user-data", outside("/mnt/user-data")),
        (
            "/mnt/user-data-evil/workspace/a",
            outside("/mnt/user-data-evil/workspace/a"),
        ),
        (
            "/mnt/user-data/workspace-evil/a",
            outside("/mnt/user-data/workspace-evil/a"),
        ),
        (
            "/mnt/user-data/Workspace/a",
            outside("/mnt/user-data/Workspace/a"),
        ),
        (
            "/mnt/user-data/workspace/../outputs",
            PathError::ParentSegment {
                path: quoted("/mnt/user-data/workspace/../outputs"),
            },
        ),
        (
            "/mnt/user-data/workspace/a\0b",
            PathError::ControlCharacter {
                name: quoted("a\0b"),
            },
        ),
        (
            "/mnt/user-data/workspace/a\nb",
            PathError::ControlCharacter {
                name: quoted("a\nb"),
            },
        ),
        (
            "/mnt/user-data/workspace/\u{202e}fdp.exe",
            PathError::ControlCharacter {
                name: quoted("\u{202e}fdp.exe"),
            },
        ),
        (
            "/mnt/user-data/workspace/a\\b",
            PathError::Backslash {
                name: quoted("a\\b"),
            },
        ),
        (
            long_name.as_str(),
            PathError::ComponentTooLong {
                name: quoted(&"n".repeat(256)),
                bytes: 256,
            },
        ),
        (
            long_path.as_str(),
            PathError::TooLong {
                bytes: long_path.len(),
            },
        ),
    ];
    for (raw, reason) in cases {
        assert_eq!(VirtualPath::parse(raw), Err(reason), "{raw:.60}");
    }
}

#[test]
fn rejection_names_all_roots_on_one_line() {
    let error = VirtualPath::parse("/etc/\npasswd").expect_err("outside");
    assert_eq!(
        error.to_string(),
        "\"/etc/\\npasswd\" is outside the allowed directories; use an absolute path under \
         /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs"
    );
}

#[test]
fn maximum_path_and_name_lengths_are_accepted() {
    let name = "n".repeat(MAX_COMPONENT_BYTES);
    assert!(VirtualPath::parse(&format!("/mnt/user-data/workspace/{name}")).is_ok());
    let prefix = "/mnt/user-data/workspace/";
    let path = format!("{prefix}{}", "a/".repeat(2048));
    assert!(VirtualPath::parse(&path[..MAX_PATH_BYTES]).is_ok());
    assert!(VirtualPath::parse(&path[..MAX_PATH_BYTES + 1]).is_err());
}

#[test]
fn join_accepts_one_plain_name() {
    let base = RelativePath::parse("a/b").expect("plain");
    assert_eq!(base.join("c").expect("plain").as_str(), "a/b/c");
    for name in ["", ".", "..", "c/d", "/", "c\0"] {
        assert!(base.join(name).is_err(), "{name:?}");
    }
}

#[test]
fn split_last_returns_parent_and_name() {
    let split = |raw: &str| {
        let path = RelativePath::parse(raw).expect("plain");
        path.split_last()
            .map(|(parent, name)| (parent.as_str().to_owned(), name.to_owned()))
    };
    assert_eq!(split(""), None);
    assert_eq!(split("a"), Some((String::new(), "a".to_owned())));
    assert_eq!(split("a/b/c"), Some(("a/b".to_owned(), "c".to_owned())));
}

/// Texts that resemble a path: relevant fragments in any order.
fn path_like() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/".to_owned()),
        Just("mnt".to_owned()),
        Just("user-data".to_owned()),
        Just("/mnt/user-data/workspace".to_owned()),
        Just("/mnt/user-data/uploads/".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("\\".to_owned()),
        Just("%2e%2e".to_owned()),
        Just("\0".to_owned()),
        any::<char>().prop_map(String::from),
        "[a-z .]{1,8}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn parse_of_any_text_never_panics(raw in any::<String>()) {
        if let Err(error) = VirtualPath::parse(&raw) {
            let text = error.to_string();
            prop_assert!(!text.contains('\n') && text.chars().count() < 1500);
        }
    }

    #[test]
    fn accepted_paths_only_lead_downwards(raw in path_like()) {
        if let Ok(path) = VirtualPath::parse(&raw) {
            for name in path.relative().components() {
                prop_assert!(!name.is_empty() && name != "." && name != ".." && name.len() <= 255);
                prop_assert!(!name.contains(['/', '\\', '\0']));
            }
            prop_assert!(path.to_string().starts_with("/mnt/user-data/"));
        }
    }

    #[test]
    fn display_and_parse_round_trip(raw in path_like()) {
        if let Ok(path) = VirtualPath::parse(&raw) {
            prop_assert_eq!(VirtualPath::parse(&path.to_string()), Ok(path));
        }
    }
}
