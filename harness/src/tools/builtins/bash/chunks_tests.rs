//! Tests of the split of output into chunks, and of its limit.

use super::*;
use crate::ids::ThreadId;
use crate::sandbox::{SkillMounts, ThreadDirs, safe_fs::Resolver};

fn names() -> HostNames {
    let home: std::sync::Arc<std::path::Path> = std::path::Path::new("/nowhere/at/all").into();
    HostNames::of(
        &ThreadDirs::new(
            home,
            Resolver::detect(),
            "ann",
            &ThreadId::parse("t1").unwrap(),
        ),
        &SkillMounts::default(),
    )
}

fn out(text: &str) -> Chunk {
    Chunk::Next(Pipe::Out, text.to_owned())
}

#[test]
fn chunks_stop_at_limit_with_one_truncation_mark() {
    let (names, mut chunks) = (names(), OutputChunks::with_limit(10));
    assert!(chunks.is_empty());
    chunks.take(Pipe::Out, "übe\n".as_bytes());
    chunks.take(Pipe::Err, b"no\n");
    assert_eq!(
        chunks.next(&names, false),
        [out("übe\n"), Chunk::Next(Pipe::Err, "no\n".to_owned())]
    );
    assert_eq!(chunks.next(&names, false), []);
    chunks.take(Pipe::Out, b"123\n");
    chunks.take(Pipe::Err, b"lost\n");
    assert_eq!(
        chunks.next(&names, false),
        [out("123"), Chunk::Truncated { shown_chars: 10 }]
    );
    chunks.take(Pipe::Out, b"more\n");
    assert!(chunks.is_empty());
    assert_eq!(chunks.next(&names, true), []);
}

#[test]
fn output_at_limit_is_emitted_completely() {
    let (names, mut chunks) = (names(), OutputChunks::with_limit(4));
    chunks.take(Pipe::Out, b"1234");
    assert_eq!(
        chunks.next(&names, false),
        [out("123")],
        "the last characters may belong to the next chunk"
    );
    assert_eq!(chunks.next(&names, true), [out("4")]);
}

#[test]
fn overflow_between_polls_is_dropped_without_partial_name() {
    let (names, mut chunks) = (names(), OutputChunks::with_limit(0));
    let host = "/nowhere/at/all/users/ann/threads/t1/user-data/workspace";
    // The buffer is full here, so the name is cut in the middle.
    chunks.take(
        Pipe::Out,
        "\n".repeat(MAX_STREAMED_CHARS * BYTES_PER_CHAR - 50)
            .as_bytes(),
    );
    chunks.take(Pipe::Out, host.as_bytes());
    chunks.take(Pipe::Out, host.as_bytes());
    assert!(chunks.out.text.held() <= MAX_STREAMED_CHARS * BYTES_PER_CHAR);
    assert_eq!(
        chunks.next(&names, true),
        [
            out(&"\n".repeat(MAX_STREAMED_CHARS)),
            Chunk::Truncated {
                shown_chars: MAX_STREAMED_CHARS
            }
        ]
    );
    let mut chunks = OutputChunks::with_limit(60_000);
    chunks.take(Pipe::Err, b"x ");
    chunks.take(Pipe::Err, host.repeat(10_000).as_bytes());
    assert_eq!(
        chunks.next(&names, true),
        [
            Chunk::Next(Pipe::Err, "x ".to_owned()),
            Chunk::Truncated { shown_chars: 2 }
        ],
        "text with an unfinished name is not emitted in part"
    );
}
