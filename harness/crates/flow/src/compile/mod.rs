//! Compilation: a valid document becomes what a run needs.

mod assemble;
mod content_hash;
mod driver;
mod loops;
mod settings;

pub use assemble::{Compiled, compile, compile_text};

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
