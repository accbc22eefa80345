//! What launchers of packages are told to run: the name of a published package, and not a path, an address or another index.

/// Programs that download a package and run it.
const LAUNCHERS: [&str; 5] = ["npx", "bunx", "pnpx", "uvx", "pipx"];
/// Options before the package that change nothing about what is run.
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
/// Options before the package that name a package, or a version of Python.
const NAMING: [&str; 5] = ["-p", "--package", "--from", "--with", "--python"];
/// Endings of packages that lie in a file.
const FILES: [&str; 6] = [".tgz", ".tar", ".gz", ".whl", ".zip", ".py"];

/// What is not known to be harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt<'a> {
    /// An option before the package.
    Option(&'a str),
    /// What would be run.
    Package(&'a str),
}

/// The first doubt about a launcher's arguments. Those behind the package are the package's own.
pub(super) fn doubt<'a>(command: &str, args: &[&'a str]) -> Option<Doubt<'a>> {
    if !LAUNCHERS.contains(&command.rsplit('/').next().unwrap_or(command)) {
        return None;
    }
    let refused = |package: &'a str| (!is_published(package)).then_some(Doubt::Package(package));
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        let (option, value) = arg
            .split_once('=')
            .map_or((arg, None), |(option, value)| (option, Some(value)));
        if !arg.starts_with('-') {
            return refused(arg);
        }
        if NAMING.contains(&option) {
            let refused = value.or_else(|| args.next()).and_then(refused);
            if refused.is_some() {
                return refused;
            }
        } else if !SWITCHES.contains(&arg) {
            return Some(Doubt::Option(arg));
        }
    }
    None
}

/// Whether it is `name`, `name@version` or `@scope/name` of the launcher's own index.
fn is_published(package: &str) -> bool {
    let name = match package
        .strip_prefix('@')
        .and_then(|scoped| scoped.split_once('/'))
    {
        Some((scope, name)) if !scope.is_empty() && !scope.starts_with('.') => name,
        Some(_) => return false,
        None => package,
    };
    // Behind an `@` stands a version, or a path.
    let parts_fit = name
        .split('@')
        .all(|part| !part.trim().is_empty() && !part.trim_start().starts_with(['.', '~', '-']));
    parts_fit
        && !name.contains(['/', '\\', ':'])
        && !FILES
            .iter()
            .any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_published_packages_are_run() {
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
                doubt("npx", &["-y", fine, "/srv/shared", "http://x/"]),
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
                doubt("uvx", &[wrong]),
                Some(Doubt::Package(wrong)),
                "{wrong}"
            );
            assert_eq!(
                doubt("/usr/bin/npx", &["-y", "--package", wrong, "x"]),
                Some(Doubt::Package(wrong)),
                "{wrong}"
            );
        }
        assert_eq!(
            doubt("uvx", &["--from=git+https://h/x", "x"]),
            Some(Doubt::Package("git+https://h/x"))
        );
        for option in [
            "--registry=http://h",
            "--index-url",
            "--prefix",
            "-w",
            "--with-editable",
            "--python-preference",
        ] {
            assert_eq!(doubt("npx", &[option, "x"]), Some(Doubt::Option(option)));
        }
        assert_eq!(
            doubt("node", &["/opt/server.js"]),
            None,
            "not a launcher of packages"
        );
    }
}
