//! Fixtures of the tests.
