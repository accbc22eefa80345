//! Thread options of the platform's clients: time to live, first state, selected fields; and
//! invalid values.

mod fields;
mod invalid;
mod supersteps;

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";
