//! Which pieces of what a command prints are told next, and how much in all. Pure.

use crate::sandbox::{HostNames, MaskedStream, Pipe};

/// The most characters that are told of one command, whatever its result may have.
const MOST_CHARS: usize = 100_000;
/// Bytes of a stream that may be held at least: they may be fewer once they are masked.
const LEAST_HELD: usize = 64 << 10;
/// The longest encoding of a character.
const BYTES_PER_CHAR: usize = 4;

/// What was printed and is not told yet, in bounded memory.
#[derive(Debug)]
pub(super) struct LivePieces {
    out: Printed,
    err: Printed,
    max_chars: usize,
    shown_chars: usize,
    is_over: bool,
}

/// Something to tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The next of a stream.
    Next(Pipe, String),
    /// There is more, and it is not told.
    Truncated { shown_chars: usize },
}

#[derive(Debug, Default)]
struct Printed {
    text: MaskedStream,
    /// Something came that there was no room for.
    is_cut: bool,
}

impl LivePieces {
    /// Pieces for viewers of a result of at most so many characters (0: any number).
    pub(super) fn of_at_most(max_chars: usize) -> Self {
        let max_chars = if max_chars == 0 {
            MOST_CHARS
        } else {
            max_chars.min(MOST_CHARS)
        };
        Self {
            out: Printed::default(),
            err: Printed::default(),
            max_chars,
            shown_chars: 0,
            is_over: false,
        }
    }

    /// Takes what was printed.
    pub(super) fn take(&mut self, from: Pipe, bytes: &[u8]) {
        let most_held = LEAST_HELD.max(self.max_chars * BYTES_PER_CHAR);
        let printed = match from {
            Pipe::Out => &mut self.out,
            Pipe::Err => &mut self.err,
        };
        if self.is_over || printed.is_cut {
            return;
        }
        let room = most_held.saturating_sub(printed.text.held());
        printed.is_cut = bytes.len() > room;
        printed.text.push(&bytes[..bytes.len().min(room)]);
    }

    /// Whether nothing waits to be told.
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |printed: &Printed| printed.text.held() == 0 && !printed.is_cut;
        self.is_over || (is_empty(&self.out) && is_empty(&self.err))
    }

    /// What can be told now: all the rest if nothing more comes.
    pub(super) fn next(&mut self, names: &HostNames, is_end: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (pipe, printed) in [(Pipe::Out, &mut self.out), (Pipe::Err, &mut self.err)] {
            if self.is_over {
                break;
            }
            // Where the text is cut off, its last letters may be the beginning of a name.
            let text = if is_end && !printed.is_cut {
                printed.text.finish(names)
            } else {
                printed.text.pass(names)
            };
            let room = self.max_chars - self.shown_chars;
            let shown = text
                .char_indices()
                .nth(room)
                .map_or(&*text, |(end, _)| &text[..end]);
            self.shown_chars += shown.chars().count();
            self.is_over = printed.is_cut || shown.len() < text.len();
            if !shown.is_empty() {
                pieces.push(Piece::Next(pipe, shown.to_owned()));
            }
            if self.is_over {
                pieces.push(Piece::Truncated {
                    shown_chars: self.shown_chars,
                });
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadId;
    use crate::sandbox::{Shelf, ThreadDirs, safe_fs::Resolver};

    fn names() -> HostNames {
        let home: std::sync::Arc<std::path::Path> = std::path::Path::new("/nowhere/at/all").into();
        HostNames::of(
            &ThreadDirs::new(
                home,
                Resolver::detect(),
                "ann",
                &ThreadId::parse("t1").unwrap(),
            ),
            &Shelf::default(),
        )
    }

    fn out(text: &str) -> Piece {
        Piece::Next(Pipe::Out, text.to_owned())
    }

    #[test]
    fn pieces_are_told_up_to_the_limit_and_then_once_that_there_is_more() {
        let (names, mut pieces) = (names(), LivePieces::of_at_most(10));
        assert!(pieces.is_empty());
        pieces.take(Pipe::Out, "übe\n".as_bytes());
        pieces.take(Pipe::Err, b"no\n");
        assert_eq!(
            pieces.next(&names, false),
            [out("übe\n"), Piece::Next(Pipe::Err, "no\n".to_owned())]
        );
        assert_eq!(pieces.next(&names, false), []);
        pieces.take(Pipe::Out, b"123\n");
        pieces.take(Pipe::Err, b"lost\n");
        assert_eq!(
            pieces.next(&names, false),
            [out("123"), Piece::Truncated { shown_chars: 10 }]
        );
        pieces.take(Pipe::Out, b"more\n");
        assert!(pieces.is_empty());
        assert_eq!(pieces.next(&names, true), []);
    }

    #[test]
    fn an_output_that_just_fits_is_told_to_its_end() {
        let (names, mut pieces) = (names(), LivePieces::of_at_most(4));
        pieces.take(Pipe::Out, b"1234");
        assert_eq!(
            pieces.next(&names, false),
            [out("123")],
            "the last may belong to what comes next"
        );
        assert_eq!(pieces.next(&names, true), [out("4")]);
    }

    #[test]
    fn a_flood_between_two_looks_is_not_kept_and_ends_in_no_half_of_a_name() {
        let (names, mut pieces) = (names(), LivePieces::of_at_most(0));
        let host = "/nowhere/at/all/users/ann/threads/t1/user-data/workspace";
        // Where there is no room any more, the name is cut in the middle.
        pieces.take(
            Pipe::Out,
            "\n".repeat(MOST_CHARS * BYTES_PER_CHAR - 50).as_bytes(),
        );
        pieces.take(Pipe::Out, host.as_bytes());
        pieces.take(Pipe::Out, host.as_bytes());
        assert!(pieces.out.text.held() <= MOST_CHARS * BYTES_PER_CHAR);
        assert_eq!(
            pieces.next(&names, true),
            [
                out(&"\n".repeat(MOST_CHARS)),
                Piece::Truncated {
                    shown_chars: MOST_CHARS
                }
            ]
        );
        let mut pieces = LivePieces::of_at_most(60_000);
        pieces.take(Pipe::Err, b"x ");
        pieces.take(Pipe::Err, host.repeat(10_000).as_bytes());
        assert_eq!(
            pieces.next(&names, true),
            [
                Piece::Next(Pipe::Err, "x ".to_owned()),
                Piece::Truncated { shown_chars: 2 }
            ],
            "a text without an end of a name is not told by halves"
        );
    }
}
