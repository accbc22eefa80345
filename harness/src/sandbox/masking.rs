//! Between the names that a model uses for folders and where they lie on the host.

use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{Root, USER_DATA};

/// A text with the thread's host folders under their virtual names, so that no output tells where they lie.
pub fn to_virtual(text: &str, dirs: &ThreadDirs) -> String {
    pairs(dirs).into_iter().fold(text.to_owned(), |text, (inside, host)| replace_paths(&text, &host, &inside))
}

/// A text with the thread's virtual folders under their names on the host.
pub fn to_host(text: &str, dirs: &ThreadDirs) -> String {
    pairs(dirs).into_iter().fold(text.to_owned(), |text, (inside, host)| replace_paths(&text, &inside, &host))
}

/// Virtual and host names, those of the roots before what they lie in.
fn pairs(dirs: &ThreadDirs) -> Vec<(String, String)> {
    let roots = Root::ALL.map(|root| (format!("{USER_DATA}/{}", root.dir_name()), dirs.host_path(root)));
    let parent = roots[0].1.parent().map(|parent| (USER_DATA.to_owned(), parent.to_path_buf()));
    roots.into_iter().chain(parent).map(|(inside, host)| (inside, host.display().to_string())).collect()
}

/// Replaces a path where it stands as one: `/a/b` is in `/a/b/c` and not in `/a/bc` or `/z/a/b`.
fn replace_paths(text: &str, old: &str, new: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let (before, after) = (&rest[..at], &rest[at + old.len()..]);
        let begins = before.chars().next_back().or_else(|| replaced.chars().next_back());
        let stands_alone = !begins.is_some_and(|c| is_name(c) || c == '/') && !after.chars().next().is_some_and(is_name);
        replaced.push_str(before);
        replaced.push_str(if stands_alone { new } else { old });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_replaced_where_they_stand_as_paths() {
        let replaced = replace_paths("/a/b:/a/b/c '/a/b' /a/bc x/a/b /z/a/b /a/b", "/a/b", "/v");
        assert_eq!(replaced, "/v:/v/c '/v' /a/bc x/a/b /z/a/b /v");
    }
}
