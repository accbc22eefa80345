//! Lists of names in messages, which people read.

/// Maximum names of a list.
const MAX_NAMES: usize = 20;
/// Maximum characters of a name.
const MAX_CHARS: usize = 60;

/// Joins names with commas; leaves out those beyond the first 20 and what is long.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names = names.into_iter();
    let mut list: Vec<String> = names.by_ref().take(MAX_NAMES).map(cut).collect();
    if names.next().is_some() {
        list.push("…".to_owned());
    }
    list.join(", ")
}

fn cut(name: &str) -> String {
    let mut cut: String = name.chars().take(MAX_CHARS).collect();
    if cut.len() < name.len() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_and_names_are_cut() {
        assert_eq!(listed(["a", "b"]), "a, b");
        assert_eq!(
            listed(["x".repeat(61).as_str()]),
            format!("{}…", "x".repeat(60))
        );
        let many = listed(std::iter::repeat_n("n", 21));
        assert!(many.ends_with("n, …"), "{many}");
        assert_eq!(many.matches('n').count(), 20);
    }
}
