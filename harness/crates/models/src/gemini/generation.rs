//! Generation of a Gemini model, read from its name.

/// Reports whether the model is of the third generation or a later one.
pub(super) fn is_third_generation(model: &str) -> bool {
    let digits = |rest: &str| {
        rest.split(|letter: char| !letter.is_ascii_digit())
            .next()
            .and_then(|digits| digits.parse::<u32>().ok())
    };
    model
        .strip_prefix("gemini-")
        .and_then(digits)
        .is_some_and(|generation| generation >= 3)
}
