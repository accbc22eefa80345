//! Validates the package arguments of launchers: accepts only names of published packages, and no
//! path, address or other package index.

/// Programs that download and run a package.
const LAUNCHERS: [&str; 5] = ["npx", "bunx", "pnpx", "uvx", "pipx"];
/// Options before the package that do not change what is run.
const SWITCHES: [&str; 12] = [
    "--",
    "-y",
    "--yes",
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--offline",
    "--prefer-offline",
    "--isolated",
    "--no-cache",
    "--refresh",
];
/// Options before the package whose value is a package or a Python version.
const PACKAGE_OPTIONS: [&str; 5] = ["-p", "--package", "--from", "--with", "--python"];
/// File extensions of packages that are local files.
const PACKAGE_FILE_EXTENSIONS: [&str; 6] = [".tgz", ".tar", ".gz", ".whl", ".zip", ".py"];

/// Argument that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectedArgument<'a> {
    /// Option before the package.
    Option(&'a str),
    /// Package to run.
    Package(&'a str),
}

/// Returns the first argument of a launcher that is not allowed. Arguments after the package belong
/// to the package.
pub(super) fn rejected_argument<'a>(
    command: &str,
    args: &[&'a str],
) -> Option<RejectedArgument<'a>> {
    if !LAUNCHERS.contains(&command.rsplit('/').next().unwrap_or(command)) {
        return None;
    }
    let refused =
        |package: &'a str| (!is_published(package)).then_some(RejectedArgument::Package(package));
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        let (option, value) = arg
            .split_once('=')
            .map_or((arg, None), |(option, value)| (option, Some(value)));
        if !arg.starts_with('-') {
            return refused(arg);
        }
        if PACKAGE_OPTIONS.contains(&option) {
            let refused = value.or_else(|| args.next()).and_then(refused);
            if refused.is_some() {
                return refused;
            }
        } else if !SWITCHES.contains(&arg) {
            return Some(RejectedArgument::Option(arg));
        }
    }
    None
}

/// `true` for `name`, `name@version` and `@scope/name`, which the launcher resolves in its own
/// index.
fn is_published(package: &str) -> bool {
    let name = match package
        .strip_prefix('@')
        .and_then(|scoped| scoped.split_once('/'))
    {
        Some((scope, name)) if !scope.is_empty() && !scope.starts_with('.') => name,
        Some(_) => return false,
        None => package,
    };
    // The part after `@` is a version or a path.
    let parts_fit = name
        .split('@')
        .all(|part| !part.trim().is_empty() && !part.trim_start().starts_with(['.', '~', '-']));
    parts_fit
        && !name.contains(['/', '\\', ':'])
        && !PACKAGE_FILE_EXTENSIONS
            .iter()
            .any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_published_package_names_are_allowed() {
        for fine in [
            "pkg",
            "pkg@1.2.3",
            "@scope/pkg",
            "@scope/pkg@latest",
            "pkg[extra]==1.0",
            "3.12",
            "mcp-server-git>=2",
        ] {
            assert_eq!(
                rejected_argument("npx", &["-y", fine, "/srv/shared", "http://x/"]),
                None,
                "{fine}"
            );
        }
        for wrong in [
            "./x",
            ".",
            "..",
            "/srv/x",
            "user/repo",
            "git+https://h/x",
            "https://h/x.tgz",
            "file:x",
            "x@file:y",
            "x@..",
            "x@~/y",
            "x@./y",
            "x.tgz",
            "@s/x/y",
            "@s/x@../y",
            "@s/x@..",
            "@../x",
            "@/x",
            "x @ ./y",
            "server.py",
            "a\\b",
            "",
            "npm:x",
        ] {
            assert_eq!(
                rejected_argument("uvx", &[wrong]),
                Some(RejectedArgument::Package(wrong)),
                "{wrong}"
            );
            assert_eq!(
                rejected_argument("/usr/bin/npx", &["-y", "--package", wrong, "x"]),
                Some(RejectedArgument::Package(wrong)),
                "{wrong}"
            );
        }
        assert_eq!(
            rejected_argument("uvx", &["--from=git+https://h/x", "x"]),
            Some(RejectedArgument::Package("git+https://h/x"))
        );
        for option in [
            "--registry=http://h",
            "--index-url",
            "--prefix",
            "-w",
            "--with-editable",
            "--python-preference",
        ] {
            assert_eq!(
                rejected_argument("npx", &[option, "x"]),
                Some(RejectedArgument::Option(option))
            );
        }
        assert_eq!(
            rejected_argument("node", &["/opt/server.js"]),
            None,
            "not a launcher of packages"
        );
    }
}
