//! Fixtures for tests of every crate.

pub mod seeded_rng;
