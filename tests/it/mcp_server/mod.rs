//! `deerflow mcp`: the real binary over its standard streams.
#![expect(
    deprecated,
    reason = "the protocol deprecates log messages, but today's clients display them"
)]

mod calls;
mod conversations;
mod process;
mod support;
